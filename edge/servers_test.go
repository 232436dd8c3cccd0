package edge_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// scratch is a folder shared by all tests.
var scratch string

func TestMain(m *testing.M) {
	if os.Getenv(liveAPI) != "" {
		panic(serveLive())
	}
	tempdir.InMemory()
	var err error
	if scratch, err = os.MkdirTemp("", "edge-test-"); err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(scratch) // it is a temporary folder anyway
	os.Exit(status)
}

// A subject is an edge under test.
type subject struct {
	kind  string
	start func(t testing.TB, bucketURL, fallbackURL string, change ...func(*edge.Options)) (base string)
	// inexact are the paths of the conformance cases that this edge cannot answer exactly without
	// a fallback, with the status it gives; its page in docs/deploy has them.
	inexact map[string]int
	caches  bool
	// unseen are headers that the edge does not always send.
	unseen []string
	// exactConditions says that an If-None-Match of more than one ETag is left to the bucket.
	exactConditions bool
	// degrades says that without a fallback all parameters are ignored.
	degrades bool
	// absentAs is the one problem with which CloudFront without a fallback answers for all
	// missing objects.
	absentAs *site.Problem
	// keepsFresh says that without a fallback a stored answer to cache=fresh has no X-Refresh.
	keepsFresh bool
	// unsendable matches paths that do not reach the edge as they are.
	unsendable *regexp.Regexp
}

func (s subject) receives(path string) bool {
	return s.unsendable == nil || !s.unsendable.MatchString(path)
}

var subjects = []subject{
	{kind: "nginx", start: startNginx, caches: true, inexact: map[string]int{
		"/api/v1/users/cafe%CC%81.eth/searchFollowing": http.StatusNotFound, // njs cannot compose
	}},
	// URLs have no dot segments by the time a Worker sees them; workerd takes no absolute URLs, as which this test sends the others.
	{kind: "worker", start: startWorker, caches: true, unsendable: regexp.MustCompile(`(?i)^//|/(\.|%2e){1,2}(/|\?|$)`)},
	{kind: "caddy", start: startCaddy, exactConditions: true, degrades: true, unsendable: regexp.MustCompile(`^//`), inexact: map[string]int{
		"/api/v1/lists/%31/records": http.StatusBadRequest, "/api/v1/lists/%31/details": http.StatusBadRequest, // nothing is decoded
		"/api/v1/lists/%31/badges": http.StatusBadRequest, "/api/v1/lists/%31/searchFollowing": http.StatusBadRequest,
	}, keepsFresh: true},
	{kind: "cloudfront", start: startCloudFront, caches: true, keepsFresh: true, unsendable: regexp.MustCompile(`^//`), inexact: map[string]int{
		"/api/v1/users/cafe%CC%81.eth/searchFollowing": http.StatusNotFound, // its JavaScript cannot compose
	}, absentAs: site.NoSuchRoute, unseen: []string{"Retry-After"}},
}

