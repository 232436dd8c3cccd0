package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

type grammar struct {
	Word string `default:"hello" help:"What to say."`
	run  func(ctx context.Context, word string, stdout io.Writer) error
}

func (g *grammar) Run(ctx context.Context, stdout, _ io.Writer) error {
	return g.run(ctx, g.Word, stdout)
}

func TestRun(t *testing.T) {
	t.Setenv("FOLLOWPRESS_WORD", "env")
	say := func(_ context.Context, word string, stdout io.Writer) error {
		fmt.Fprint(stdout, word)
		return nil
	}
	fail := func(context.Context, string, io.Writer) error {
		return errors.Join(errors.New("one"), errors.New("two"))
	}
	interrupted := func(ctx context.Context, _ string, _ io.Writer) error {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Second):
			return errors.New("the signal did not arrive")
		}
	}
	for _, c := range []struct {
		name           string
		args           []string
		run            func(context.Context, string, io.Writer) error
		status         int
		stdout, stderr string
	}{
		{"flag", []string{"--word", "flag"}, say, 0, "flag", ""},
		{"environment", nil, say, 0, "env", ""},
		{"failure", nil, fail, 1, "", "say: one; two\n"},
		{"wrong flag", []string{"--words"}, say, 2, "", "say: unknown flag --words"},
		{"help", []string{"--help"}, say, 0, "What to say", ""},
		{"signal", nil, interrupted, 128 + 15, "", "say: stopped by terminated\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := Run("say", "Says a word.", &grammar{run: c.run}, c.args, &stdout, &stderr)
			if status != c.status || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) ||
				strings.Count(stderr.String(), "\n") > 1 {
				t.Errorf("got status %d, %q, %q, want %d, %q, %q", status, &stdout, &stderr, c.status, c.stdout, c.stderr)
			}
		})
	}
}

type speaker struct{ Messages }

func (*speaker) Run(_ context.Context, _, stderr io.Writer) error {
	fmt.Fprintln(stderr, "as always")
	Warn(stderr, "look out")
	return errors.New("broken")
}

// --quiet leaves warnings and errors; in JSON they have their levels.
func TestMessages(t *testing.T) {
	for args, want := range map[string]string{
		"":                          "as always\nlook out\nsay: broken\n",
		"--quiet":                   "look out\nsay: broken\n",
		"--log-format=json":         `"INFO","msg":"as always"}` + "\n" + `"WARN","msg":"look out"}` + "\n" + `"ERROR","msg":"say: broken"}` + "\n",
		"--quiet --log-format=json": `"WARN","msg":"look out"}` + "\n" + `"ERROR","msg":"say: broken"}` + "\n",
	} {
		var stdout, stderr bytes.Buffer
		status := Run("say", "Says something.", new(speaker), strings.Fields(args), &stdout, &stderr)
		got := regexp.MustCompile(`\{"time":"[^"]+","level":`).ReplaceAllString(stderr.String(), "")
		if status != Failed || got != want {
			t.Errorf("%s: got status %d, %q, want %d, %q", args, status, got, Failed, want)
		}
	}
}

// Off a terminal every stage is a line with its count.
func TestProgressInPlainLines(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out)
	p.Stage("read", 0)
	p.Add(3)
	p.Stage("write", 5)
	p.Add(5)
	p.End()
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "read      3 in ") || !strings.HasPrefix(lines[1], "write     5 of 5 in ") {
		t.Errorf("%q", lines)
	}
}

// Text from a server or a profile can neither reverse the lines of a summary nor control a terminal
// that shows it.
func TestSummariesAreClean(t *testing.T) {
	name := filepath.Join(t.TempDir(), "summary")
	t.Setenv("GITHUB_STEP_SUMMARY", name)
	if err := WriteSummary("### done\n\n- a\u202eb \x1b[31m \u009b \x07\n"); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(name)
	if want := "### done\n\n- a\ufffdb \ufffd[31m \ufffd \ufffd\n"; err != nil || string(body) != want {
		t.Errorf("got %q and %v, want %q", body, err, want)
	}
}
