package publisher

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/followpress/followpress/publisher/internal/transfer"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// searchesOf returns the search shards of n lists, with this number of shards and bytes each.
func searchesOf(n, shards, bytes int) map[site.Key]string {
	objects := map[site.Key]string{}
	for list := range n {
		for shard := range shards {
			text := fmt.Sprintf("%d of %d shards of list %d ", shard, shards, list)
			objects[site.SearchShardKey(fmt.Sprint(list), shard)] = text + strings.Repeat(".", max(0, bytes-len(text)))
		}
	}
	return objects
}

func merge(parts ...map[site.Key]string) map[site.Key]string {
	all := map[site.Key]string{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// A reader never sees the first search shard of a new list before its others, though a
// server may unpack an archive's entries in any order.
func TestFirstSearchShardComesLast(t *testing.T) {
	busy := temporary(t)
	lists := merge(objectsOf(100, ""), searchesOf(40, 1, 0), searchesOf(30, 5, 0), searchesOf(3, 30, 300e3))
	for _, archives := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			far := newFarBucket(busy)
			checked := 0
			far.watch = func(key site.Key, objects farObjects) {
				list, n, ok := site.ParseSearchShardKey(key)
				if !ok || n > 0 || string(objects[key].Body) != lists[key] {
					return
				}
				for n := 1; lists[site.SearchShardKey(list, n)] != ""; n++ {
					checked++
					if other := site.SearchShardKey(list, n); string(objects[other].Body) != lists[other] {
						t.Errorf("archives %t: got the new %s before %s, want it after", archives, key, other)
					}
				}
			}
			publish(t, siteOf(t, merge(objectsOf(100, ""), searchesOf(30, 5, 10))), far.unpacking(archives), Options{packFrom: 1})
			publish(t, siteOf(t, lists), far.unpacking(archives), Options{packFrom: 1})
			if want := 27*4 + 3*29; checked < want {
				t.Errorf("compared shards: got %d, want at least %d", checked, want)
			}
		})
	}
}

// A countedSite counts the bytes of bodies that were read and not put yet.
type countedSite struct {
	memorySite
	mu         sync.Mutex
	held, most int
}

func (s *countedSite) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, err := s.memorySite.Get(ctx, key)
	s.count(key, len(body))
	return body, err
}

func (s *countedSite) count(key site.Key, bytes int) {
	if route, ok := (site.Config{}).RouteOf(key); ok && route.ID == routes.SearchShard {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held += bytes
		s.most = max(s.most, s.held)
	}
}

// The memory of bodies waiting to be sent is bounded, regardless of the number of requests in
// flight. A body larger than the bound is read alone.
func TestBodiesInMemoryAreBounded(t *testing.T) {
	busy := temporary(t)
	synctest.Test(t, func(t *testing.T) {
		objects := searchesOf(30, 1, 4<<20)
		large := site.SearchShardKey("large", 0)
		objects[large] = strings.Repeat(".", transfer.BodyBytes+1<<20)
		from, far := &countedSite{memorySite: siteOf(t, objects)}, newFarBucket(busy)
		far.watch = func(key site.Key, stored farObjects) { from.count(key, -len(stored[key].Body)) }
		publish(t, from, far, Options{Concurrency: 64})
		if from.most > len(objects[large]) || from.held != 0 {
			t.Errorf("got up to %d bytes of bodies in memory, and %d at the end, want at most %d and 0", from.most, from.held, len(objects[large]))
		}
	})
}

// A run needs a temporary file for what does not fit into memory. The file has no name while the
// run lasts. Without a folder for the file, the run warns once and uses memory.
func TestTemporaryFileOfARun(t *testing.T) {
	for _, absent := range []bool{false, true} {
		tmp := t.TempDir()
		folder := t.TempDir()
		live, next := siteOf(t, objectsOf(60, "")), siteOf(t, objectsOf(40, " anew"))
		publish(t, live, openLocal(folder), Options{})
		if absent {
			tmp = filepath.Join(tmp, "absent")
		}
		t.Setenv("TMPDIR", tmp)
		writes := 0
		watched := &mortal{Bucket: openLocal(folder), left: -1, during: func() {
			writes++
			if left, _ := os.ReadDir(tmp); len(left) > 0 {
				t.Errorf("the file has a name: %s", left[0].Name())
			}
		}}
		var log strings.Builder
		publish(t, next, watched, Options{memory: 300, Log: slog.New(slog.NewTextHandler(&log, nil)), Concurrency: 1})
		equalSites(t, inBucket(t, folder), next)
		if warned := strings.Count(log.String(), "TMPDIR"); absent != (warned == 1) || writes == 0 {
			t.Errorf("no folder: %v: got %d warnings and looked %d times, want one if there is none\n%s", absent, warned, writes, &log)
		}
	}
}
