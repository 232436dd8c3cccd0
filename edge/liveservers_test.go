package edge_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/site"
)

// before puts a server in front of an edge as live.
func before(live *origin) func(*edge.Options) { return func(o *edge.Options) { o.Live = live.URL } }

// liveOf is live over the same site, in this process.
func (o *origins) liveOf(t testing.TB) *origin {
	t.Helper()
	handler, err := liveHandler(t.Context(), o.config, 100)
	if err != nil {
		t.Fatal(err)
	}
	return newOrigin(t, handler)
}

// Every case comes from live, exactly, and nothing is asked of the bucket and the fallback.
func TestLiveConformance(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		for what, c := range map[string]struct {
			o     *origins
			cases []fixtures.Case
		}{"spec": {newOrigins(t), conformanceCases(t)}, "efp": {newOriginsEFP(t, site.NamesCopies), efpCases(t)}} {
			live := c.o.liveOf(t)
			base := s.start(t, c.o.bucket.URL+"/bucket", c.o.fallback.URL, before(live))
			away := 0
			for _, one := range c.cases {
				isRead := one.Method == "" || one.Method == http.MethodGet || one.Method == http.MethodHead
				if !isRead && (s.kind == "caddy" || s.kind == "cloudfront") {
					continue // these go to the fallback
				}
				checkCase(t, base, one)
				if one.Method == "" && s.receives(one.Path) {
					want := ask(t, http.MethodGet, live.URL, one.Path)
					got := ask(t, http.MethodGet, base, one.Path)
					if want.header.Get("X-Heads") != "" && got.header.Get("X-Heads") == "" {
						got = askLive(t, base, one.Path)
						away++
					}
					sameAnswer(t, one.Path, got, want, s.unseen...)
				}
			}
			// On a busy machine live may take more than its second, and is not asked for five seconds.
			if away > len(c.cases)/4 {
				t.Errorf("%s: got %d of %d answers from the bucket and the fallback, want hardly any: live answers", what, away, len(c.cases))
			}
		}
	})
}

// Uncacheable answers of live, and its status and events, pass through.
func TestLivePasses(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOriginsEFP(t, site.NamesCopies)
		live := newLive(t, site.APIEFP)
		live.begin(100)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL, live.before)
		const path, computed, batch = "/api/v1/lists/1/details", "/api/v1/lists/1/following?limit=1&offset=1", "/api/v1/lists/1/buttonStateBatch"
		for _, p := range []string{path, computed} {
			askLive(t, base, p)
			// A block that is already there causes no wait, and the answer is not shared.
			for _, after := range []string{"8453:99", "8453:100"} {
				begun := time.Now()
				a := ask(t, http.MethodGet, base, p, "X-After", after, "Prefer", "wait=10")
				if a.status != http.StatusOK || a.header.Get("Cache-Control") != site.NoStore || !heads(a, 100) || time.Since(begun) > 9*time.Second {
					t.Errorf("%s after %s: got %d %v in %v, want live's answer without a wait", p, after, a.status, a.header, time.Since(begun))
				}
			}
			begun := time.Now()
			if a := ask(t, http.MethodGet, base, p, "X-After", "8453:101", "Prefer", "wait=2"); a.status != http.StatusOK || !heads(a, 100) || time.Since(begun) < 2*time.Second {
				t.Errorf("%s after a block that does not come: got %d %v in %v, want live's answer after 2s", p, a.status, a.header, time.Since(begun))
			}
			if a := ask(t, http.MethodGet, base, p, "X-After", "nonsense"); a.status != http.StatusBadRequest {
				t.Errorf("%s with a malformed X-After: got %d, want live's 400", p, a.status)
			}
			if a := askLive(t, base, p); a.header.Get("Cache-Control") != liveCaching {
				t.Errorf("%s afterwards: got %q, want an answer for all", p, a.header.Get("Cache-Control"))
			}
		}
		if a := askLive(t, base, path+"?cache=fresh"); a.status != http.StatusOK || a.header.Get("Cache-Control") != site.NoStore {
			t.Errorf("fresh: got %d %v, want live's answer, not stored", a.status, a.header)
		}
		if s.kind != "caddy" {
			a, err := trySend(http.MethodPost, base, batch, `["0x0000000000000000000000000000000000000001"]`, "X-After", "8453:100")
			if err != nil || a.status != http.StatusOK || a.header.Get("X-Heads") == "" {
				t.Errorf("a batch: got %d %v %v, want live's answer", a.status, a.header, err)
			}
		}
		if a := ask(t, http.MethodGet, base, "/_live/status?x=1"); a.status != http.StatusOK || !strings.Contains(a.body, "8453") {
			t.Errorf("status: got %d %s", a.status, a.body)
		}
		checkPreflight(t, base)
		checkEvents(t, base)
		live.kill()
		for _, p := range []string{"/_live/events", "/_live/status"} {
			isUnavailable(t, "live is away: "+p, ask(t, http.MethodGet, base, p))
		}
		for _, p := range []string{path, computed, path + "?cache=fresh"} {
			a := ask(t, http.MethodGet, base, p, "X-After", "8453:101")
			if want := o.answer(p); a.status != want.status || a.body != want.body || a.header.Get("X-Heads") != "" {
				t.Errorf("live is away: %s: got %d %v, want the answer of the bucket or the fallback", p, a.status, a.header)
			}
		}
		a, err := trySend(http.MethodPost, base, batch, `["0x0000000000000000000000000000000000000001"]`)
		if err != nil || a.status != http.StatusOK || a.header.Get("X-Heads") != "" || o.fallback.requests.Load() == 0 {
			t.Errorf("live is away: a batch: got %d %v %v, want the fallback's answer", a.status, a.header, err)
		}
	}, "cloudfront")
}

