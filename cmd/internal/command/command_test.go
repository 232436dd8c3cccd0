package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
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

// A port alone listens on this machine only. An invalid address fails with an error that names the
// expected form.
func TestListen(t *testing.T) {
	for _, address := range []string{"0", "127.0.0.1:0", "localhost:0"} {
		l, err := Listen("addr", address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if at := l.Addr().(*net.TCPAddr); !at.IP.IsLoopback() || at.Port == 0 {
			t.Errorf("%s: got %v, want a port of this machine only", address, at)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if _, err := Listen("addr", fmt.Sprint(port)); err == nil || !strings.Contains(err.Error(), "choose another address with --addr") {
			t.Errorf("port %d twice: got %v, want an error that names the flag", port, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, wrong := range []string{"nowhere", "127.0.0.1", "[::1", "65536", "80 80", "-1"} {
		if _, err := Listen("metrics-addr", wrong); err == nil || !strings.Contains(err.Error(), "--metrics-addr") || strings.Contains(err.Error(), "chooses") {
			t.Errorf("%q: got %v, want an error with the flag and what it wants", wrong, err)
		}
	}
}

// TestAvailableMemory: the smallest limit counts, of the machine and of all groups above the
// process.
func TestAvailableMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"another system": {nil, math.MaxInt64},
		"no group":       {map[string]string{"proc/meminfo": "MemTotal:       2048 kB\nMemFree: 1 kB\n"}, 2 << 20},
		"a container of version 2": {map[string]string{
			"proc/meminfo": "MemTotal: 2048 kB\n", "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n",
		}, 1 << 20},
		"no limit in version 2": {map[string]string{
			"proc/meminfo": "MemTotal: 2048 kB\n", "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n",
		}, 2 << 20},
		"a group above in version 2": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "7000\n", "sys/fs/cgroup/a/b/memory.max": "9000\n",
		}, 7000},
		"version 1": {map[string]string{
			"proc/self/cgroup":                                 "4:cpu,cpuacct:/x\n3:memory:/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":       "9223372036854771712\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes":     "8000\n",
			"sys/fs/cgroup/memory/other/memory.limit_in_bytes": "10\n",
		}, 8000},
		"nonsense": {map[string]string{
			"proc/meminfo": "MemTotal: lots\nMemTotal:\n", "proc/self/cgroup": "0::\n::\n\nx\n0::../../..\n", "sys/fs/cgroup/memory.max": "-5",
		}, math.MaxInt64},
	} {
		root := fstest.MapFS{}
		for file, text := range test.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := availableMemory(root); got != test.want {
			t.Errorf("%s: got %d bytes, want %d", name, got, test.want)
		}
	}
}

func TestVersion(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-11-21T10:00:00Z"}}
	for want, info := range map[string]debug.BuildInfo{
		"v1.2.3":            {Main: debug.Module{Version: "v1.2.3"}},
		"development build": {Main: debug.Module{Version: "(devel)"}},
		"v1.2.3 (commit 0123456789ab of 2026-11-21T10:00:00Z)": {Main: debug.Module{Version: "v1.2.3"}, Settings: commit},
		"development build (commit 0123456789ab of 2026-11-21T10:00:00Z, with local changes)": {
			Settings: append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
		},
	} {
		want += ", " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
		if got := describe(&info); got != want {
			t.Errorf("version: got %q, want %q", got, want)
		}
	}
	if got := Version("followpress"); !strings.HasPrefix(got, "followpress development build, go") {
		t.Errorf("version of a test: got %q, want a development build", got)
	}
}