// forEdges runs a test for every kind of edge, with the given exceptions.
func forEdges(t *testing.T, test func(t *testing.T, s subject), except ...string) {
	for _, s := range subjects {
		if slices.Contains(except, s.kind) {
			continue
		}
		t.Run(s.kind, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// Every case, with the fallback: exact, from every edge.
func TestConformance(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOrigins(t)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
		for range 2 { // the second time out of the cache
			for _, c := range conformanceCases(t) {
				checkCase(t, base, c)
			}
		}
		// Only requests without an object may have reached the fallback.
		o.fallback.paths.Range(func(path, _ any) bool {
			name, query, _ := strings.Cut(path.(string), "?")
			if query == "" && !strings.Contains(name, "%") && s.absentAs == nil && !s.degrades {
				t.Errorf("requests to the fallback: got %s, want only what no object answers", path)
			}
			return true
		})
	})
}

// Without a fallback an edge answers what objects can answer; other requests get the
// default answer.
func TestConformanceWithoutFallback(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOrigins(t)
		base := s.start(t, o.bucket.URL+"/bucket", "")
		exact := 0
		for _, c := range conformanceCases(t) {
			path, query, _ := strings.Cut(c.Path, "?")
			a, forward := edge.AtEdge(o.config, http.MethodGet, path, query)
			if status, inexact := s.inexact[c.Path]; inexact {
				if got := ask(t, http.MethodGet, base, c.Path); got.status != status {
					t.Errorf("%s: got status %d, want %d as its page says", c.Path, got.status, status)
				}
				continue
			}
			if forward != "" {
				want := o.direct(t, http.MethodGet, "/"+strings.ReplaceAll(string(a.Key), "🦊", "%F0%9F%A6%8A"))
				sameAnswer(t, c.Path, ask(t, http.MethodGet, base, c.Path), want, s.unseen...)
				continue
			}
			if s.absentAs != nil && a.Problem == nil && (a.Absent == nil || c.Status == http.StatusNotFound) {
				got := ask(t, http.MethodGet, base, c.Path)
				if there := got.status == http.StatusOK; !there && got.body != string(s.absentAs.Body()) {
					t.Errorf("%s: got %d %s, want the object or the one problem", c.Path, got.status, got.body)
				} else if !there {
					continue
				}
			}
			if s.degrades && !s.checkDegraded(t, o, base, c.Path) {
				continue
			}
			exact++
			checkCase(t, base, c)
		}
		if exact < 150 || exact < 200 && !s.degrades {
			t.Errorf("exact answers: got %d, want at least 150, or 200 with parameters", exact)
		}
		if s.keepsFresh {
			return
		}
		fresh := ask(t, http.MethodGet, base, "/api/v1/lists/1/details?cache=fresh")
		sameAnswer(t, "fresh", fresh, o.direct(t, http.MethodGet, "/api/v1/lists/1/details?cache=fresh"), s.unseen...)
	})
}

// checkDegraded reports whether an edge that ignores parameters gave the exact answer. If
// not, it must be the answer to the path alone, or "no such name".
func (s subject) checkDegraded(t *testing.T, o *origins, base, request string) (exact bool) {
	t.Helper()
	got, want := ask(t, http.MethodGet, base, request), o.direct(t, http.MethodGet, request)
	if got.status == want.status && got.body == want.body {
		return true
	}
	path, _, _ := strings.Cut(request, "?")
	noName := got.status == http.StatusNotFound && strings.Contains(path, "/users/")
	if alone := o.direct(t, http.MethodGet, path); !noName && (got.status != alone.status || got.body != alone.body) {
		t.Errorf("%s: got %d %.200s, want the answer to the path alone", request, got.status, got.body)
	}
	return false
}

// Adding a parameter to the tables of site is enough for every edge.
func TestNewParameterAtServers(t *testing.T) {
	edge.AddParam(t, "order")
	forEdges(t, func(t *testing.T, s subject) {
		o := newOrigins(t)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
		const details, board = "/api/v1/lists/1/details", "/api/v1/leaderboard/followers"
		for _, request := range []string{
			details + "?x=1&order=n%61me", details + "?cache=fresh&order=a%2fb", details + "?order=rank", details + "?order=size",
			board + "?order=name&limit=005", board + "?order=rank&limit=6", "/api/v1/users/ALICE.eth/searchFollowing?order=name",
		} {
			path, query, _ := strings.Cut(request, "?")
			_, forward := edge.AtEdge(o.config, http.MethodGet, path, query)
			sameAnswer(t, request, ask(t, http.MethodGet, base, request), o.direct(t, http.MethodGet, request), s.unseen...)
			if s.degrades {
				continue // Caddy forwards requests as they are
			}
			o.fallback.paths.Delete(request) // forget the request of the test itself
			if _, asked := o.fallback.paths.Load(forward); forward != "" && !asked {
				t.Errorf("%s: got no request to the fallback for %s", request, forward)
			}
		}
	})
}