// Pages of any origin may send the headers, and read those of live.
func checkPreflight(t *testing.T, base string) {
	t.Helper()
	for _, path := range []string{"/_live/events", "/api/v1/lists/1/details"} {
		a := ask(t, http.MethodOptions, base, path, "Origin", "https://example.org", "Access-Control-Request-Headers", "x-after,prefer,last-event-id")
		if a.status != http.StatusNoContent || a.header.Get("Access-Control-Allow-Headers") != "*" {
			t.Errorf("preflight of %s: got %d %v", path, a.status, a.header)
		}
	}
	a := askLive(t, base, "/api/v1/lists/1/details")
	for _, name := range []string{"X-As-Of", "X-Heads", "X-Finalized"} {
		if a.header.Get(name) == "" || !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("%s: got %q, exposed %q", name, a.header.Get(name), a.header.Get("Access-Control-Expose-Headers"))
		}
	}
}

// Events arrive one by one, as they are sent, and for longer than an answer may take.
func checkEvents(t *testing.T, base string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/_live/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Last-Event-ID", "a1b2c3-17")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Accept-Encoding", "gzip, zstd")
	begun := time.Now()
	response, err := client.Do(request)
	if err != nil {
		t.Errorf("events: %v", err)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" || response.Header.Get("Content-Encoding") != "" {
		t.Errorf("events: got %d %v", response.StatusCode, response.Header)
	}
	lines := bufio.NewScanner(response.Body)
	first, rounds, resumed := time.Duration(0), 0, false
	for rounds < 6 && lines.Scan() {
		if first == 0 {
			first = time.Since(begun)
		}
		switch lines.Text() {
		case "event: reset": // live does not know the last one
			resumed = true
		case "event: round":
			rounds++
		}
	}
	if took := time.Since(begun); rounds < 6 || !resumed || took-first < 500*time.Millisecond {
		t.Errorf("events: got %d, resumed %v, the first line after %v, the last after %v (%v), want each as it is sent", rounds, resumed, first, took, lines.Err())
	}
}

var liveRate = flag.Int("live-rate", 200, "requests per second of TestLiveAway")

