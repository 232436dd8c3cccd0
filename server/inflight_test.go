package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// longRecords returns a site of lists whose records take more than a MiB each.
func longRecords(t *testing.T, lists int) server.Store {
	t.Helper()
	files := demo(t)
	for list := range lists {
		var records []byte
		for n := range 12_000 {
			records = fmt.Appendf(records, `,{"version":1,"record_type":"address","data":"%s","tags":["list%d"]}`, numbered(n), list)
		}
		key := fmt.Sprintf("api/v1/lists/%d/records", 5000+list)
		if err := afero.WriteFile(files, key, append(append([]byte(`{"records":[`), records[1:]...), "]}"...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return storage.NewFolder(files)
}

// A slow client reads nothing until the test says so.
type slowClient struct {
	*httptest.ResponseRecorder
	asked   *sync.WaitGroup
	take    chan struct{}
	arrived sync.Once
}

func (c *slowClient) Write(body []byte) (int, error) {
	c.arrived.Do(c.asked.Done)
	<-c.take
	return c.ResponseRecorder.Write(body)
}

// Slow clients of the same object share one copy, even if the cache has no room for it.
// Requests that find no memory are refused after a while. In the end nothing is counted
// as in flight.
func TestAnswersInFlight(t *testing.T) {
	const clients, size = 40, 2 << 20
	for _, query := range []string{"", "?includeTags=false"} {
		store := &recordingStore{Store: longRecords(t, 3)}
		// The cache keeps nothing that is large; one large object is admitted at a time.
		handler := newHandler(t, store, server.Options{CacheBytes: 1 << 20, InFlightBytes: 3 << 20, Timeout: 2 * time.Second})
		path := func(list int) string { return fmt.Sprintf("/api/v1/lists/%d/records%s", 5000+list, query) }
		want := ask(handler, path(0)).Body.String()
		eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
		store.objects()

		var asked, done sync.WaitGroup
		var whole atomic.Int64
		take := make(chan struct{})
		asked.Add(clients)
		for range clients {
			done.Go(func() {
				w := &slowClient{ResponseRecorder: httptest.NewRecorder(), asked: &asked, take: take}
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path(0), nil))
				if w.Code == http.StatusOK && w.Body.String() == want {
					whole.Add(1)
				}
			})
		}
		asked.Wait() // when they have the object, and hold it
		if got := handler.InFlight(); got > size {
			t.Errorf("%s: %d clients: got %d bytes in flight, want at most %d", path(0), clients, got, size)
		}
		if got := store.objects(); len(got) > 1 {
			t.Errorf("%s: got %d reads for %d clients, want 1", path(0), len(got), clients)
		}
		w := ask(handler, path(1))
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s, for which there is no room: got status %d, %v, want 503 with Retry-After", path(1), w.Code, w.Header())
		}
		for _, small := range []string{largeList + "details", largeList + "searchFollowing?term=a&limit=100", "/_site"} {
			if w := ask(handler, small); w.Code != http.StatusOK {
				t.Errorf("%s, for which there is room: got status %d, want 200", small, w.Code)
			}
		}
		close(take)
		done.Wait()
		if whole.Load() != clients {
			t.Errorf("%s: got %d answers, want %d", path(0), whole.Load(), clients)
		}
		eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
		if w := ask(handler, path(1)); w.Code != http.StatusOK {
			t.Errorf("%s afterwards: got status %d, want 200", path(1), w.Code)
		}
	}
}

// In any mix of requests, aborted ones too, with a small cache, nothing is counted as in
// flight in the end.
func TestNothingStaysInFlight(t *testing.T) {
	sites := twoSites(t)
	handler := newHandler(t, sites[0], server.Options{CacheBytes: 64 << 10, InFlightBytes: 3 << 20})
	var group sync.WaitGroup
	for client := range 8 {
		group.Go(func() {
			paths := questions()
			for n := client; n < 4*len(paths); n += 8 {
				method := []string{http.MethodGet, http.MethodHead}[n%2]
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/api/v1/"+paths[n%len(paths)], nil))
			}
		})
	}
	group.Wait()
	eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
}

// A page larger than the budget for pages is answered nevertheless, one at a time, and ends at 8 MiB.
func TestAPageOfLongTexts(t *testing.T) {
	for avatar, want := range map[int]int{10 << 10: 100, 200 << 10: 40} {
		files := demo(t)
		const entries = 100
		var list strings.Builder
		for n := range entries {
			fmt.Fprintf(&list, `,{"version":1,"record_type":"address","data":"%s","tags":[],"ens":{"name":"","avatar":"%s"}}`, numbered(n), strings.Repeat("x", avatar))
		}
		header := scan.ShardHeader{List: "7000", Total: entries, Shards: 1, ShardSize: site.SearchShardSize}
		if err := afero.WriteFile(files, string(site.SearchShardKey("7000", 0)), append(header.Append(nil), list.String()[1:]+"]}"...), 0o644); err != nil {
			t.Fatal(err)
		}
		handler := newHandler(t, storage.NewFolder(files), server.Options{InFlightBytes: 3 << 20, Timeout: time.Minute})
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				w := ask(handler, "/api/v1/lists/7000/searchFollowing?limit=100")
				if got := strings.Count(w.Body.String(), `"version"`); w.Code != http.StatusOK || got != want {
					t.Errorf("avatars of %d bytes: got status %d and %d entries, want 200 and %d", avatar, w.Code, got, want)
				}
			})
		}
		group.Wait()
		eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
	}
}
