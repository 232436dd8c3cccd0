package live_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
)

// An event is one of a stream as a browser would give it.
type event struct{ id, name, data string }

// A stream is a client of /_live/events that reads at once.
type stream struct {
	*httptest.ResponseRecorder
	events chan event
	first  chan string // the first id
	buffer string
	id     string // the last one; only Write may look at it
}

// Write parses the complete events written so far.
func (s *stream) Write(p []byte) (int, error) {
	s.buffer += string(p)
	for {
		text, rest, whole := strings.Cut(s.buffer, "\n\n")
		if !whole {
			return len(p), nil
		}
		s.buffer = rest
		e := event{}
		for line := range strings.SplitSeq(text, "\n") {
			switch name, value, _ := strings.Cut(line, ": "); name {
			case "id":
				if s.id == "" {
					s.first <- value
				}
				s.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			}
		}
		if e.id = s.id; e.data != "" {
			s.events <- e
		}
	}
}

// Flush makes a stream an http.Flusher.
func (s *stream) Flush() {}

// listen streams events until leave is called, which waits for the end.
func listen(t *testing.T, l http.Handler, lastID string) (s *stream, leave func()) {
	t.Helper()
	s = &stream{ResponseRecorder: httptest.NewRecorder(), events: make(chan event, 5000), first: make(chan string, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, live.EventsPath, nil)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.ServeHTTP(s, r)
	}()
	return s, func() {
		cancel()
		<-done
	}
}

// A stream reports each round: the changes, and the heads of the graph.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t, options(site.APISpec), 10, 10)
		s, leave := listen(t, l, "")
		synctest.Wait()
		h := s.Header()
		if h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" || h.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("headers: got %v", h)
		}
		l.serve(t, twoChains(11, 10), live.NewHeads) // no round
		round := twoChains(12, 10)
		round.Snapshot, round.Lists, round.Undone = demo(), []string{"7", "9"}, []uint64{10}
		round.Accounts = []site.Address{{19: 1}, {19: 2}}
		l.serve(t, round, live.NewGraph)
		e := <-s.events
		asOf := time.Now().UTC().Format(time.RFC3339)
		want := `{"heads":{"10":10,"8453":12},"as_of":"` + asOf + `","accounts":["0x0000000000000000000000000000000000000001",` +
			`"0x0000000000000000000000000000000000000002"],"lists":["7","9"],"undone":[10]}`
		if e.name != "round" || e.data != want || !strings.HasSuffix(e.id, "-2") {
			t.Errorf("got %+v, want %s", e, want)
		}
		round = twoChains(13, 10)
		round.Snapshot, round.Accounts, round.Lists = demo(), make([]site.Address, 1001), []string{"7"}
		l.serve(t, round, live.NewGraph)
		var data map[string]any
		if err := json.Unmarshal([]byte((<-s.events).data), &data); err != nil {
			t.Fatal(err)
		}
		if data["many"] != true || data["accounts"] != nil || data["lists"] != nil || !reflect.DeepEqual(data["undone"], []any{}) {
			t.Errorf("a round with many accounts: got %v, want many", data)
		}
		leave()
		if got := l.Status().Streams; got != 0 {
			t.Errorf("streams: got %d, want none", got)
		}
	})
}

// A client that reconnects gets each missed round once while the round is retained, otherwise one
// reset.
func TestLastEventID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t, options(site.APISpec), 1, 1)
		const rounds = 60
		got := make([][]string, 40)
		var clients sync.WaitGroup
		for client := range got {
			clients.Go(func() {
				random := rand.New(rand.NewPCG(uint64(client), 1))
				last := ""
				for len(got[client]) < rounds {
					s, leave := listen(t, l, last)
					if last == "" {
						last = <-s.first
					}
					for range 1 + random.IntN(20) {
						if len(got[client]) == rounds {
							break
						}
						e := <-s.events
						got[client], last = append(got[client], e.name+" "+e.id[strings.Index(e.id, "-")+1:]), e.id
					}
					leave()
					time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Second)
		var want []string
		for number := uint64(2); number < 2+rounds; number++ {
			round := twoChains(number, 1)
			round.Snapshot = demo()
			l.serve(t, round, live.NewGraph)
			want = append(want, fmt.Sprint("round ", number))
			time.Sleep(50 * time.Millisecond)
		}
		clients.Wait()
		for client, all := range got {
			if !slices.Equal(all, want) {
				t.Errorf("client %d: got %v, want %v", client, all, want)
			}
		}
		s, leave := listen(t, l, "")
		prefix, _, _ := strings.Cut(<-s.first, "-")
		leave()
		for _, id := range []string{"x-3", prefix + "-0", prefix + "-999", prefix + "-x", prefix + "-007", "3", "-", prefix + "-18446744073709551615"} {
			s, leave := listen(t, l, id)
			if e := <-s.events; e.name != "reset" || e.id != fmt.Sprint(prefix, "-", 1+rounds) {
				t.Errorf("after %s: got %+v, want a reset", id, e)
			}
			leave()
		}
	})
}

