package server_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
)

// A switching store is between two sites: each object is that of one of them.
type switching struct {
	old, next memsite.Site
	mu        sync.Mutex
	switched  map[site.Key]bool
	onRead    func(site.Key) // called before a read; nil for nothing
}

func (s *switching) Get(ctx context.Context, key site.Key) ([]byte, error) {
	if s.onRead != nil {
		s.onRead(key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.old
	if s.switched[key] {
		from = s.next
	}
	return from.Get(ctx, key)
}

func (s *switching) set(next bool, keys ...site.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.switched[key] = next
	}
}

// order returns an order in which the publisher may switch objects: those of the new site,
// the root, then those to delete. Within each part any order is allowed.
func (s *switching) order(random *rand.Rand) []site.Key {
	put := slices.Sorted(maps.Keys(s.next))
	put = slices.DeleteFunc(put, func(key site.Key) bool { return key == site.RootKey || s.old[key] == s.next[key] })
	gone := slices.DeleteFunc(slices.Sorted(maps.Keys(s.old)), func(key site.Key) bool { _, ok := s.next[key]; return ok })
	for _, keys := range [][]site.Key{put, gone} {
		random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	return slices.Concat(put, []site.Key{site.RootKey}, gone)
}

// objects reads a site into memory.
func objects(t testing.TB, files afero.Fs) memsite.Site {
	t.Helper()
	all, err := memsite.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// follows returns a site whose lists follow the given numbers of accounts. A text in every entry
// identifies the site.
func follows(t testing.TB, text string, counts map[string]int) memsite.Site {
	t.Helper()
	var lists, records, accounts strings.Builder
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&lists, `{"token_id":%q,"owner":"0x%040x"}`+"\n", id, 0xa0000)
		for i := range counts[id] {
			fmt.Fprintf(&records, `{"token_id":%q,"version":1,"record_type":"address","data":"0x%040x","tags":[%q]}`+"\n", id, i, text)
		}
	}
	for i := range 30 {
		fmt.Fprintf(&accounts, `{"address":"0x%040x","primary_list":null,"ens":{"name":"%s-%d.eth"}}`+"\n", i, text, i)
	}
	snapshot := afero.NewMemMapFs()
	for name, body := range map[string]string{
		"lists.ndjson": lists.String(), "records.ndjson": records.String(), "accounts.ndjson": accounts.String(),
		"events.ndjson": "", "badges.ndjson": "", "meta.json": `{"format":1,"as_of":"2026-11-01T00:00:00Z"}`,
	} {
		if err := afero.WriteFile(snapshot, name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return objects(t, generated(t, snapshot))
}

const longSearch = "/api/v1/lists/1/searchFollowing?limit=100&offset=950"

// A page whose shards come from two sites is read again until they agree.
func TestAMixedPageIsReadAgain(t *testing.T) {
	t.Parallel()
	store := &switching{old: follows(t, "old", map[string]int{"1": 2100}), next: follows(t, "new", map[string]int{"1": 3100}), switched: map[site.Key]bool{}}
	want := func(objects memsite.Site) string {
		t.Helper()
		fixed := &switching{old: objects}
		return ask(newHandler(t, fixed, server.Options{}), longSearch).Body.String()
	}
	first, second := want(store.old), want(store.next)
	if first == second || strings.Count(first, `"old"`) != 100 || strings.Count(second, `"new"`) != 100 {
		t.Fatal("pages: got equal ones of both sites, want different ones")
	}
	for name, c := range map[string]struct {
		cached site.Key // object requested before
		root   bool     // whether the root is that of the new site too
		want   string
	}{
		"nothing cached": {"", false, second}, "the new root": {"", true, second},
		"the old shard cached": {site.SearchShardKey("1", 0), false, second},
		"back to the old site": {"", false, first},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &switching{old: store.old, next: store.next, switched: map[site.Key]bool{}}
			var reads int
			var mu sync.Mutex
			handler := newHandler(t, store, server.Options{})
			if c.cached != "" {
				ask(handler, "/"+string(c.cached))
			}
			store.onRead = func(key site.Key) {
				mu.Lock()
				defer mu.Unlock()
				if reads++; reads == 6 { // the page has been found mixed twice at least
					store.set(c.want == second, site.SearchShardKey("1", 0), site.SearchShardKey("1", 1))
				}
			}
			store.set(true, site.SearchShardKey("1", 1))
			if c.root {
				store.set(true, site.RootKey)
			}
			if w := ask(handler, longSearch); w.Code != http.StatusOK || w.Body.String() != c.want {
				t.Errorf("got %d %.300s, want 200 with the page of one site", w.Code, w.Body)
			}
		})
	}
}

// A page that stays mixed is a 503: the client may retry.
func TestAPageThatStaysMixed(t *testing.T) {
	t.Parallel()
	store := &switching{old: follows(t, "old", map[string]int{"1": 2100}), next: follows(t, "new", map[string]int{"1": 3100}),
		switched: map[site.Key]bool{site.SearchShardKey("1", 1): true}}
	synctest.Test(t, func(t *testing.T) {
		const timeout = 700 * time.Millisecond
		handler := newHandler(t, store, server.Options{Timeout: timeout})
		defer handler.Close()
		begun := time.Now()
		w := ask(handler, longSearch)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("got %d %v %.300s, want 503, Retry-After and no-store", w.Code, w.Header(), w.Body)
		}
		if took := time.Since(begun); took > timeout {
			t.Errorf("got an answer after %v, want one within the timeout", took)
		}
		for path, want := range map[string]int{ // what one shard answers is not a mixture
			"/api/v1/lists/1/searchFollowing?offset=10":   200,
			"/api/v1/lists/1/searchFollowing?offset=1010": 200,
			"/api/v1/lists/1/searchFollowing?term=eth":    200,
			"/api/v1/lists/1/searchFollowing?term=zzz":    503,
		} {
			if w := ask(handler, path); w.Code != want {
				t.Errorf("%s: got %d, want %d", path, w.Code, want)
			}
		}
		store.set(true, site.SearchShardKey("1", 0), site.SearchShardKey("1", 2), site.SearchShardKey("1", 3), site.RootKey)
		if w := ask(handler, longSearch); w.Code != http.StatusOK {
			t.Errorf("when it is consistent again: got %d, want 200", w.Code)
		}
	})
}