// Under load, live is killed, suspended and restarted. No request fails, few requests try live
// while it is away, and after the edge has switched, answers of live and of the bucket do not
// alternate. The test only logs durations: on a busy machine they mean nothing.
func TestLiveAway(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOrigins(t)
		live := newLive(t, site.APISpec)
		live.begin(100)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL, live.before)
		l := newLoad(o, base, *liveRate)
		l.becomes(t, "live", fromLive)
		live.kill()
		l.becomes(t, "killed", fromBucket)
		l.away(t, "killed", 2*time.Second)
		live.begin(200)
		l.becomes(t, "started again", fromLive)
		live.Signal(syscall.SIGSTOP)
		l.becomes(t, "stopped", fromBucket)
		l.away(t, "stopped", 6*time.Second) // in which live is tried again
		for _, c := range []struct {
			path   string
			header []string
			status int
		}{
			{l.paths[0], []string{"X-After", "8453:1000"}, http.StatusOK},
			{l.paths[0] + "?cache=fresh", nil, http.StatusOK},
			{"/_live/events", nil, http.StatusServiceUnavailable},
		} {
			if a := ask(t, http.MethodGet, base, c.path, c.header...); a.status != c.status || a.header.Get("X-Heads") != "" {
				t.Errorf("stopped: %s %v: got %d %v, want %d of another origin", c.path, c.header, a.status, a.header, c.status)
			}
		}
		live.Signal(syscall.SIGCONT)
		l.becomes(t, "goes on", fromLive)
		for _, fault := range []string{"lag", "reset"} {
			live.fails(fault)
			l.becomes(t, fault, fromBucket)
			before, sent, begun := live.tried(t), l.sent, time.Now()
			l.away(t, fault, time.Second)
			// Every five seconds, objects and computed answers are tried again, each by a few requests.
			most := 8 * int64(1+time.Since(begun)/(5*time.Second))
			if got := live.tried(t) - before; got > most {
				t.Errorf("%s: got %d of %d requests at live within %v, want at most %d", fault, got, l.sent-sent, time.Since(begun), most)
			}
			live.fails("")
			l.becomes(t, "no more "+fault, fromLive)
		}
		live.kill()
		live.begin(150) // its state is older
		for _, path := range l.paths[:6] {
			soon(t, path+" after a start with an older graph: an answer of block 150", func() bool { return heads(ask(t, http.MethodGet, base, path), 150) })
		}
		t.Logf("%d requests, the slowest took %v; half a second and more: %v", l.sent, l.slowest, l.slow)
	}, "cloudfront")
}

// soon waits until something holds, for as long as the busiest machine may take.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("after a minute: got nothing, want %s", what)
		}
	}
}

// askLive asks until the answer is that of live: on a busy machine live may take more than its second, and is not asked for
// the next five then.
func askLive(t *testing.T, base, path string) (a answer) {
	t.Helper()
	soon(t, path+" from live", func() bool {
		a = ask(t, http.MethodGet, base, path)
		return a.header.Get("X-Heads") != ""
	})
	return a
}

// If live stalls within a body, the Worker has sent nothing yet, and answers from the bucket. nginx and Caddy
// have: nginx cuts the answer off, so that the client knows; Caddy has no limit between two reads (docs/deploy/caddy.md).
// The origins of CloudFront are imitated in these tests: see TestCloudFrontFunction.
func TestLiveStalls(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOrigins(t)
		live := newLive(t, site.APISpec)
		live.begin(100)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL, live.before)
		const path = "/api/v1/lists/8/searchFollowing"
		live.fails("")
		for try := 0; ; try++ {
			askLive(t, base, path)
			time.Sleep(2500 * time.Millisecond)
			before := live.tried(t)
			live.fails("stall") // for a minute
			begun := time.Now()
			a, err := tryAsk(http.MethodGet, base, path)
			took := time.Since(begun)
			live.fails("")
			if live.tried(t) == before && try < 5 {
				continue // the machine is busy, and the edge takes live to be away
			}
			want := o.answer(path)
			if s.kind == "nginx" {
				if err == nil {
					t.Errorf("got %d with %d bytes, want an error: the body is not whole", a.status, len(a.body))
				}
			} else if err != nil || a.status != want.status || a.body != want.body || a.header.Get("X-Heads") != "" {
				t.Errorf("got %d %v (%v), want the answer of the bucket", a.status, a.header, err)
			}
			if took > 30*time.Second {
				t.Errorf("got the end of the answer after %v", took)
			}
			return
		}
	}, "cloudfront", "caddy")
}

// Only the bucket has reports; live would not find them.
func TestLiveHasNoReports(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOriginsEFP(t, site.NamesCopies)
		live := o.liveOf(t)
		withExplorer := func(o *edge.Options) { o.Config.Explorer = true }
		bucket := newWitness(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, r.URL.Path)
		})
		configs.Store(bucket.URL+"/bucket", o.config)
		base := s.start(t, bucket.URL+"/bucket", o.fallback.URL, before(live), withExplorer)
		for range 2 {
			for _, path := range []string{"/_reports/index", "/_snapshot/index/" + anyDigest, "/_snapshot/" + anyDigest} {
				if a := ask(t, http.MethodGet, base, path); a.status != http.StatusOK || a.body != "/bucket"+path {
					t.Errorf("%s: got %d %s, want that of the bucket", path, a.status, a.body)
				}
			}
		}
		if a := ask(t, http.MethodGet, base, "/_explore/index.html"); a.body == "/bucket/_explore/index.html" {
			t.Error("the explorer: got that of the bucket, want that of live")
		}
	})
}

// What a load wants.
type wanted string