// All headers that clients see, methods and conditions, as the handler has them.
func TestHeaders(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOrigins(t)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
		paths := []string{
			"/api/v1/leaderboard/followers", "/api/v1/leaderboard/followers?limit=3", "/api/v1/leaderboard/followers?limit=0",
			"/api/v1/lists/1/records", "/api/v1/lists/1/records?includeTags=false", "/api/v1/lists/1/records?includeTags=no",
			"/api/v1/lists/8/searchFollowing?limit=0&offset=x", "/api/v1/lists/8/searchFollowing?offset=x&limit=0", "/api/v1/lists/8/searchFollowing?offset=5&limit=x&limit=1&term=x",
			"/api/v1/lists/1/details", "/api/v1/lists/1/details?cache=fresh", "/api/v1/lists/404/details", "/api/v1/lists/404/details?cache=fresh",
			"/api/v1/lists/01/details", "/api/v1/users/nobody.eth/searchFollowing", "/api/v1/users/0x6363636363636363636363636363636363636363/searchFollowing",
			"/api/v1/users/ALICE.eth/searchFollowing", "/api/v1/users/alice.eth/searchFollowing?term=bob", "/", "/nothing", "/api/v1/leaderboard/mutuals",
			"/_site", "/_errors/bad-limit", "/_manifest/0", "/_search/users/0", "/_search/lists/8/0", "/_search/lists/8/9", "/_variants/leaderboard/following/limit=7",
			"/_lock", "/-followpress/object", "/-followpress/own", "/api/v1/lists/1/records/", "/api/v1/lists//records", "//api/v1/lists/1/records",
		}
		for _, path := range slices.DeleteFunc(paths, func(p string) bool { return !s.receives(p) }) {
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "DELETE", "PURGE"} {
				if method == "PURGE" && path == "/" && s.kind == "nginx" {
					continue // a purge, if it comes from this machine
				}
				for range 2 {
					got, want := ask(t, method, base, path), o.direct(t, method, path)
					sameAnswer(t, method+" "+path, got, want, s.unseen...)
				}
			}
			sameConditions(t, s, o, base, path)
			got := ask(t, http.MethodGet, base, path, "Range", "bytes=0-3", "Origin", "https://example.org", "Cookie", "a=b", "Authorization", "Basic eDp5")
			sameAnswer(t, "with other headers "+path, got, o.direct(t, http.MethodGet, path), s.unseen...)
		}
	})
}

// sameConditions asks for a path with conditions, which the edge must judge as the handler does.
func sameConditions(t *testing.T, s subject, o *origins, base, path string) {
	t.Helper()
	direct := o.direct(t, http.MethodGet, path)
	etag := direct.header.Get("ETag")
	if etag == "" || strings.Contains(path, "fresh") {
		return
	}
	conditions := []string{etag, `W/` + etag, `"x", ` + etag, "*"}
	if s.exactConditions {
		conditions = conditions[:2]
	}
	for _, condition := range conditions {
		got := ask(t, http.MethodGet, base, path, "If-None-Match", condition)
		if got.status != http.StatusNotModified || got.header.Get("ETag") != etag || got.body != "" {
			t.Errorf("%s with If-None-Match %s: got %d with ETag %s, want a 304", path, condition, got.status, got.header.Get("ETag"))
		}
	}
	sameAnswer(t, "with another ETag "+path, ask(t, http.MethodGet, base, path, "If-None-Match", `"x"`), direct, s.unseen...)
}

// Only objects of the site can be read, however a path is spelled.
func TestNobodyReadsWhatIsNoObject(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		nobodyReads(t, s, newOrigins(t))
		nobodyReads(t, s, newOriginsEFP(t, site.NamesCopies))
	})
}