// In whatever order the objects of a site change while searches run, each answer is
// that of the old or of the new site.
func TestNoAnswerIsMixed(t *testing.T) {
	t.Parallel()
	// Lists that grow and shrink, into shards and out of them, and come and go.
	old := follows(t, "old", map[string]int{"1": 2100, "2": 3500, "3": 9, "4": 12, "5": 0, "6": 1000, "7": 1001, "8": 30})
	next := follows(t, "new", map[string]int{"1": 3100, "2": 999, "3": 15, "4": 7, "5": 2500, "6": 1001, "7": 1000, "9": 30})
	random := rand.New(rand.NewPCG(7, 7))
	paths := make([]string, 150)
	for i := range paths {
		term := []string{"", "eth", "new", "old", "-9", "-99", "-1000", "0x", "zzz"}[random.IntN(9)]
		offset := []int{0, 1, 5, 9, 10, 11, 950, 999, 1000, 1001, 1950, 2000, 2600, 3400}[random.IntN(14)]
		paths[i] = fmt.Sprintf("/api/v1/lists/%d/searchFollowing?term=%s&limit=%d&offset=%d", 1+random.IntN(9), url.QueryEscape(term), 1+random.IntN(100), offset)
	}
	noAnswerIsMixed(t, old, next, paths)
}

