package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

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
