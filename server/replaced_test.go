package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A place is where one of two sites is, and where the other can take its place.
type place struct {
	put   func(t *testing.T, site int)
	store func(t *testing.T) server.Store
}

// places returns a folder and a tar file that generate writes, and buckets.
func places(t *testing.T) map[string]func(t *testing.T) place {
	t.Helper()
	snapshots, sites := twoSnapshots(t), twoSites(t)
	output := func(name string) func(*testing.T) place {
		return func(t *testing.T) place {
			path := filepath.Join(t.TempDir(), name)
			return place{
				func(t *testing.T, n int) {
					t.Helper()
					o := generator.Options{Config: site.Config{LeaderboardMax: 10}}
					if _, err := generator.ToPath(context.Background(), snapshots[n], path, o); err != nil {
						t.Fatal(err)
					}
				},
				func(t *testing.T) server.Store { return open(t, path) },
			}
		}
	}
	published := func(to bucket) place {
		return place{
			func(t *testing.T, n int) {
				t.Helper()
				if _, err := publisher.Publish(context.Background(), sites[n], to, publisher.Options{AllowRollback: true}); err != nil {
					t.Fatal(err)
				}
			},
			func(*testing.T) server.Store { return to },
		}
	}
	all := map[string]func(*testing.T) place{
		"folder": output("site"), "tar": output("site.tar"),
		"bucket in a folder": func(t *testing.T) place { return published(openLocal(t.TempDir())) },
	}
	for _, kind := range servers.Kinds() {
		all[string(kind)] = func(t *testing.T) place {
			s := servers.Start(t, kind)
			return published(openS3(t, s, storage.Location{Bucket: s.Bucket(t)}, s.Endpoint))
		}
	}
	return all
}

// A site is replaced and restored between two polls. No answer comes from the other
// site afterwards.
func TestASiteThatIsRolledBack(t *testing.T) {
	t.Parallel()
	want := answersOf(t, twoSites(t))
	for name, at := range places(t) {
		t.Run(name, func(t *testing.T) {
			p := at(t)
			p.put(t, 0)
			handler := newHandler(t, p.store(t), server.Options{})
			front := httptest.NewServer(handler)
			defer front.Close()
			p.put(t, 1)
			for _, path := range questions() {
				answerOf(t, front.URL, path) // into the cache
			}
			p.put(t, 0)
			for _, path := range questions() {
				eventually(t, "the answer is the site's: "+path, func() bool {
					handler.PollRoot(t.Context())
					return answerOf(t, front.URL, path) == want[0][path]
				})
			}
		})
	}
}

// While generate replaces a tar file again and again, every answer is that of one site
// or the other, and old files are closed.
func TestGenerateOverATar(t *testing.T) {
	const turns = 8
	want := answersOf(t, twoSites(t))
	p := places(t)["tar"](t)
	p.put(t, 0)
	handler := newHandler(t, p.store(t), server.Options{Poll: 10 * time.Millisecond, CacheBytes: 1 << 20})
	front := httptest.NewServer(handler)
	defer front.Close()
	end := watch(t, handler)
	before := openFiles(t, ".tar")
	stop := load(t, front.URL, 4, want)
	for turn := range turns {
		p.put(t, (turn+1)%2)
		asOf := []string{"2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"}[turn%2]
		eventually(t, "the new site is noticed", func() bool { return handler.Root().AsOf == asOf })
	}
	stop()
	for _, path := range questions() {
		if got := answerOf(t, front.URL, path); got != want[turns%2][path] {
			t.Errorf("%s, at the end: got %.300s, want the answer of the last site", path, got)
		}
	}
	end()
	if after := openFiles(t, ".tar"); after > before {
		t.Errorf("open tar files: got %d at the end, want %d", after, before)
	}
}

// openFiles counts the files with an extension that this process has open, under
// whatever name they have now.
func openFiles(t *testing.T, extension string) (count int) {
	t.Helper()
	const open = "/proc/self/fd"
	files, err := os.ReadDir(open)
	if err != nil {
		t.Skip("counts open files by /proc, which is not here: run it on Linux")
	}
	for _, file := range files {
		name, _ := os.Readlink(filepath.Join(open, file.Name())) // it may be closed by now
		if ext := filepath.Ext(name); ext == extension || ext == extension+" (deleted)" {
			count++
		}
	}
	return count
}

// twoSites returns the sites of twoSnapshots.
func twoSites(t *testing.T) (sites [2]server.Store) {
	t.Helper()
	for i, snapshot := range twoSnapshots(t) {
		sites[i] = storage.NewFolder(generated(t, snapshot, site.Config{LeaderboardMax: 10}))
	}
	return sites
}

