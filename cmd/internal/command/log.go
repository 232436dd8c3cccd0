package command

import "log/slog"

// LogLevel parses the value of a flag whose enum is a subset of debug, info, warn and error.
func LogLevel(name string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		panic("command: " + err.Error()) // the flag's enum and slog disagree
	}
	return level
}
