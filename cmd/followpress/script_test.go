package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/tempdir"
)

// TestMain makes the test binary followpress itself for the scripts.
func TestMain(m *testing.M) {
	tempdir.InMemory()
	testscript.Main(m, map[string]func(){"followpress": main})
}

// TestScripts pins the behaviour of the command line. A script starts in a folder with the
// demo snapshot in demo/. Besides the commands of testscript it has:
//
//	status N program args...     run a program that must end with exit status N
//	lines N stdout|stderr|FILE   a text must have N lines
//	get PATH                     print what http://$ADDR/PATH answers, once it answers
//
// $ADDR is a free address.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setUp,
		Cmds:  map[string]func(ts *testscript.TestScript, neg bool, args []string){"status": status, "lines": lines, "get": get},
	})
}

func setUp(env *testscript.Env) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	env.Setenv("ADDR", listener.Addr().String())
	env.Setenv("COLUMNS", "100")                // width of --help
	env.Setenv("FOLLOWPRESS_EXPLORER", "false") // each process would bundle it; a script that wants it says so
	env.Setenv("FOLLOWPRESS_NO_SYNC", "1")      // else a script waits for what all tests write
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	return errors.Join(listener.Close(), os.CopyFS(env.WorkDir+"/demo", fixtures.Demo()))
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program args...")
	}
	got, exit := 0, (*exec.ExitError)(nil)
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("status: got %d, want %s", got, args[0])
	}
}

func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines N stdout|stderr|FILE")
	}
	if got := strings.Count(ts.ReadFile(args[1]), "\n"); strconv.Itoa(got) != args[0] {
		ts.Fatalf("lines of %s: got %d, want %s", args[1], got, args[0])
	}
}

// soon is a time limit, longer than a server needs to start.
const soon = 20 * time.Second

func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: get PATH")
	}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		response, err := http.Get("http://" + ts.Getenv("ADDR") + args[0])
		if err == nil {
			_, err = io.Copy(ts.Stdout(), response.Body)
			response.Body.Close()
		}
		if err == nil {
			return
		}
		if time.Since(begun) > soon {
			ts.Check(err)
		}
	}
}