func nobodyReads(t *testing.T, s subject, o *origins) {
	t.Helper()
	for _, fallbackURL := range []string{o.fallback.URL, ""} {
		base := s.start(t, o.bucket.URL+"/bucket", fallbackURL)
		for _, path := range []string{
			"/_lock", "/_publishing", "//_lock", "/./_lock", "/x/../_lock",
			"/api/v1/../../_lock", "/api/v1/lists/..%2F..%2F..%2F_lock/records", "/api/v1/users/..%2f..%2f..%2f_lock/searchFollowing",
			"/_lock?", "/_lock?x=1", "/_LOCK", "/_lock%00", "/_lock%3Fx", "/_lock%23", "/bucket/_lock", "/_search/users/../../_lock",
			"/_search/..%2f_lock", "/_client/%2e%2e/_lock", "/_unknown/./../_lock", "/_unknown/..", "/_client/shim.js/../../_lock",
		} {
			if !s.receives(path) {
				continue
			}
			a := ask(t, http.MethodGet, base, path)
			if strings.Contains(a.body, secret) || a.status != http.StatusNotFound && a.status != http.StatusBadRequest {
				t.Errorf("%s: got %d %.100q, want 404 or 400", path, a.status, a.body)
			}
		}
	}
	o.bucket.paths.Range(func(path, _ any) bool {
		if strings.Contains(path.(string), "_lock") {
			t.Errorf("requests to the bucket: got %s, want none for _lock", path)
		}
		return true
	})
}

// Unknown parameters take no space in a cache and change no answer.
func TestCacheKeys(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		if !s.caches {
			return // Caddy has no cache
		}
		o := newOrigins(t)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
		random := rand.New(rand.NewPCG(1, 2))
		paths := []string{
			"/api/v1/lists/8/details", "/api/v1/leaderboard/followers", "/api/v1/leaderboard/followers?limit=5", "/api/v1/lists/8/searchFollowing?limit=5",
			"/api/v1/users/ALICE.eth/searchFollowing", "/api/v1/lists/8/records?includeTags=false", "/api/v1/lists/404/details",
		}
		for _, path := range paths {
			ask(t, http.MethodGet, base, path)
		}
		before := o.bucket.requests.Load() + o.fallback.requests.Load()
		noisy := servers.Rounds(500, 10_000)
		begun, sent := time.Now(), 0
		for ; sent < noisy && time.Since(begun) < 30*time.Second; sent++ { // absent objects are cached for a minute
			path, query, _ := strings.Cut(paths[random.IntN(len(paths))], "?")
			noise := func() string { return fmt.Sprintf("%c%x=%x", 'A'+random.IntN(26), random.Uint32(), random.Uint64()) }
			all := []string{noise(), query, noise(), "limit%5B%5D=3"}
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			if a := ask(t, http.MethodGet, base, path+"?"+strings.Join(all, "&")); a.status >= 500 {
				t.Fatalf("%s: %d", path, a.status)
			}
		}
		if n := o.bucket.requests.Load() + o.fallback.requests.Load() - before; n > 0 {
			t.Errorf("%d requests with unknown parameters: got %d requests to the origins, want none", sent, n)
		}
		// Equal requests share an answer, others do not.
		const search = "/api/v1/lists/8/searchFollowing"
		for _, same := range [][]string{
			{"?limit=5", "?limit=05", "?limit=5&limit=7", "?l%69mit=%35", "?x=1&limit=5", "?limit=5&offset=0", "?offset=000&term=+&limit=5"},
			{"?limit=7", "?limit=7&limit=5"}, {"?limit=0", "?limit=00"}, {"?limit=x"},
			{"?term=fox", "?term=FOX", "?term=+fox%20", "?limit=10&term=fox", "?term=%66ox"}, {"?term=fox&limit=7", "?limit=7&term=fox&offset"[:23]},
			{"?term=a%26limit%3D5"}, {"?term=%C3%A9t%C3%A9"}, {"?term=%FF"}, {"?term=a=b"}, {"?term=%25"}, {"?term=%2541"},
			{"?includeTags=false"}, {"?cache=fresh"}, {""},
		} {
			for _, query := range same {
				want := o.direct(t, http.MethodGet, search+query)
				for range 2 {
					sameAnswer(t, search+query, ask(t, http.MethodGet, base, search+query), want, s.unseen...)
				}
			}
		}
	})
}

