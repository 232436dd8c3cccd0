package flink

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-json"
)

// Workers run a pipeline's own code, as processes of the program with the pipeline.
type Workers struct {
	flags []string
	watch *watch
	pool  *program
}

// A Limit bounds the memory of each worker. The zero value means unlimited.
type Limit struct {
	Soft int // MiB; beyond it Go collects garbage as often as needed (GOMEMLIMIT)
	Hard int // MiB; a worker that needs more ends (RLIMIT_DATA)
}

// script sets the limits, and replaces itself by the command.
func (l Limit) script() string {
	var lines []string
	if l.Soft > 0 {
		lines = append(lines, fmt.Sprintf("export GOMEMLIMIT=%dMiB", l.Soft))
	}
	if l.Hard > 0 {
		// Not the address space: Go reserves far more than it uses.
		lines = append(lines, fmt.Sprintf("ulimit -d %d", l.Hard<<10))
	}
	return strings.Join(append(lines, `exec "$@"`), "\n")
}

// Loopback runs workers in the process that starts the pipeline. This only works with one task
// manager: each numbers its workers from 1, and the process rejects duplicate numbers.
func Loopback() *Workers {
	return &Workers{flags: []string{"--environment_type=LOOPBACK"}}
}

// StartPool starts Beam's worker pool, which starts a worker when Flink asks for one. program is
// the program with the pipeline. Like Loopback, it needs a single task manager. The pool's port is
// fixed, so the package's tests must run in a separate network (see package loopback) unless only
// one pool runs on this machine at a time.
func StartPool(t testing.TB, program string, limit Limit) *Workers {
	t.Helper()
	Wanted(t)
	const address = "localhost:50000"
	w := newWatch(t)
	// Workers of all pools unpack their program in /tmp/staged. Without a mount point at /, as in a
	// chroot, mounts might be visible outside; then none are made.
	const mounted = `
if [ -n "$MOUNT" ] && mount --make-rslave / 2>/dev/null; then
	mkdir -p /tmp/staged && mount --bind "$PWD" /tmp/staged || exit
fi
`
	command := exec.Command("sh", "-c", mounted+limit.script(), "sh", tool(t, "boot"), "--worker_pool")
	command.Env = w.environment()
	if isolated() {
		command.Env = append(command.Env, "MOUNT=1")
		command.SysProcAttr = ownMounts()
	}
	pool := run(t, t.TempDir(), command)
	pool.listens(t, address)
	return &Workers{
		flags: []string{"--environment_type=EXTERNAL", "--environment_config=" + address, "--worker_binary=" + program},
		watch: w, pool: pool,
	}
}

// Processes makes task managers start workers as processes, for clusters of any size.
func Processes(t testing.TB, program string, limit Limit) *Workers {
	t.Helper()
	Wanted(t)
	w := newWatch(t)
	folder := t.TempDir()
	script := filepath.Join(folder, "start-worker")
	// boot writes in its working directory, and unpacks the program in a configurable one.
	text := fmt.Sprintf("#!/bin/sh\nfolder=$(mktemp -d %s/worker-XXXXXX) || exit\ncd \"$folder\" || exit\n"+
		"set -- %s --semi_persist_dir=\"$folder\" \"$@\"\n%s\n", folder, tool(t, "boot"), limit.script())
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{}
	for _, variable := range w.environment() {
		name, value, _ := strings.Cut(variable, "=")
		environment[name] = value
	}
	config, err := json.Marshal(map[string]any{"command": script, "env": environment})
	if err != nil {
		t.Fatal(err)
	}
	return &Workers{
		flags: []string{"--environment_type=PROCESS", "--environment_config=" + string(config), "--worker_binary=" + program},
		watch: w,
	}
}

// Flags returns the flags of Beam for these workers, which followpress-beam takes after --.
func (w *Workers) Flags() []string { return w.flags }

// Seen returns the number of workers so far, and the largest memory of one, in bytes. Both come
// from samples of the processes, several per second. It requires workers in separate processes.
func (w *Workers) Seen() (workers int, memory int64) {
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	return len(w.watch.seen), w.watch.memory
}

// Output returns the output of the pool and its workers so far.
func (w *Workers) Output() string { return w.pool.output() }

// Kill kills one of the running workers, like a lack of memory. It returns false if none runs.
func (w *Workers) Kill() bool {
	w.watch.look()
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	for pid := range w.watch.running {
		return syscall.Kill(pid, syscall.SIGKILL) == nil
	}
	return false
}

// A watch identifies processes by a variable in their environment, independent of their parent, and
// ends them with the test.
type watch struct {
	mark string

	mu      sync.Mutex
	seen    map[int]bool // workers, by process ID
	running map[int]bool // workers seen by the last look
	memory  int64
}

func newWatch(t testing.TB) *watch {
	t.Helper()
	t.TempDir() // removed after the cleanups registered from now on: workers write into such folders
	w := &watch{mark: fmt.Sprintf("FOLLOWPRESS_WORKERS=%016x", rand.Uint64()), seen: map[int]bool{}}
	end := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			w.look()
			select {
			case <-end:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() {
		close(end)
		group.Wait()
		for begun := time.Now(); len(w.look()) > 0; time.Sleep(10 * time.Millisecond) {
			for _, pid := range w.look() {
				_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended
			}
			if time.Since(begun) > patience {
				t.Errorf("workers do not end: %v", w.look())
				return
			}
		}
	})
	return w
}

func (w *watch) environment() []string { return []string{w.mark} }

// look returns the marked processes, and records the workers among them.
func (w *watch) look() []int {
	var found []int
	running := map[int]bool{}
	var memory int64
	folders, _ := filepath.Glob("/proc/[0-9]*") // empty without /proc
	for _, folder := range folders {
		environment, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err != nil || !bytes.Contains(environment, []byte(w.mark)) {
			continue // ended, or owned by another user
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		found = append(found, pid)
		if arguments, err := os.ReadFile(filepath.Join(folder, "cmdline")); err == nil && bytes.Contains(arguments, []byte("--worker=true")) {
			running[pid] = true
			memory = max(memory, highWater(folder))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.Copy(w.seen, running)
	w.running, w.memory = running, max(w.memory, memory)
	return found
}

// highWater returns the maximum resident memory of a process, in bytes.
func highWater(folder string) int64 {
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
	if err != nil {
		return 0 // the process has ended
	}
	return kilobytes << 10
}