// twoSnapshots are of the same lists and differ in every answer: other profiles,
// other tags, and lists of other lengths, some of them with several shards.
func twoSnapshots(t *testing.T) (snapshots [2]afero.Fs) {
	t.Helper()
	for i := range snapshots {
		var accounts, lists, records, badges strings.Builder
		lengths := [][2]int{{2500, 1500}, {1000, 2600}, {1200, 1199}, {40, 30}, {9, 11}, {12, 3}, {1, 0}}
		for list, length := range lengths {
			fmt.Fprintf(&lists, `{"token_id":"%d","owner":"%s"}`+"\n", list+1, numbered(list))
			fmt.Fprintf(&accounts, `{"address":"%s","primary_list":"%d","ens":{"name":"owner%d.eth","display":"site %d","fresh":1}}`+"\n",
				numbered(list), list+1, list, i)
			for n := range length[i] {
				fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":"%s","tags":["site%d"]}`+"\n",
					list+1, numbered(100+n), i)
			}
			if i == 0 {
				fmt.Fprintf(&badges, `{"event_id":"1","token_id":"7","owner":"%s"}`+"\n", numbered(list))
			}
		}
		for n := range 2600 { // names that are shown but not looked up: no objects of their own
			fmt.Fprintf(&accounts, `{"address":"%s","ens":{"name":"Someone%d-%d.eth"}}`+"\n", numbered(100+n), n, i)
		}
		snapshot := afero.NewMemMapFs()
		for name, text := range map[string]string{
			"meta.json":       fmt.Sprintf(`{"format":1,"as_of":"2026-01-0%dT00:00:00Z"}`, i+1),
			"lists.ndjson":    lists.String(),
			"accounts.ndjson": accounts.String(),
			"records.ndjson":  records.String(),
			"badges.ndjson":   badges.String(),
			"events.ndjson": `{"id":1,"fancy_id":"e","name":"e","event_url":"","image_url":"","country":"","city":"","description":"","year":2026,` +
				`"start_date":"","end_date":"","expiry_date":""}`,
		} {
			if err := afero.WriteFile(snapshot, name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		snapshots[i] = snapshot
	}
	return snapshots
}

func numbered(n int) string { return fmt.Sprintf("0x%040x", 1+n) }

// questions are requests of every kind, among them pages and searches that need
// several shards.
func questions() []string {
	all := []string{
		"leaderboard/followers", "leaderboard/following?limit=3", "users/owner0.eth/searchFollowing", "users/nobody.eth/searchFollowing",
	}
	for list := range 7 {
		of := fmt.Sprintf("lists/%d/", list+1)
		user := "users/" + numbered(list) + "/"
		all = append(all, of+"details", of+"badges", of+"records", of+"records?includeTags=false", of+"searchFollowing", user+"searchFollowing")
		for _, query := range []string{
			"offset=5", "offset=995&limit=10", "offset=950&limit=100", "offset=1195&limit=10", "offset=1990&limit=20", "offset=2400",
			"offset=9999", "term=someone99&limit=100", "term=someone2", "term=-0.eth&offset=1100", "term=-1.eth&offset=1100", "term=nothing",
		} {
			all = append(all, of+"searchFollowing?"+query, user+"searchFollowing?"+query)
		}
	}
	return all
}

// answerOf returns the status and the body of an answer.
func answerOf(t *testing.T, base, path string) string {
	t.Helper()
	response, err := http.Get(base + "/api/v1/" + path)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// answersOf returns the answers of each of two sites, by their question.
func answersOf(t *testing.T, sites [2]server.Store) (want [2]map[string]string) {
	t.Helper()
	for i, s := range sites {
		want[i] = map[string]string{}
		base := serve(t, s)
		for _, path := range questions() {
			want[i][path] = answerOf(t, base, path)
		}
	}
	return want
}

// load asks until stop is called. Every answer has to be one of the two sites', and
// both have to be seen.
func load(t *testing.T, base string, clients int, want [2]map[string]string) (stop func()) {
	t.Helper()
	var seen [2]atomic.Int64 // answers that only this site gives
	var clientsAsking sync.WaitGroup
	end := make(chan struct{})
	for client := range clients {
		clientsAsking.Go(func() {
			paths := questions()
			for n := client; ; n += clients {
				select {
				case <-end:
					return
				default:
				}
				path := paths[n%len(paths)]
				got := answerOf(t, base, path)
				is := [2]bool{got == want[0][path], got == want[1][path]}
				switch is {
				case [2]bool{true, false}:
					seen[0].Add(1)
				case [2]bool{false, true}:
					seen[1].Add(1)
				case [2]bool{}:
					t.Errorf("%s: got %.300s, want an answer of one of the sites", path, got)
				}
			}
		})
	}
	return func() {
		t.Helper()
		close(end)
		clientsAsking.Wait()
		t.Logf("%d answers of one site, %d of the other", seen[0].Load(), seen[1].Load())
		if seen[0].Load() == 0 || seen[1].Load() == 0 {
			t.Error("answers: got those of one site, want those of both")
		}
	}
}

// A folder is replaced by another and restored between two polls. No answer comes from
// the other folder afterwards, though the root is the same file as before.
func TestAFolderThatComesBack(t *testing.T) {
	flip := func(t *testing.T, link, target string) {
		t.Helper()
		if err := os.Symlink(target, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		site string
		put  func(t *testing.T, in string, is, was string)
	}{
		"a link": {"current", func(t *testing.T, in string, is, _ string) {
			t.Helper()
			flip(t, filepath.Join(in, "current"), is)
		}},
		"a link on the way": {"current/site", func(t *testing.T, in string, is, _ string) {
			t.Helper()
			if err := os.MkdirAll(filepath.Join(in, "of"+is), 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(filepath.Join(in, "of"+is, "site")); err != nil {
				flip(t, filepath.Join(in, "of"+is, "site"), filepath.Join(in, is))
			}
			flip(t, filepath.Join(in, "current"), "of"+is)
		}},
		"renamed": {"site", func(t *testing.T, in string, is, was string) {
			t.Helper()
			current := filepath.Join(in, "site")
			if err := os.Rename(current, filepath.Join(in, was)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(in, is), current); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := t.TempDir()
			for i, text := range []string{"one", "two"} {
				for key, body := range follows(t, text, map[string]int{"1": 3}) {
					path := filepath.Join(in, fmt.Sprint(i), filepath.FromSlash(string(key)))
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			c.put(t, in, "0", "1")
			handler := newHandler(t, open(t, filepath.Join(in, c.site)), server.Options{})
			time.Sleep(20 * time.Millisecond) // times of files are as exact as the system's ticks
			c.put(t, in, "1", "0")
			const path = "/api/v1/lists/1/records"
			if w := ask(handler, path); !strings.Contains(w.Body.String(), `"two"`) {
				t.Fatalf("the other site: got %d %.300s, want a search that finds two", w.Code, w.Body)
			}
			c.put(t, in, "0", "1")
			handler.PollRoot(t.Context())
			if w := ask(handler, path); !strings.Contains(w.Body.String(), `"one"`) {
				t.Errorf("the site that came back: got %d %.300s, want a search that finds one", w.Code, w.Body)
			}
			served := handler.Version()
			handler.PollRoot(t.Context())
			if got := handler.Version(); got != served {
				t.Errorf("nothing has changed: got version %d, want %d", got, served)
			}
		})
	}
}

// A replaceable site is in memory.
type replaceable struct{ site atomic.Pointer[memsite.Site] }

func (r *replaceable) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return r.site.Load().Get(ctx, key)
}

func (r *replaceable) replace(s memsite.Site) { r.site.Store(&s) }

// A syncLog is a log that is read while others write to it.
type syncLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *syncLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A stale site is logged once, counted in a metric, and still served, until a newer site replaces
// it.
func TestASiteThatBecomesTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)))
		var log syncLog
		store := &replaceable{}
		store.replace(dailySite(t, 1))
		h := newHandler(t, store, server.Options{MaxAge: 36 * time.Hour, Poll: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil))})
		defer h.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go h.Watch(ctx)
		const warning, end = "older than --max-age or dated in the future; check", "no longer stale"
		for _, tt := range []struct {
			after           time.Duration
			next            int // the day of the site that is put then; 0 for none
			stale, warnings int
			ends            int
		}{
			{23 * time.Hour, 0, 0, 0, 0},
			{time.Hour + time.Minute, 0, 1, 1, 0},
			{100 * time.Hour, 0, 1, 1, 0},
			{0, 6, 0, 1, 1},
			{48 * time.Hour, 0, 1, 2, 1},
			{0, 10, 1, 2, 1}, // more than a day ahead of the clock
			{2 * time.Minute, 9, 0, 2, 2},
		} {
			if tt.next > 0 {
				store.replace(dailySite(t, tt.next))
			}
			time.Sleep(tt.after + time.Minute)
			synctest.Wait()
			if got := scrape(t, h)["site_stale"]; got != float64(tt.stale) {
				t.Errorf("%v: site_stale: got %v, want %d", time.Now(), got, tt.stale)
			}
			if w, e := strings.Count(log.String(), warning), strings.Count(log.String(), end); w != tt.warnings || e != tt.ends {
				t.Errorf("%v: got %d warnings and %d ends, want %d and %d:\n%s", time.Now(), w, e, tt.warnings, tt.ends, &log)
			}
			if !h.Ready() {
				t.Errorf("%v: got not ready, want ready: other fallbacks have the same site", time.Now())
			}
		}
		cancel()
		synctest.Wait()
	})
}

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
	return objects(t, generated(t, snapshotOf(lists.String(), records.String(), accounts.String()), site.Config{}))
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