const (
	fromLive   wanted = "live"
	fromBucket wanted = "bucket"
)

// A load sends requests at a rate at most, from some clients. No request may fail.
type load struct {
	o       *origins
	base    string
	clients int
	pause   time.Duration // pause of a client between two requests
	paths   []string
	want    map[string]answer

	mu      sync.Mutex
	sent    int
	slowest time.Duration
	slow    map[string]int // by phase: requests that took half a second or more
	from    wanted         // where the last answers came from, and how many of them
	inRow   int
}

func newLoad(o *origins, base string, rate int) *load {
	l := &load{o: o, base: base, clients: max(1, rate/50), want: map[string]answer{}, slow: map[string]int{}}
	l.pause = time.Duration(l.clients) * time.Second / time.Duration(rate)
	for _, list := range []string{"1", "2", "5", "6", "7", "8", "9", "404"} {
		for _, rest := range []string{"details", "records", "searchFollowing", "searchFollowing?limit=3", "searchFollowing?term=fox", "records?includeTags=false"} {
			l.paths = append(l.paths, "/api/v1/lists/"+list+"/"+rest)
		}
	}
	l.paths = append(l.paths, "/_site", "/api/v1/leaderboard/followers", "/api/v1/leaderboard/followers?limit=7", "/api/v1/users/alice.eth/searchFollowing",
		"/api/v1/users/%F0%9F%A6%8Afox.eth/searchFollowing", "/nothing")
	for _, path := range l.paths {
		l.want[path] = o.answer(path)
	}
	return l
}

// becomes sends requests until the edge has switched to an origin. Then each path was answered from that origin, and none from
// the other origin since. The limit of time only ends the test.
func (l *load) becomes(t *testing.T, name string, want wanted) {
	t.Helper()
	settled := 2 * len(l.paths)
	l.mu.Lock()
	l.inRow = 0
	l.mu.Unlock()
	begun := time.Now()
	l.run(t, name+": switch", func() bool { return l.from == want && l.inRow >= settled || time.Since(begun) > time.Minute })
	if l.from != want || l.inRow < settled {
		t.Fatalf("%s: after %v, got %d answers in a row from %s, want %d from %s", name, time.Since(begun), l.inRow, l.from, settled, want)
	}
}

// away sends requests for a while in which live does not answer: all are answered from the bucket, and so fast that not each
// can have waited for live, which edges give a second.
func (l *load) away(t *testing.T, name string, span time.Duration) {
	t.Helper()
	before, rows, begun := l.sent, l.inRow, time.Now()
	l.run(t, name, func() bool { return time.Since(begun) > span && l.inRow > rows+50 || l.from != fromBucket })
	if l.from != fromBucket {
		t.Errorf("%s: got an answer of %s, want all from the bucket", name, l.from)
	}
	if sent := l.sent - before; time.Since(begun)*time.Duration(l.clients) > time.Duration(sent)*time.Second {
		t.Errorf("%s: got %d answers in %v for %d clients, want more: each may have waited for live", name, sent, time.Since(begun), l.clients)
	}
}

// run sends requests until there are enough. enough is called with l.mu held.
func (l *load) run(t *testing.T, name string, enough func() bool) {
	t.Helper()
	var all sync.WaitGroup
	for range l.clients {
		all.Go(func() {
			for !t.Failed() {
				l.mu.Lock()
				ended := enough()
				path := l.paths[l.sent%len(l.paths)]
				if l.sent%4 == 0 {
					path = l.paths[0] // several clients request this path concurrently
				}
				l.sent++
				l.mu.Unlock()
				if ended {
					return
				}
				l.send(t, name, path)
				time.Sleep(l.pause)
			}
		})
	}
	all.Wait()
}

func (l *load) send(t *testing.T, name, path string) {
	begun := time.Now()
	a, err := tryAsk(http.MethodGet, l.base, path)
	took := time.Since(begun)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	if took >= 500*time.Millisecond {
		l.slow[name]++
	}
	expected := l.want[path]
	isRoot := path == "/_site" // live's is another one
	if err != nil || a.status != expected.status || a.body != expected.body && !isRoot {
		t.Errorf("%s: %s: got %d %.100q (%v), want %d", name, path, a.status, a.body, err, expected.status)
		return
	}
	if path == "/nothing" {
		return // edges answer it themselves
	}
	from := map[bool]wanted{true: fromLive, false: fromBucket}[a.header.Get("X-Heads") != ""]
	if l.inRow++; from != l.from {
		l.from, l.inRow = from, 1
	}
}
