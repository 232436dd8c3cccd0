package process_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/process"
)

const role = "PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "fails":
		fmt.Print("one\ntwo\npart of a line")
		fmt.Fprintln(os.Stderr, "no more")
		os.Exit(3)
	case "waits":
		fmt.Println("ready")
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

func start(t *testing.T, as string) *process.Process {
	t.Helper()
	return process.Start(t, process.Self(t, []string{role + "=" + as}))
}

func TestAProcessThatEnds(t *testing.T) {
	p := start(t, "fails")
	if text, ok := p.Line(1); text != "two" || !ok {
		t.Errorf("line 1: got %q, %v, want two", text, ok)
	}
	if text, ok := p.Line(2); ok {
		t.Errorf("line 2: got %q, want none", text)
	}
	if !p.WaitFor("one") || p.WaitFor("three") {
		t.Errorf("lines: got %v, want one and not three", p.Lines())
	}
	if status, killed := p.Wait(); status != 3 || killed {
		t.Errorf("end: got status %d, killed: %v, want 3 and not killed", status, killed)
	}
	if got, want := p.Stderr(), "no more\n"; got != want {
		t.Errorf("standard error: got %q, want %q", got, want)
	}
	if got, want := len(p.Output()), len("one\ntwo\npart of a lineno more\n"); got != want {
		t.Errorf("output: got %d bytes, want %d", got, want)
	}
}

func TestAProcessThatIsEnded(t *testing.T) {
	for name, end := range map[string]func(*process.Process){
		"killed":  func(p *process.Process) { p.Signal(syscall.SIGKILL) },
		"stopped": func(p *process.Process) { p.Stop() },
	} {
		p := start(t, "waits")
		if !p.WaitFor("ready") {
			t.Fatalf("%s: got no line, want ready", name)
		}
		end(p)
		if status, killed := p.Wait(); status != -1 || killed != (name == "killed") {
			t.Errorf("%s: got status %d, killed: %v, want -1, killed: %v", name, status, killed, name == "killed")
		}
	}
}

func TestNoProcessOutlivesItsTest(t *testing.T) {
	var p *process.Process
	t.Run("a test", func(t *testing.T) {
		p = start(t, "waits")
		p.WaitFor("ready")
	})
	if status, killed := p.Wait(); !killed {
		t.Errorf("after the test: got status %d, want a killed process", status)
	}
}
