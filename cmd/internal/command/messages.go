package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/alecthomas/kong"
)

// Messages are the flags for standard error, for commands that end by themselves.
type Messages struct {
	Quiet     bool   `group:"Advanced:" help:"Print only warnings and errors on standard error."`
	LogFormat string `group:"Advanced:" enum:"text,json" default:"text" placeholder:"text|json" help:"Format of standard error: text, or one JSON object per line (default ${default})."`
}

// A messenger is the standard error of a command, formatted by Messages.
type messenger struct {
	quiet bool
	json  bool
	out   io.Writer
}

// messages wraps standard error as the command's flags ask.
func messages(parsed *kong.Context, stderr io.Writer) io.Writer {
	m := messenger{out: stderr}
	for _, flag := range parsed.Flags() {
		switch flag.Name {
		case "quiet":
			m.quiet = parsed.FlagValue(flag) == true
		case "log-format":
			m.json = parsed.FlagValue(flag) == "json"
		}
	}
	if m.quiet || m.json {
		return &m
	}
	return stderr
}

// Write writes messages below warnings.
func (m *messenger) Write(text []byte) (int, error) {
	if m.quiet {
		return len(text), nil
	}
	if m.json {
		for line := range strings.Lines(string(text)) {
			Logger(m, slog.LevelInfo).Info(strings.TrimRight(line, "\n"))
		}
		return len(text), nil
	}
	return m.out.Write(text)
}

// Logger returns a log on standard error, from a level up.
func Logger(stderr io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	m, ok := stderr.(*messenger)
	switch {
	case !ok:
		return slog.New(slog.NewTextHandler(stderr, options))
	case m.json:
		return slog.New(slog.NewJSONHandler(m.out, options))
	}
	return slog.New(slog.NewTextHandler(m.out, options))
}

func tellError(stderr io.Writer, name, text string) { tell(stderr, slog.LevelError, name+": "+text) }

// Warn prints a line that --quiet keeps.
func Warn(stderr io.Writer, text string) { tell(stderr, slog.LevelWarn, oneLine(text)) }

func tell(stderr io.Writer, level slog.Level, text string) {
	if m, ok := stderr.(*messenger); ok {
		if m.json {
			Logger(m, level).Log(context.Background(), level, text)
			return
		}
		stderr = m.out
	}
	fmt.Fprintln(stderr, text)
}

// LogLevel parses the value of a flag whose enum is a subset of debug, info, warn and error.
func LogLevel(name string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		panic("command: " + err.Error()) // the flag's enum and slog disagree
	}
	return level
}
