package edge_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// The environment of a process that serves a site as `followpress live` does: see serveLive.
const (
	liveSite  = "EDGE_TEST_LIVE_SITE"
	liveAt    = "EDGE_TEST_LIVE_ADDRESS"
	liveHead  = "EDGE_TEST_LIVE_HEAD"
	liveFault = "EDGE_TEST_LIVE_FAULT"
)

// A liveProcess is a process of its own that can be killed, stopped and started again at the same address.
type liveProcess struct {
	t             testing.TB
	site, address string
	fault         string // file that has the fault at the moment
	*process.Process
}

func newLive(t testing.TB, site string) *liveProcess {
	t.Helper()
	servers.Wanted(t)
	return &liveProcess{t: t, site: site, address: servers.FreeAddress(t), fault: filepath.Join(t.TempDir(), "fault")}
}

func (l *liveProcess) url() string { return "http://" + l.address }

// begin starts it with a newest block, and waits until it listens.
func (l *liveProcess) begin(head int) {
	l.t.Helper()
	l.Process = process.Start(l.t, process.Self(l.t, []string{
		liveSite + "=" + l.site, liveAt + "=" + l.address, liveHead + "=" + strconv.Itoa(head), liveFault + "=" + l.fault,
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

// fails makes it fail from now on: "lag", "reset", "stall"; "" is none.
func (l *liveProcess) fails(how string) {
	write(l.t, filepath.Dir(l.fault), filepath.Base(l.fault), how)
}

// before puts live in front of an edge.
func (l *liveProcess) before(o *edge.Options) { o.Live = l.url() }

// serveLive is the process: the handler of the fallback with what live adds to it.
func serveLive() error {
	store, err := storage.OpenSite(os.Getenv(liveSite))
	if err != nil {
		return err
	}
	handler, err := server.New(context.Background(), store, server.Options{})
	if err != nil {
		return err
	}
	head, err := strconv.Atoi(os.Getenv(liveHead))
	if err != nil {
		return err
	}
	return http.ListenAndServe(os.Getenv(liveAt), liveHandler(handler, head, func() string {
		fault, _ := os.ReadFile(os.Getenv(liveFault)) // there is none at first
		return string(fault)
	}))
}

// liveHandler adds to a handler what live adds: headers, waiting for a block, and events.
func liveHandler(handler http.Handler, head int, fault func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = &liveWriter{ResponseWriter: w, head: head, after: r.Header.Get("X-After"), fault: fault()}
		switch fault() {
		case "lag":
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case "reset":
			connection, _, err := w.(*liveWriter).ResponseWriter.(http.Hijacker).Hijack()
			if err == nil {
				_ = connection.(*net.TCPConn).SetLinger(0) // it is closed anyway
				_ = connection.Close()
			}
			return
		}
		if after := r.Header.Get("X-After"); after != "" {
			_, number, _ := strings.Cut(after, ":")
			block, err := strconv.Atoi(number)
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"response":"X-After"}`)
				return
			}
			if block > head {
				wait, _ := strconv.Atoi(strings.TrimPrefix(r.Header.Get("Prefer"), "wait="))
				select {
				case <-time.After(time.Duration(wait) * time.Second):
				case <-r.Context().Done():
				}
			}
		}
		switch r.URL.Path {
		case "/_live/events":
			serveEvents(w.(*liveWriter).ResponseWriter, r)
		case "/_live/status":
			_, _ = fmt.Fprintf(w, `{"heads":{"8453":%d}}`, head)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

// serveEvents sends an event each 100 ms.
func serveEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = fmt.Fprintf(w, ": after %q\n\n", r.Header.Get("Last-Event-ID"))
	for n := 1; ; n++ {
		_ = http.NewResponseController(w).Flush() // an edge that is gone is noticed below
		select {
		case <-r.Context().Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
		_, _ = fmt.Fprintf(w, "id: a1b2c3-%d\nevent: round\ndata: {}\n\n", n)
	}
}

const liveCaching = "public, max-age=2, stale-while-revalidate=10, stale-if-error=86400"

// A liveWriter adds the headers of live to an answer.
type liveWriter struct {
	http.ResponseWriter
	head         int
	after, fault string
	begun        bool
}

func (w *liveWriter) WriteHeader(status int) {
	w.begun = true
	h := w.Header()
	h.Set(site.HeaderAsOf, "2026-11-23T17:00:00Z")
	h.Set(site.HeaderHeads, fmt.Sprintf("8453:%d", w.head))
	h.Set(site.HeaderFinalized, fmt.Sprintf("8453:%d", w.head-10))
	switch caching := h.Get("Cache-Control"); {
	case w.after != "":
		h.Set("Cache-Control", "no-store")
	case strings.Contains(caching, "immutable") || strings.Contains(caching, "no-store") || status == http.StatusNoContent:
	case status == http.StatusOK || status == http.StatusNotModified:
		h.Set("Cache-Control", liveCaching)
	case status == http.StatusNotFound:
		h.Set("Cache-Control", "public, max-age=2")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *liveWriter) Write(body []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	if w.fault == "stall" {
		n, err := w.ResponseWriter.Write(body[:len(body)/2])
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the edge may be gone
		time.Sleep(time.Minute)
		return n, err
	}
	return w.ResponseWriter.Write(body)
}
