package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A damaged store replaces a text in the objects below _search/.
type damaged struct {
	server.Store
	old, new string
}

func (s damaged) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, err := s.Store.Get(ctx, key)
	return bytes.ReplaceAll(body, []byte(s.old), []byte(s.new)), err
}

// TestShardsOfAnotherSize: a false size in a shard must not lead beyond the rows of the table.
func TestShardsOfAnotherSize(t *testing.T) {
	t.Parallel()
	files := efpSite(t, afero.FromIOFS{FS: efpSnapshot(3, 2_500, 10_100)}, site.NamesLookup)
	for _, damage := range [][2]string{
		{`"shard_size":1000,`, `"shard_size":999999999999999999,`},
		{`"shard_size":10000,`, `"shard_size":20000,`},
	} {
		handler := newHandler(t, damaged{storage.NewFolder(files), damage[0], damage[1]}, server.Options{})
		for _, path := range []string{
			"lists/1/following?sort=followers&offset=200", "lists/1/following?offset=1500", "lists/1/following?sort=earliest&offset=2000",
			"lists/1/followers?sort=followers&offset=200&tags=a", "leaderboard/ranked?sort=followers&offset=10050", "leaderboard/search?term=n1",
		} {
			if w := answerTo(handler, "GET", "/api/v1/"+path, nil); w.Code != http.StatusOK && w.Code != http.StatusServiceUnavailable {
				t.Errorf("%s with %s: got %d, want 200 or 503", path, damage[1], w.Code)
			}
		}
	}
}

// TestRareTermsReadAhead: a page that few rows belong to reads several shards at the same time.
func TestRareTermsReadAhead(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"lists/1/searchFollowing?term=zzz", "lists/2/following?tags=none"} {
		store := &farStore{Store: storage.NewFolder(longSite(t)), away: 50 * time.Millisecond}
		handler := newHandler(t, store, server.Options{})
		if w := answerTo(handler, "GET", "/api/v1/"+path, nil); w.Code != http.StatusOK {
			t.Fatalf("%s: got %d", path, w.Code)
		}
		if reads, most := store.reads.Load(), store.most.Load(); reads != 4 || most < 2 {
			t.Errorf("%s: got %d shards, at most %d at a time, want 4, the first alone and then more", path, reads, most)
		}
	}
}

// TestLargePagesAreMadeOnce: pages that do not fit the memory at the same time wait for it before they read
// anything. They used to begin, and begin again one after the other.
func TestLargePagesAreMadeOnce(t *testing.T) {
	t.Parallel()
	const limit = 300
	store := &counting{Store: storage.NewFolder(longSite(t))}
	store.away.Store(int64(100 * time.Microsecond))
	handler := newHandler(t, store, server.Options{CacheBytes: 1, InFlightBytes: 3 << 20, Timeout: time.Minute})
	var wg sync.WaitGroup
	pages := 0
	for _, page := range []string{"lists/1/allFollowing", "lists/1/allFollowers", "lists/2/allFollowing"} {
		for offset := 1; offset < longFollowers; offset += limit {
			pages++
			wg.Go(func() {
				path := fmt.Sprintf("/api/v1/%s?include=ens&limit=%d&offset=%d", page, limit, offset)
				if w := answerTo(handler, "GET", path, nil); w.Code != http.StatusOK {
					t.Errorf("%s: got %d", path, w.Code)
				}
			})
		}
	}
	wg.Wait()
	if got, most := store.requests.Load(), int64(pages*(limit+5)); got > most {
		t.Errorf("got %d requests to the store for %d pages, want at most %d", got, pages, most)
	}
}
