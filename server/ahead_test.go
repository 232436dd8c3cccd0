package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

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
	snapshot := afero.NewMemMapFs()
	for name, text := range map[string]string{
		"meta.json": `{"format":1,"as_of":"2026-01-01T00:00:00Z"}`, "events.ndjson": "", "badges.ndjson": "",
		"lists.ndjson": `{"token_id":"1","owner":"` + numbered(1<<30) + `"}`, "records.ndjson": records.String(), "accounts.ndjson": accounts.String(),
	} {
		if err := afero.WriteFile(snapshot, name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return storage.NewFolder(generated(t, snapshot))
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