// A stuck is a client that never reads: a write ends with its deadline, as one to a connection whose buffers are full.
type stuck struct {
	header   http.Header
	deadline time.Time
	writes   int
	mu       *sync.Mutex
	held     map[*byte]int // what writers hold while they wait, by where it is
}

func (s *stuck) Header() http.Header                 { return s.header }
func (s *stuck) WriteHeader(int)                     {}
func (s *stuck) FlushError() error                   { return nil }
func (s *stuck) SetWriteDeadline(at time.Time) error { s.deadline = at; return nil }
func (s *stuck) SetReadDeadline(time.Time) error     { return nil }
func (s *stuck) Write(p []byte) (int, error) {
	if s.writes++; s.writes == 1 {
		return len(p), nil // the headers, and where to resume
	}
	s.mu.Lock()
	s.held[&p[0]] = cap(p)
	s.mu.Unlock()
	time.Sleep(time.Until(s.deadline))
	return 0, os.ErrDeadlineExceeded
}

// 10,000 clients that do not read are dropped after 30 seconds. Until then they share the same
// bytes, so they cost only their connections. Another client is rejected.
func TestStreamsThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t, options(site.APISpec), 1, 1)
		const most = 10_000
		var mu sync.Mutex
		held := map[*byte]int{}
		var streams sync.WaitGroup
		for i := range most {
			r := httptest.NewRequest(http.MethodGet, live.EventsPath, nil)
			r.RemoteAddr = fmt.Sprintf("192.0.2.%d:7", i%8) // each has its share
			streams.Go(func() { l.ServeHTTP(&stuck{header: http.Header{}, mu: &mu, held: held}, r) })
		}
		synctest.Wait()
		if w := get(l, live.EventsPath); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("one stream more: got %d %v, want a 503 with Retry-After", w.Code, w.Header())
		}
		begun := time.Now()
		const rounds = 20
		for number := uint64(2); number < 2+rounds; number++ {
			round := twoChains(number, 1)
			round.Snapshot, round.Accounts = demo(), make([]site.Address, 900)
			l.serve(t, round, live.NewGraph)
			time.Sleep(100 * time.Millisecond)
		}
		if got := l.Status().Streams; got != most {
			t.Errorf("streams after 2 seconds: got %d, want %d", got, most)
		}
		streams.Wait()
		if took := time.Since(begun); took != 30*time.Second {
			t.Errorf("the streams ended after %s, want 30 s", took)
		}
		if got := l.Status().Streams; got != 0 {
			t.Errorf("streams: got %d, want none", got)
		}
		bytes := 0
		for _, n := range held {
			bytes += n
		}
		if len(held) > rounds || bytes > rounds*64<<10 {
			t.Errorf("pending writes: got %d buffers of %d bytes, want only those of the rounds", len(held), bytes)
		}
	})
}

// pipes is a listener whose connections are in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Streams over connections outlive the limits of other answers, hear a heartbeat, and end when Run does. A client that
// does not read is dropped; the others go on.
func TestStreamsOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t, options(site.APISpec), 1, 1)
		listener := make(pipes)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- server.Serve(ctx, listener, l, slog.New(slog.DiscardHandler)) }()
		connect := func() *bufio.Reader {
			client, other := net.Pipe()
			listener <- other
			if _, err := io.WriteString(client, "GET "+live.EventsPath+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			return bufio.NewReaderSize(client, 16)
		}
		begun := time.Now()
		var text strings.Builder
		ended := make(chan time.Duration, 1)
		reader := connect()
		go func() {
			_, _ = io.Copy(&text, reader)
			ended <- time.Since(begun)
		}()
		connect() // it never reads
		synctest.Wait()
		if got := l.Status().Streams; got != 2 {
			t.Errorf("streams: got %d, want 2", got)
		}
		time.Sleep(100 * time.Second)
		synctest.Wait()
		if got := l.Status().Streams; got != 1 {
			t.Errorf("streams after 100 s: got %d, want the one that reads", got)
		}
		round := twoChains(2, 1)
		round.Snapshot = demo()
		l.serve(t, round, live.NewGraph)
		time.Sleep(time.Second)
		if err := l.stop(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if took := <-ended; took != 101*time.Second {
			t.Errorf("the stream ended after %s, want 101 s", took)
		}
		if beats := strings.Count(text.String(), "\n:\n"); beats != 6 || strings.Count(text.String(), "event: round") != 1 {
			t.Errorf("got %d heartbeats in %s, want 6 and a round", beats, text.String())
		}
	})
}