// The fallback learns the address of the client only from the edge, and needs it to limit refreshes
// per client.
func TestRefreshesHaveTheirClient(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		if s.kind != "nginx" && s.kind != "caddy" {
			return // CDNs name the client by themselves
		}
		o := newOrigins(t)
		fallback := newWitness(t, func(w http.ResponseWriter, r *http.Request) { o.fallback.Config.Handler.ServeHTTP(w, r) })
		base := s.start(t, o.bucket.URL+"/bucket", fallback.URL)
		for _, sent := range []string{"", "192.0.2.1", "192.0.2.1, 192.0.2.2"} {
			ask(t, http.MethodGet, base, "/api/v1/lists/1/details?cache=fresh", "X-Forwarded-For", sent, "X-Followpress-Fresh", sent)
		}
		asked := fallback.all()
		for _, r := range asked {
			if got := r.header.Values("X-Forwarded-For"); len(got) != 1 || got[0] != "127.0.0.1" {
				t.Errorf("got X-Forwarded-For %q, want 127.0.0.1", got)
			}
		}
		if len(asked) != 3 {
			t.Errorf("got %d requests to the fallback, want 3", len(asked))
		}
	})
}

// An answer to cache=fresh is neither served from a cache nor stored in one.
func TestFreshIsNeverCached(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOrigins(t)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
		for i := range int64(5) {
			ask(t, http.MethodGet, base, "/api/v1/lists/1/details?cache=fresh&x="+fmt.Sprint(i))
			if n := o.fallback.requests.Load(); n != i+1 {
				t.Errorf("requests to the fallback: got %d, want %d", n, i+1)
			}
		}
		if a := ask(t, http.MethodGet, base, "/api/v1/lists/1/details"); a.header.Get("X-Refresh") != "" || o.bucket.requests.Load() == 0 {
			t.Error("a fresh answer was kept for others")
		}
	})
}

