package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// shardsOf adds a list to a site, with search shards of the given approximate sizes and number of
// entries. Every tenth entry contains "fox".
func shardsOf(t *testing.T, files afero.Fs, list string, entries int, sizes ...int) {
	t.Helper()
	for shard, size := range sizes {
		header := scan.ShardHeader{List: list, Total: len(sizes) * entries, Shards: len(sizes), ShardSize: site.SearchShardSize}
		body := header.Append(nil)
		for n := range entries {
			if n > 0 {
				body = append(body, ',')
			}
			name := "someone"
			if n%10 == 0 {
				name = "fox"
			}
			body = fmt.Appendf(body, `{"version":1,"record_type":"address","data":"%s","tags":[],"ens":{"name":"%s","avatar":"%s"}}`,
				numbered(n), name, strings.Repeat("x", size))
		}
		if err := afero.WriteFile(files, string(site.SearchShardKey(list, shard)), append(body, "]}"...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Reading ahead never blocks a search from the shard that it needs next, however much
// larger than the first shard the others are.
func TestSearchesGiveWay(t *testing.T) {
	files := demo(t)
	const entries, large = 100, 40 << 10 // 4 MB a shard
	shardsOf(t, files, "7000", entries, 10, large, large, large, large, large, large, large)
	shardsOf(t, files, "7001", entries, large, large, large)
	for _, c := range []struct {
		path    string
		clients int
		found   int
	}{
		{"lists/7000/searchFollowing?term=nobody", 1, 0},
		{"lists/7000/searchFollowing?term=nobody", 3, 0},
		{"lists/7001/searchFollowing?term=fox&limit=30", 6, 30}, // 1.2 MB a page
	} {
		handler := newHandler(t, storage.NewFolder(files), server.Options{CacheBytes: 1 << 20})
		var group sync.WaitGroup
		for range c.clients {
			group.Go(func() {
				w := ask(handler, "/api/v1/"+c.path)
				if got := strings.Count(w.Body.String(), `"version"`); w.Code != http.StatusOK || got != c.found {
					t.Errorf("%s by %d: got status %d and %d entries, want 200 and %d", c.path, c.clients, w.Code, got, c.found)
				}
			})
		}
		group.Wait()
		eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
	}
}

// A panickingStore panics where a search shard is read.
type panickingStore struct{ server.Store }

func (s panickingStore) Get(ctx context.Context, key site.Key) ([]byte, error) {
	if strings.HasPrefix(string(key), "_search/lists/") {
		panic("a fault of the store")
	}
	return s.Store.Get(ctx, key)
}

// A search that panics releases its memory.
func TestAPanicHoldsNothing(t *testing.T) {
	handler := newHandler(t, panickingStore{storage.NewFolder(demo(t))}, server.Options{})
	if w := ask(handler, largeList+"searchFollowing?term=a"); w.Code < http.StatusInternalServerError {
		t.Errorf("got status %d, want a fault", w.Code)
	}
	eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
}

// While a slow client receives a large object that the cache has dropped, an object
// larger than the whole in-flight budget is answered too.
func TestALargeObjectBesideASlowClient(t *testing.T) {
	files := demo(t)
	for name, size := range map[string]int{"5000": 2500 << 10, "5001": 7 << 20} {
		if err := afero.WriteFile(files, "api/v1/lists/"+name+"/records", make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	handler := newHandler(t, storage.NewFolder(files), server.Options{CacheBytes: 1 << 20})
	var asked, done sync.WaitGroup
	asked.Add(1)
	slow := &slowClient{ResponseRecorder: httptest.NewRecorder(), asked: &asked, take: make(chan struct{})}
	done.Go(func() {
		handler.ServeHTTP(slow, httptest.NewRequest(http.MethodGet, "/api/v1/lists/5000/records", nil))
	})
	asked.Wait()
	if w := ask(handler, "/api/v1/lists/5001/records"); w.Code != http.StatusOK {
		t.Errorf("the larger object: got status %d, want 200", w.Code)
	}
	close(slow.take)
	done.Wait()
	eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
}

// A farStore takes time for every object, and counts concurrent reads.
type farStore struct {
	server.Store
	away             time.Duration
	reads, now, most atomic.Int64
}

func (s *farStore) Get(ctx context.Context, key site.Key) ([]byte, error) {
	if strings.HasPrefix(string(key), "_search/lists/") {
		s.reads.Add(1)
		now := s.now.Add(1)
		defer s.now.Add(-1)
		for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
		}
		time.Sleep(s.away)
	}
	return s.Store.Get(ctx, key)
}

// longList returns a site with one list of that many search shards; every entry has a name,
// and only that of the last one contains "fox".
func longList(t *testing.T, shards int) server.Store {
	t.Helper()
	var records, accounts strings.Builder
	follows := shards * site.SearchShardSize
	for n := range follows {
		name := "someone"
		if n == follows-1 {
			name = "fox"
		}
		fmt.Fprintf(&records, `{"token_id":"1","version":1,"record_type":"address","data":"%s"}`+"\n", numbered(n))
		fmt.Fprintf(&accounts, `{"address":"%s","ens":{"name":"%s %d"}}`+"\n", numbered(n), name, n)
	}
	snapshot := snapshotOf(`{"token_id":"1","owner":"`+numbered(1<<30)+`"}`, records.String(), accounts.String())
	return storage.NewFolder(generated(t, snapshot, site.Config{}))
}

// A search over many shards reads eight at a time, in order, and at most eight beyond
// the one that fills the page.
func TestShardsAreReadAhead(t *testing.T) {
	const shards, away = 40, 100 * time.Millisecond
	folder := longList(t, shards)
	for _, c := range []struct {
		query       string
		found       int
		least, most int64 // reads
	}{
		{"term=fox", 1, shards, shards},
		{"term=nobody", 0, shards, shards},
		{"term=someone", 10, 1, 1},
		{"term=999&limit=6", 6, 6, 6 + 8}, // one in each of the first six shards
		{"offset=500", 10, 1, 1},
		{"offset=995", 10, 2, 2},
	} {
		var took time.Duration // on virtual time
		store := &farStore{Store: folder, away: away}
		var w *httptest.ResponseRecorder
		synctest.Test(t, func(t *testing.T) {
			handler := newHandler(t, store, server.Options{})
			defer handler.Close()
			begun := time.Now()
			w = ask(handler, "/api/v1/lists/1/searchFollowing?"+c.query)
			took = time.Since(begun)
			eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
			time.Sleep(2 * away) // until unneeded prefetches have arrived
		})
		if got := strings.Count(w.Body.String(), `"version"`); w.Code != http.StatusOK || got != c.found {
			t.Errorf("%s: got status %d and %d entries, want 200 and %d", c.query, w.Code, got, c.found)
		}
		if got := store.reads.Load(); got < c.least || got > c.most {
			t.Errorf("%s: got %d reads, want %d to %d", c.query, got, c.least, c.most)
		}
		if got := store.most.Load(); got > 8 {
			t.Errorf("%s: got %d reads at once, want at most 8", c.query, got)
		}
		if one := time.Duration(store.reads.Load()) * away; c.least == shards && took > one*2/3 {
			t.Errorf("%s: got an answer after %v, want less than two thirds of the %v that one shard after the other takes", c.query, took, one)
		}
	}
}
