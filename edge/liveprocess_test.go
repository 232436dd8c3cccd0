package edge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// The environment of a process that serves a site as `followpress live` does: see serveLive.
const (
	liveAPI   = "EDGE_TEST_LIVE_API"
	liveAt    = "EDGE_TEST_LIVE_ADDRESS"
	liveHead  = "EDGE_TEST_LIVE_HEAD"
	liveFault = "EDGE_TEST_LIVE_FAULT"
)

// A liveProcess is a separate process that can be killed, suspended and restarted at the same
// address.
type liveProcess struct {
	t            testing.TB
	api, address string
	fault        string // file that has the fault at the moment
	*process.Process
}

func newLive(t testing.TB, api string) *liveProcess {
	t.Helper()
	servers.Wanted(t)
	return &liveProcess{t: t, api: api, address: servers.FreeAddress(t), fault: filepath.Join(t.TempDir(), "fault")}
}

func (l *liveProcess) url() string { return "http://" + l.address }

// begin starts it with a newest block, and waits until it listens.
func (l *liveProcess) begin(head int) {
	l.t.Helper()
	l.Process = process.Start(l.t, process.Self(l.t, []string{
		liveAPI + "=" + l.api, liveAt + "=" + l.address, liveHead + "=" + strconv.Itoa(head), liveFault + "=" + l.fault,
	}, "-test.run=^$"))
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if connection, err := net.DialTimeout("tcp", l.address, time.Second); err == nil {
			_ = connection.Close() // nothing was sent
			return
		}
		if time.Since(begun) > 20*time.Second {
			l.t.Fatal("live does not listen")
		}
	}
}

func (l *liveProcess) kill() {
	l.Signal(syscall.SIGKILL)
	<-l.Ended()
}

// fails sets the fault of later answers: "lag", "reset", "stall", or "" for none.
func (l *liveProcess) fails(how string) {
	write(l.t, filepath.Dir(l.fault), filepath.Base(l.fault), how)
}

// triedPath tells how many requests had a fault.
const triedPath = "/tried"

// tried returns the number of requests that had a fault so far.
func (l *liveProcess) tried(t testing.TB) int64 {
	t.Helper()
	n, err := strconv.ParseInt(ask(t, http.MethodGet, l.url(), triedPath).body, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// before puts live in front of an edge.
func (l *liveProcess) before(o *edge.Options) { o.Live = l.url() }

// serveLive returns the handler of `followpress live` over the snapshot of the conformance cases.
func serveLive() error {
	head, err := strconv.ParseUint(os.Getenv(liveHead), 10, 64)
	if err != nil {
		return err
	}
	handler, err := liveHandler(context.Background(), site.Config{API: os.Getenv(liveAPI)}, head)
	if err != nil {
		return err
	}
	var tried atomic.Int64
	return http.ListenAndServe(os.Getenv(liveAt), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == triedPath {
			_, _ = fmt.Fprint(w, tried.Load())
			return
		}
		fault, _ := os.ReadFile(os.Getenv(liveFault)) // there is none at first
		if len(fault) > 0 {
			tried.Add(1)
		}
		switch string(fault) {
		case "lag":
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "reset":
			connection, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = connection.(*net.TCPConn).SetLinger(0) // it is closed anyway
				_ = connection.Close()
			}
		case "stall":
			handler.ServeHTTP(stallingWriter{w}, r)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
}

// liveHandler answers from a graph as of a block of one chain, while blocks of another one come.
func liveHandler(ctx context.Context, config site.Config, head uint64) (http.Handler, error) {
	files := fixtures.Conformance()
	if config.EFP() {
		files = fixtures.ConformanceEFP()
	}
	blocks := &quietBlocks{head: head, snapshot: afero.NewBasePathFs(afero.FromIOFS{FS: files}, "snapshot")}
	quiet := slog.New(slog.DiscardHandler)
	l, err := live.New(blocks, live.Options{Generator: generator.Options{Config: config}, Log: quiet})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	for l.Ready() != nil {
		select {
		case err := <-ended:
			return nil, errors.Join(err, errors.New("live ended"))
		case <-time.After(5 * time.Millisecond):
		}
	}
	return l, nil
}

// A quietBlocks is a source whose graph stays the same.
type quietBlocks struct {
	head, other uint64
	snapshot    afero.Fs
}

// Next returns a round: the first one at once, and one with a block each 400 ms.
func (q *quietBlocks) Next(ctx context.Context) (source.Round, error) {
	if q.other > 0 {
		select {
		case <-time.After(400 * time.Millisecond):
		case <-ctx.Done():
			return source.Round{}, ctx.Err()
		}
	}
	q.other++
	now := time.Now().UnixMilli()
	return source.Round{Snapshot: q.snapshot, Lists: []string{"1"}, Heads: []source.Head{
		{Chain: 8453, Block: q.head, Time: now, Finalized: q.head - 10}, {Chain: 10, Block: q.other, Time: now},
	}}, nil
}

// heads says that an answer is of a live graph as of a block.
func heads(a answer, head int) bool {
	return strings.HasPrefix(a.header.Get("X-Heads"), fmt.Sprintf("8453:%d,", head))
}

const liveCaching = live.DefaultCacheControl

// A stallingWriter stops in the middle of a body.
type stallingWriter struct{ http.ResponseWriter }

// Write sends half of the body.
func (w stallingWriter) Write(body []byte) (int, error) {
	n, err := w.ResponseWriter.Write(body[:len(body)/2])
	_ = http.NewResponseController(w.ResponseWriter).Flush() // the edge may be gone
	time.Sleep(time.Minute)
	return n, err
}
