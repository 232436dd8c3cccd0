package servers

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/process"
)

// Program starts a program that listens at an address, and waits until it accepts connections. The program ends with the
// test. The test is skipped unless TEST_SERVERS is set.
func Program(t testing.TB, address, name string, args ...string) {
	t.Helper()
	Wanted(t)
	if _, err := exec.LookPath(name); err != nil {
		t.Fatalf("%v: `make test-tools` installs what it needs", err)
	}
	Listen(t, address, exec.Command(name, args...))
}

// Listen starts a command that listens at an address, and waits until it accepts connections. It ends with the test.
func Listen(t testing.TB, address string, command *exec.Cmd) {
	t.Helper()
	p := process.Start(t, command)
	t.Cleanup(p.Stop)
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if connection, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_ = connection.Close() // nothing was sent
			return
		}
		select {
		case <-p.Ended():
			t.Fatalf("%s has ended:\n%s", command.Path, p.Output())
		default:
		}
		if time.Since(begun) > patience {
			t.Fatalf("%s does not listen at %s:\n%s", command.Path, address, p.Output())
		}
	}
}

// Wanted skips the test unless TEST_SERVERS is set.
func Wanted(t testing.TB) {
	t.Helper()
	if os.Getenv("TEST_SERVERS") == "" {
		t.Skip("needs real servers: `make test-tools` builds and runs them")
	}
}

// Nightly skips the test unless TEST_NIGHTLY is set. Such tests cover code that changes rarely,
// most of which other tests cover on every commit. .ci/expected-skips lists them.
func Nightly(t testing.TB) {
	t.Helper()
	if os.Getenv("TEST_NIGHTLY") == "" {
		t.Skip("runs at night: `make test-nightly` runs it")
	}
}

// Rounds returns the number of repetitions of a random test: many if TEST_SERVERS is set, else few.
func Rounds(few, many int) int {
	if os.Getenv("TEST_SERVERS") == "" {
		return few
	}
	return many
}
