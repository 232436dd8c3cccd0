package live_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
)

// A blocked is a client that reads its answer when it may.
type blocked struct {
	*httptest.ResponseRecorder
	read chan struct{}
}

func (b blocked) Write(p []byte) (int, error) {
	<-b.read
	return b.ResponseRecorder.Write(p)
}

// sleepy is a body that arrives after some time.
type sleepy struct {
	io.Reader
	after time.Duration
}

func (s sleepy) Read(p []byte) (int, error) {
	time.Sleep(s.after)
	return s.Reader.Read(p)
}

// A graph that was replaced is freed when its last answer is made, not when that is read. Two are in memory at most: the
// next one waits for that.
func TestReplacedGraphsAreFreed(t *testing.T) {
	served(t, demo(), options(site.APIEFP)) // the first bundling starts timers, which must stay out of the bubble
	synctest.Test(t, func(t *testing.T) {
		l := started(t, options(site.APIEFP), 1, 1)
		read := make(chan struct{})
		slow := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			w := blocked{httptest.NewRecorder(), read}
			l.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/leaderboard/ranked", nil))
			slow <- w.ResponseRecorder
		}()
		synctest.Wait()
		want := get(l, "/api/v1/leaderboard/ranked").Body.String()
		changed := textSnapshot(map[string]string{
			"meta.json": `{"format":1,"as_of":"2026-11-20T00:00:00Z"}`, "lists.ndjson": "", "records.ndjson": "", "accounts.ndjson": "", "events.ndjson": "", "badges.ndjson": "",
		})
		for number := uint64(2); number < 6; number++ {
			r := twoChains(number, 1)
			r.Snapshot = changed
			if end := l.serve(t, r, live.NewGraph); end.Took != 0 {
				t.Errorf("round %d took %s, want no wait for readers", number, end.Took)
			}
			synctest.Wait()
			if got := l.Status().Graphs; got != 1 {
				t.Errorf("graphs in memory after round %d: got %d, want 1", number, got)
			}
		}
		close(read)
		if got := (<-slow).Body.String(); got != want {
			t.Errorf("the slow answer: got %.100s, want that of its graph, %.100s", got, want)
		}

		// An answer that is not made yet keeps its graph, and the round after the next one waits.
		posted := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			w := httptest.NewRecorder()
			body := sleepy{strings.NewReader(`["0x0000000000000000000000000000000000000001"]`), time.Second}
			r := httptest.NewRequest(http.MethodPost, "/api/v1/lists/1/buttonStateBatch", body)
			l.ServeHTTP(w, r)
			posted <- w
		}()
		synctest.Wait()
		for number := uint64(6); number < 8; number++ {
			r := twoChains(number, 1)
			r.Snapshot = demo()
			end := l.serve(t, r, live.NewGraph)
			if waited := end.Took > 0; waited != (number == 7) {
				t.Errorf("round %d took %s, want that the second one waits", number, end.Took)
			}
			if got := l.Status().Graphs; got > 2 {
				t.Errorf("graphs in memory: got %d, want two at most", got)
			}
		}
		if w := <-posted; w.Code != http.StatusNotFound || // the old graph has no list
			w.Header().Get("X-Heads") != "8453:5, 10:1" {
			t.Errorf("the answer: got %d %s with heads %q, want one of the old graph", w.Code, w.Body, w.Header().Get("X-Heads"))
		}
	})
}
