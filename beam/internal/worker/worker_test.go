package worker_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/harness/init" // the flags of workers

	"github.com/followpress/followpress/beam/internal/worker"
	"github.com/followpress/followpress/internal/testenv/process"
)

const role = "ROLE_OF_A_TEST_OF_WORKERS"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "worker":
		flag.Parse()
		worker.Tidy()
		fmt.Println(os.Getpid())
		select {}
	case "boot":
		command := exec.Command(os.Args[1], "--worker=true", "--id=1")
		command.Env = append(os.Environ(), role+"=worker")
		command.Stdout = os.Stdout
		if err := command.Run(); err != nil {
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func TestAWorkerEndsWithBootAndItsCopyIsRemoved(t *testing.T) {
	dir := fmt.Sprintf("/tmp/bin%d", rand.Uint32()) // as boot names it
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "worker")
	copyOfTest(t, program)

	boot := process.Start(t, process.Self(t, []string{role + "=boot"}, program))
	line, ok := boot.Line(0)
	pid, err := strconv.Atoi(line)
	if !ok || err != nil {
		t.Fatalf("the worker's first line: got %q, want its process ID", line)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder of the copy: got error %v, want that it does not exist", err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the worker while boot runs: got %v, want it running", err)
	}
	boot.Signal(syscall.SIGKILL)
	for begun := time.Now(); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the worker after boot was killed: still running, want it ended")
		}
	}
}

func TestOtherProgramsAreNotRemoved(t *testing.T) {
	program := filepath.Join(t.TempDir(), "worker")
	copyOfTest(t, program)
	p := process.Start(t, process.Self(t, []string{role + "=boot"}, program))
	if _, ok := p.Line(0); !ok {
		t.Fatal("the worker: got no line, want its process ID")
	}
	if _, err := os.Stat(program); err != nil {
		t.Error(err)
	}
}

// copyOfTest writes a copy of the running test.
func copyOfTest(t *testing.T, name string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
}