// The same holds for computed answers of the whole API.
func TestNoComputedAnswerIsMixed(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	var paths []string
	some := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	for i, path := range longPaths() {
		if i%servers.Rounds(3, 1) != 0 {
			continue
		}
		paths = append(paths, path, fmt.Sprintf("%s&limit=%d&offset=%d", path, 1+random.IntN(1000), random.IntN(3000)),
			fmt.Sprintf("%s&tags=%s&limit=100&offset=%d", path, some("a", "top8", "block,mute"), random.IntN(100)),
			fmt.Sprintf("%s&term=%s&limit=%d", path, some("n1", "0x", "n99", "zzz"), 1+random.IntN(100)))
	}
	for range 30 {
		one, other := some(numbered(1), "one.eth"), some(numbered(1), "one.eth", numbered(10+random.IntN(60)), numbered(1000+random.IntN(2000)))
		paths = append(paths, "/api/v1/users/"+one+"/"+other+"/buttonState", "/api/v1/users/"+one+"/"+other+"/followerState", "/api/v1/lists/2/"+other+"/buttonState",
			"/api/v1/lists/"+some("1", "2")+"/"+other+"/followerState", "/api/v1/leaderboard/ranked?sort="+some("mutuals", "followers", "top8")+"&offset="+some("0", "2000"),
			"/api/v1/leaderboard/search?limit=20&term="+some("n1", "n20", "one"))
	}
	paths = append(paths, "/api/v1/users/one.eth/commonFollowers?leader="+numbered(1), "/api/v1/exportState/1", "/api/v1/users/one.eth/allFollowingAddresses")
	for name, sizes := range map[string][2][2]int{
		"long":        {{2100, servers.Rounds(30, 1500)}, {3100, servers.Rounds(20, 900)}}, // every follower takes time to generate
		"into shards": {{15, 21}, {30, 12}}, "into a head": {{900, servers.Rounds(1010, 1200)}, {1001, 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sites [2]memsite.Site
			for i, size := range sizes {
				sites[i] = objects(t, efpSite(t, afero.FromIOFS{FS: efpSnapshot(uint64(i), size[0], size[1])}, ""))
			}
			noAnswerIsMixed(t, sites[0], sites[1], paths)
		})
	}
}

// noAnswerIsMixed replaces a site by the next one while requests are answered, in random orders.
func noAnswerIsMixed(t *testing.T, old, next memsite.Site, paths []string) {
	t.Helper()
	answers := func(objects memsite.Site) (all []string) {
		handler := newHandler(t, &switching{old: objects}, server.Options{})
		for _, path := range paths {
			all = append(all, ask(handler, path).Body.String())
		}
		return all
	}
	first, second := answers(old), answers(next)
	sleeps := servers.Rounds(100, 300) // about that often, searches run between two switches
	for round := range servers.Rounds(1, 3) {
		random := rand.New(rand.NewPCG(11, uint64(round)))
		store := &switching{old: old, next: next, switched: map[site.Key]bool{}}
		handler := newHandler(t, store, server.Options{Poll: 5 * time.Millisecond, Timeout: 2 * time.Second})
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { handler.Watch(ctx) })
		order := store.order(random)
		var asked, unavailable int
		var mu sync.Mutex
		for worker := range 4 {
			random := rand.New(rand.NewPCG(uint64(worker), uint64(round)))
			group.Go(func() {
				for ctx.Err() == nil {
					i := random.IntN(len(paths))
					w := ask(handler, paths[i])
					mu.Lock()
					asked++
					if w.Code == http.StatusServiceUnavailable {
						unavailable++
					} else if body := w.Body.String(); body != first[i] && body != second[i] {
						t.Errorf("round %d: %s:\n got %.300s\nwant %.300s\n  or %.300s", round, paths[i], body, first[i], second[i])
					}
					mu.Unlock()
				}
			})
		}
		for _, key := range order {
			// Some are switched in a burst, others with searches between.
			if strings.Contains(string(key), "lists/") || key == site.RootKey || random.IntN(4) == 0 {
				if random.IntN(3) > 0 && random.IntN(max(sleeps, len(order))) < sleeps {
					time.Sleep(time.Duration(random.IntN(8)) * time.Millisecond)
				}
			}
			store.set(true, key)
		}
		eventually(t, "the new site is served", func() bool { return handler.Root().Counts == next.Root(t).Counts })
		eventually(t, "20 searches have ended", func() bool { mu.Lock(); defer mu.Unlock(); return asked >= 20 })
		stop()
		group.Wait()
		if unavailable > asked/2 {
			t.Errorf("round %d: got %d of %d searches without an answer, want at most half", round, unavailable, asked)
		}
		for i, path := range paths { // nothing mixed is left in the cache
			if body := ask(handler, path).Body.String(); body != second[i] && body != first[i] {
				t.Errorf("round %d, afterwards: %s: got %.300s, want the page of one site", round, path, body)
			}
		}
	}
}