// At every edge, a refresh too soon gets the stored answer with a header that says so. With strict
// refreshes it gets the problem.
func TestLimitedRefreshes(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		const details = "/api/v1/lists/1/details"
		upstream := newOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"name":"alice.eth","display":"newer","records":{},"chains":{},"fresh":1795300000000,"errors":{}}`)
		}))
		for _, strict := range []bool{false, true} {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(sitePath(t))); err != nil {
				t.Fatal(err)
			}
			store := storage.OpenLocal(folder)
			handler, err := server.New(t.Context(), store, server.Options{Refresh: server.RefreshOptions{
				ProfileUpstream: upstream.URL + "/{address}", Interval: time.Hour, Strict: strict,
			}})
			if err != nil {
				t.Fatal(err)
			}
			bucket, fallback := newOrigin(t, bucketHandler(handler.Root().Config, store, "")), newOrigin(t, handler)
			configs.Store(bucket.URL+"/bucket", handler.Root().Config)
			base := s.start(t, bucket.URL+"/bucket", fallback.URL)
			asked := upstream.requests.Load()
			fresh := ask(t, http.MethodGet, base, details+"?cache=fresh")
			if fresh.status != http.StatusOK || fresh.header.Get("X-Refresh") != "" || !strings.Contains(fresh.body, `"display":"newer"`) {
				t.Fatalf("the first refresh: got %d %v %s, want what the upstream says", fresh.status, fresh.header, fresh.body)
			}
			for range 2 {
				again := ask(t, http.MethodGet, base, details+"?cache=fresh")
				want := ask(t, http.MethodGet, fallback.URL, details+"?cache=fresh")
				sameAnswer(t, "a refresh too soon", again, want, "Retry-After") // it counts down
				if strict && again.status != http.StatusTooManyRequests || !strict && (again.body != fresh.body || again.header.Get("X-Refresh") != "limited") {
					t.Errorf("strict %v: a refresh too soon: got %d %v %s", strict, again.status, again.header, again.body)
				}
				if wait, err := strconv.Atoi(again.header.Get("Retry-After")); err != nil || wait < 3000 || wait > 3600 {
					t.Errorf("strict %v: Retry-After: got %q, want the rest of an hour", strict, again.header.Get("Retry-After"))
				}
			}
			if n := upstream.requests.Load() - asked; n != 1 {
				t.Errorf("strict %v: got %d requests to the upstream, want 1", strict, n)
			}
			if a := ask(t, http.MethodGet, base, details); a.status != http.StatusOK || a.header.Get("X-Refresh") != "" || a.header.Get("Retry-After") != "" {
				t.Errorf("without cache=fresh: got %d %v, want the object as others get it", a.status, a.header)
			}
		}
	})
}

// While the bucket is down, cached answers and the fallback still work; while the
// fallback is down, all objects do.
func TestOriginsDown(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOrigins(t)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
		const cached, search = "/api/v1/lists/8/details", "/api/v1/lists/8/searchFollowing?limit=3"
		warm := ask(t, http.MethodGet, base, cached)

		o.fallback.down.Store(true)
		sameAnswer(t, "fallback down: object", ask(t, http.MethodGet, base, cached), warm)
		sameAnswer(t, "fallback down: name", ask(t, http.MethodGet, base, "/api/v1/users/%F0%9F%A6%8Afox.eth/searchFollowing"),
			o.answer("/api/v1/users/%F0%9F%A6%8Afox.eth/searchFollowing"), s.unseen...)
		if a := ask(t, http.MethodGet, base, search); a.status != http.StatusServiceUnavailable || (a.header.Get("Retry-After") == "") != slices.Contains(s.unseen, "Retry-After") ||
			!strings.Contains(a.body, `"status":503`) || a.header.Get("Cache-Control") != site.NoStore {
			t.Errorf("fallback down: search: got %d %q %s, want the 503 of the API", a.status, a.header, a.body)
		}
		o.fallback.down.Store(false)
		if a := ask(t, http.MethodGet, base, search); a.status != http.StatusOK {
			t.Errorf("fallback up again: got status %d, want 200: the failure was kept", a.status)
		}

		o.bucket.down.Store(true)
		if s.caches {
			sameAnswer(t, "bucket down: cached", ask(t, http.MethodGet, base, cached), warm)
		}
		want := http.StatusServiceUnavailable
		if s.absentAs != nil {
			want = http.StatusOK // the fallback answers in the bucket's place
		}
		if a := ask(t, http.MethodGet, base, "/api/v1/lists/7/details"); a.status != want || want != http.StatusOK && !strings.Contains(a.body, `"status":503`) {
			t.Errorf("bucket down: not cached: got %d %s, want a 503, or the fallback's 200", a.status, a.body)
		}
		o.bucket.down.Store(false)
		if a := ask(t, http.MethodGet, base, "/api/v1/lists/7/details"); a.status != http.StatusOK {
			t.Errorf("bucket up again: got status %d, want 200", a.status)
		}
	})
}

// A stale answer is served while the bucket is down, and replaced when it is back.
func TestStaleIfError(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		if !s.caches || s.kind == "cloudfront" {
			return // it has no cache of its own, or an imitated one
		}
		const path = "/api/v1/lists/8/details"
		o := newOriginsCaching(t, "public, max-age=1, stale-if-error=600")
		base := s.start(t, o.bucket.URL+"/bucket", "")
		warm := ask(t, http.MethodGet, base, path)
		// One stale answer does not mean one request to the bucket.
		untilAsked := func(what string) {
			t.Helper()
			before := o.bucket.requests.Load()
			for begun := time.Now(); o.bucket.requests.Load() == before; time.Sleep(10 * time.Millisecond) {
				sameAnswer(t, what, ask(t, http.MethodGet, base, path), warm)
				if time.Since(begun) > 30*time.Second {
					t.Fatalf("%s: the bucket was not asked", what)
				}
			}
		}
		o.bucket.down.Store(true)
		untilAsked("bucket down, answer fresh, then stale")
		for range 3 {
			sameAnswer(t, "bucket down, answer stale", ask(t, http.MethodGet, base, path), warm)
		}
		o.bucket.down.Store(false)
		untilAsked("bucket up again")
	})
}

// answer returns the answer of the handler, which does not depend on the state of the fallback.
func (o *origins) answer(path string) answer {
	w := newRecorder()
	request, err := http.NewRequest(http.MethodGet, "http://fallback"+path, nil)
	if err != nil {
		panic(err)
	}
	o.handler.ServeHTTP(w, request)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// The same with a real bucket that publish made: it may be read but not listed.
func TestConformanceOverMinIO(t *testing.T) {
	servers.Nightly(t)
	fromMinIO(t, sitePath(t), conformanceCases(t), "/api/v1/lists/1/details", "/_site", "/_errors/bad-limit", "/_variants/leaderboard/followers/limit=7")
	path, err := efpSites[site.NamesCopies]()
	if err != nil {
		t.Fatal(err)
	}
	var unknown []string
	for _, object := range site.UserObjects() {
		unknown = append(unknown, "/api/v1/users/"+unknownAddress+"/"+string(object))
	}
	fromMinIO(t, path, efpCases(t), unknown...)
}

func TestExplorerOverMinIO(t *testing.T) {
	fromMinIO(t, storedSite(t, site.Config{Explorer: true}), nil, explorerPaths()...)
}

// fromMinIO publishes a site to a bucket, and asks every edge for cases, and for paths, with their headers.
func fromMinIO(t *testing.T, path string, cases []fixtures.Case, paths ...string) {
	t.Helper()
	bucketURL := overMinIO(t, path)
	for _, s := range subjects {
		t.Run(s.kind, func(t *testing.T) {
			o := newOriginsOf(t, path, "")
			base := s.start(t, bucketURL, o.fallback.URL)
			for _, path := range paths {
				sameAnswer(t, path, ask(t, http.MethodGet, base, path), o.answer(path), s.unseen...)
			}
			if n := o.fallback.requests.Load(); n > 0 && s.kind == "nginx" {
				t.Errorf("requests to the fallback: got %d, want none for objects", n)
			}
			for _, c := range cases {
				checkCase(t, base, c)
			}
		})
	}
}

// overMinIO publishes a site to a bucket, which it returns the URL of.
func overMinIO(t *testing.T, site string) (bucketURL string) {
	t.Helper()
	minio := servers.Start(t, servers.MinIO)
	minio.Env(t)
	ctx := context.Background()
	at, err := storage.ParseLocation("s3://followpress/a/prefix")
	if err != nil {
		t.Fatal(err)
	}
	to, err := storage.OpenBucket(ctx, at, storage.S3Options{Endpoint: minio.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	from, err := storage.OpenSite(ctx, site, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if _, err := to.Create(ctx); err != nil {
		t.Fatal(err)
	}
	config, err := publisher.ConfigOf(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.AllowRead(ctx, config.PublicKeys()); err != nil {
		t.Fatal(err)
	}
	if _, err := publisher.Publish(ctx, from, to, publisher.Options{Patience: time.Minute}); err != nil {
		t.Fatal(err)
	}
	bucketURL = minio.Endpoint + "/followpress/a/prefix"
	configs.Store(bucketURL, config)
	return bucketURL
}
