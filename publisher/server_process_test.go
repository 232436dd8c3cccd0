package publisher_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/storage"
)

// jobVariable makes the test binary a publisher in a process of its own, which can be
// killed and stopped. It holds the job as JSON.
const jobVariable = "FOLLOWPRESS_TEST_JOB"

// A job is what such a publisher does.
type job struct {
	Site     string
	At       storage.Location
	Endpoint string // "" means that of the place's server
	Bulk     publisher.Bulk
	Workers  int
	Lease    time.Duration
	Owner    string
}

// This is no TestMain, so that other tests of the package may have one.
func init() {
	text := os.Getenv(jobVariable)
	if text == "" {
		return
	}
	if err := runJob(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runJob(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	from, err := storage.OpenSite(j.Site)
	if err != nil {
		return err
	}
	ctx := context.Background()
	to, err := storage.OpenS3(ctx, j.At, storage.S3Options{Endpoint: j.Endpoint})
	if err != nil {
		return err
	}
	_, err = publisher.Publish(ctx, from, to, publisher.Options{
		Bulk: j.Bulk, Concurrency: j.Workers, Lease: j.Lease, Owner: j.Owner, Progress: stageLines{},
	})
	return err
}

// stageLines tells the parent process how far the child is.
type stageLines struct{}

func (stageLines) Stage(name string, _ int64) { fmt.Println(name) }
func (stageLines) AddBytes(int64, int64)      {}

// A process is a child that publishes.
type process struct {
	place   place
	command *exec.Cmd
	stderr  strings.Builder
	stages  chan string // as they begin; closed when the process ends
	seen    []string
}

// start publishes to the place in a process of its own.
func (p place) start(t testing.TB, j job) *process {
	t.Helper()
	j.At = p.at
	if j.Endpoint == "" {
		j.Endpoint = p.server.Endpoint
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	c := &process{place: p, command: exec.Command(binary), stages: make(chan string, 100)}
	c.command.Env = append(os.Environ(), jobVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	for name, value := range credentialsOf(p.server) {
		c.command.Env = append(c.command.Env, name+"="+value)
	}
	c.command.Stderr = &c.stderr
	stdout, err := c.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.command.Process.Kill() }) // where the test failed in between
	go func() {
		defer close(c.stages)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			c.stages <- lines.Text()
		}
	}()
	return c
}

// reach waits until a stage has begun; false if the process ended before.
func (p *process) reach(stage string) bool {
	for name := range p.stages {
		p.seen = append(p.seen, name)
		if name == stage {
			return true
		}
	}
	return false
}

// last is the stage in which the process was last heard of.
func (p *process) last() string {
	if len(p.seen) == 0 {
		return "start"
	}
	return p.seen[len(p.seen)-1]
}

func (p *process) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// wait gives the exit status; killed is whether a SIGKILL was what ended the process.
func (p *process) wait(t testing.TB) (status int, killed bool) {
	t.Helper()
	for name := range p.stages {
		p.seen = append(p.seen, name)
	}
	var exit *exec.ExitError
	if err := p.command.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	state := p.command.ProcessState.Sys().(syscall.WaitStatus)
	return p.command.ProcessState.ExitCode(), state.Signaled() && state.Signal() == syscall.SIGKILL
}
