package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
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
//	get PATH|URL [REGEXP]        print what http://$ADDR/PATH answers, once it answers and matches
//	chains                       start nodes with current blocks, and set $OTHERS, $SPARE and $STUCK to their URLs
//
// $ADDR and $STATUS are free addresses.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setUp,
		Cmds:  map[string]func(ts *testscript.TestScript, neg bool, args []string){"status": status, "lines": lines, "get": get, "chains": chains},
	})
}

func setUp(env *testscript.Env) error {
	for _, name := range []string{"ADDR", "STATUS"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer listener.Close()
		env.Setenv(name, listener.Addr().String())
	}
	env.Setenv("COLUMNS", "100")                // width of --help
	env.Setenv("FOLLOWPRESS_EXPLORER", "false") // each process would bundle it; a script that wants it says so
	env.Setenv("FOLLOWPRESS_NO_SYNC", "1")      // else a script waits for what all tests write
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	return os.CopyFS(env.WorkDir+"/demo", fixtures.Demo())
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
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: get PATH|URL [REGEXP]")
	}
	url := args[0]
	if strings.HasPrefix(url, "/") {
		url = "http://" + ts.Getenv("ADDR") + url
	}
	want, err := regexp.Compile(strings.Join(args[1:], ""))
	ts.Check(err)
	var body []byte
	for begun := time.Now(); time.Since(begun) < soon; time.Sleep(5 * time.Millisecond) {
		var response *http.Response
		if response, err = http.Get(url); err != nil {
			continue
		}
		body, err = io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil && want.Match(body) {
			_, err = ts.Stdout().Write(body)
			ts.Check(err)
			return
		}
	}
	ts.Fatalf("%s: got %s (%v), want %q", url, body, err, want)
}

// chains starts a node for each chain. The newest block of $STUCK, of chain 10, is an hour old. $SPARE has that chain's newer
// blocks, and $OTHERS are the nodes of the other chains.
func chains(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: chains")
	}
	played := history.Random(5, history.Options{Chains: history.Production(), Transactions: 50})
	var last int64
	for _, b := range played.Blocks {
		last = max(last, b.Time)
	}
	now := time.Now().Unix()
	for i := range played.Blocks {
		played.Blocks[i].Time += now - 3600 - last
	}
	start := func(chain uint64, at int64) (url string) {
		node := meanrpc.New(chain, slices.Values(played.Blocks))
		end, _ := played.Last(chain)
		head := end.Number
		for node.Time(head) < at {
			head++
		}
		node.SetHead(head, head, head)
		server := httptest.NewServer(node)
		ts.Defer(server.Close)
		return server.URL
	}
	var others []string
	for _, c := range played.Chains {
		if c.ID != 10 {
			others = append(others, fmt.Sprintf("%d=%s", c.ID, start(c.ID, now)))
		}
	}
	ts.Setenv("OTHERS", strings.Join(others, ";"))
	ts.Setenv("SPARE", start(10, now))
	ts.Setenv("STUCK", start(10, now-3600))
}
