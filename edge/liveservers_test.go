package edge_test

import (
	"bufio"
	"cmp"
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
	handler, err := liveHandler(t.Context(), cmp.Or(o.config.API, site.APISpec), 100)
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
			for _, one := range c.cases {
				isRead := one.Method == "" || one.Method == http.MethodGet || one.Method == http.MethodHead
				if !isRead && (s.kind == "caddy" || s.kind == "cloudfront") {
					continue // which go to the fallback
				}
				checkCase(t, base, one)
				if one.Method == "" && s.receives(one.Path) {
					want := ask(t, http.MethodGet, live.URL, one.Path)
					sameAnswer(t, one.Path, ask(t, http.MethodGet, base, one.Path), want, s.unseen...)
				}
			}
			// On a busy machine live may take more than its second.
			if n := c.o.bucket.requests.Load() + c.o.fallback.requests.Load(); n > int64(len(c.cases)/50) {
				t.Errorf("%s: got %d requests to the bucket and the fallback for %d cases, want hardly any: live answers", what, n, len(c.cases))
			}
		}
	})
}

// What live keeps for nobody else, and what it says of itself, passes.
func TestLivePasses(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOriginsEFP(t, site.NamesCopies)
		live := newLive(t, site.APIEFP)
		live.begin(100)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL, live.before)
		const path, computed, batch = "/api/v1/lists/1/details", "/api/v1/lists/1/following?limit=1&offset=1", "/api/v1/lists/1/buttonStateBatch"
		for _, p := range []string{path, computed} {
			ask(t, http.MethodGet, base, p)
			// A block that is there is no reason to wait, and the answer is nobody else's.
			for _, after := range []string{"8453:99", "8453:100"} {
				begun := time.Now()
				a := ask(t, http.MethodGet, base, p, "X-After", after, "Prefer", "wait=3")
				if a.status != http.StatusOK || a.header.Get("Cache-Control") != site.NoStore || !heads(a, 100) || time.Since(begun) > 2*time.Second {
					t.Errorf("%s after %s: got %d %v in %v, want live's answer at once", p, after, a.status, a.header, time.Since(begun))
				}
			}
			begun := time.Now()
			if a := ask(t, http.MethodGet, base, p, "X-After", "8453:101", "Prefer", "wait=2"); a.status != http.StatusOK || !heads(a, 100) || time.Since(begun) < 2*time.Second {
				t.Errorf("%s after a block that does not come: got %d %v in %v, want live's answer after 2s", p, a.status, a.header, time.Since(begun))
			}
			if a := ask(t, http.MethodGet, base, p, "X-After", "nonsense"); a.status != http.StatusBadRequest {
				t.Errorf("%s with a malformed X-After: got %d, want live's 400", p, a.status)
			}
			if a := ask(t, http.MethodGet, base, p); a.header.Get("Cache-Control") != liveCaching {
				t.Errorf("%s afterwards: got %q, want an answer for all", p, a.header.Get("Cache-Control"))
			}
		}
		if a := ask(t, http.MethodGet, base, path+"?cache=fresh"); a.status != http.StatusOK || a.header.Get("X-Heads") == "" || a.header.Get("Cache-Control") != site.NoStore {
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
			begun := time.Now()
			isUnavailable(t, "live is away: "+p, ask(t, http.MethodGet, base, p))
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("live is away: %s: got an answer after %v, want it quickly", p, took)
			}
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
	a := ask(t, http.MethodGet, base, "/api/v1/lists/1/details")
	for _, name := range []string{site.HeaderAsOf, site.HeaderHeads, site.HeaderFinalized} {
		if a.header.Get(name) == "" || !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("%s: got %q, exposed %q", name, a.header.Get(name), a.header.Get("Access-Control-Expose-Headers"))
		}
	}
}

// Events arrive one by one, as they are sent, and for longer than an answer may take.
func checkEvents(t *testing.T, base string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
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
	if took := time.Since(begun); rounds < 6 || !resumed || first > 2*time.Second || took < 2*time.Second {
		t.Errorf("events: got %d, resumed %v, the first line after %v, in %v (%v), want each as it is sent", rounds, resumed, first, took, lines.Err())
	}
}

var liveRate = flag.Int("live-rate", 200, "requests per second of TestLiveAway")

// Under load, live is killed, stopped, and started again: no request fails, none waits, and what
// comes from live and what comes from the bucket do not alternate.
func TestLiveAway(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOrigins(t)
		live := newLive(t, site.APISpec)
		live.begin(100)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL, live.before)
		l := newLoad(o, base, *liveRate)
		l.phase(t, "live", time.Second, fromLive)
		live.kill()
		l.becomes(t, "killed", fromBucket, liveKept)
		l.phase(t, "killed", 2*time.Second, fromBucket)
		live.begin(200)
		l.becomes(t, "started again", fromLive, liveTried)
		live.Signal(syscall.SIGSTOP)
		l.becomes(t, "stopped", fromBucket, liveKept)
		l.phase(t, "stopped", 6*time.Second, fromBucket)
		for _, c := range []struct {
			path   string
			header []string
			status int
		}{
			{l.paths[0], []string{"X-After", "8453:1000"}, http.StatusOK},
			{l.paths[0] + "?cache=fresh", nil, http.StatusOK},
			{"/_live/events", nil, http.StatusServiceUnavailable},
		} {
			begun := time.Now()
			if a := ask(t, http.MethodGet, base, c.path, c.header...); a.status != c.status || time.Since(begun) > 1500*time.Millisecond+l.paused {
				l.complain(t, a.status == c.status, "stopped: %s %v: got %d after %v, want %d within 1.5s", c.path, c.header, a.status, time.Since(begun), c.status)
			}
		}
		live.Signal(syscall.SIGCONT)
		l.becomes(t, "goes on", fromLive, liveTried)
		for _, fault := range []string{"lag", "reset"} {
			live.fails(fault)
			l.becomes(t, fault, fromBucket, liveKept)
			l.phase(t, fault, time.Second, fromBucket)
			live.fails("")
			l.becomes(t, "no more "+fault, fromLive, liveTried)
		}
		live.kill()
		live.begin(150) // its state is older
		l.becomes(t, "an older graph", fromLive, liveTried)
		time.Sleep(2 * time.Second)
		for _, path := range l.paths[:6] {
			if a := ask(t, http.MethodGet, base, path); !heads(a, 150) {
				t.Errorf("%s after a start with an older graph: got %v, want block 150", path, a.header)
			}
		}
		defer l.judge(t)
		t.Logf("%d requests, the slowest took %v; half a second and more: %v; this process paused for %v", l.sent, l.slowest, l.slow, l.paused)
		// Every five seconds nginx and the Worker try objects and computed answers again. Of some, three are tried at first.
		if most := 20; l.slow["stopped"] > most || l.slow["killed"]+l.slow["lag"]+l.slow["reset"] > 0 {
			l.complain(t, true, "requests that waited for half a second while live was away: got %v, want at most %d while it was stopped, and none else", l.slow, most)
		}
	}, "cloudfront")
}

// If live stalls within a body, the Worker has sent nothing yet, and answers from the bucket. nginx and Caddy
// have: nginx cuts the answer off, so that the client knows; Caddy has no limit between two reads (docs/deploy/caddy.md).
// The origins of CloudFront are imitated in these tests: see TestCloudFrontLive.
func TestLiveStalls(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOrigins(t)
		live := newLive(t, site.APISpec)
		live.begin(100)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL, live.before)
		const path = "/api/v1/lists/8/searchFollowing"
		ask(t, http.MethodGet, base, path)
		time.Sleep(2500 * time.Millisecond)
		live.fails("stall")
		begun := time.Now()
		a, err := tryAsk(http.MethodGet, base, path)
		took := time.Since(begun)
		want := o.answer(path)
		if s.kind == "nginx" {
			if err == nil {
				t.Errorf("got %d with %d bytes, want an error: the body is not whole", a.status, len(a.body))
			}
		} else if err != nil || a.status != want.status || a.body != want.body || a.header.Get("X-Heads") != "" {
			t.Errorf("got %d %v (%v), want the answer of the bucket", a.status, a.header, err)
		}
		if took > 2500*time.Millisecond {
			t.Errorf("got the end of the answer after %v", took)
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

const (
	// liveKept is how long an answer of live may be served after live has gone: its two seconds, and the one in which a
	// request waits for live.
	liveKept = 3 * time.Second
	// liveTried is how long it takes at most until live is asked again.
	liveTried = 6 * time.Second
	settled   = 60 // answers in a row from the same origin show that the edge has switched
)

// What a phase of a load wants.
type wanted string

const (
	fromLive   wanted = "live"
	fromBucket wanted = "bucket"
	either     wanted = "either"
)

// A load sends requests at a rate, and keeps what was wrong.
type load struct {
	o     *origins
	base  string
	rate  int // requests per second
	paths []string
	want  map[string]answer

	mu      sync.Mutex
	sent    int
	slowest time.Duration
	slow    map[string]int // by phase: requests that took half a second or more
	late    []string       // what was wrong with times
	paused  time.Duration  // the longest time for which this process did not go on
	from    wanted         // where the last answers came from, and how many of them
	inRow   int
}

func newLoad(o *origins, base string, rate int) *load {
	l := &load{o: o, base: base, rate: rate, want: map[string]answer{}, slow: map[string]int{}}
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

// phase sends requests for a while, which all are answered from one origin.
func (l *load) phase(t *testing.T, name string, span time.Duration, want wanted) {
	t.Helper()
	l.run(t, name, want, func(passed time.Duration) bool { return passed > span })
}

// becomes sends requests until they are answered from an origin, within a time.
func (l *load) becomes(t *testing.T, name string, want wanted, most time.Duration) {
	t.Helper()
	l.run(t, name+": switch", either, func(passed time.Duration) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		isSettled := l.from == want && l.inRow >= settled
		if late := passed > most+l.paused+settled*time.Second/time.Duration(l.rate); late && !isSettled {
			l.complain(t, true, "%s: after %v, got %d answers in a row from %s, want %d from %s", name, passed, l.inRow, l.from, settled, want)
			return true
		}
		return isSettled
	})
}

func (l *load) run(t *testing.T, name string, want wanted, enough func(passed time.Duration) bool) {
	t.Helper()
	var all sync.WaitGroup
	begun := time.Now()
	pause := time.Second / time.Duration(l.rate)
	l.mu.Lock()
	l.inRow = 0
	l.mu.Unlock()
	for n := 0; !enough(time.Since(begun)); n++ {
		if late := time.Since(begun) - time.Duration(n)*pause; late < 0 {
			before := time.Now()
			time.Sleep(-late)
			l.mu.Lock()
			l.paused = max(l.paused, time.Since(before)+late)
			l.mu.Unlock()
		}
		path := l.paths[l.sent%len(l.paths)]
		if l.sent%3 == 0 {
			path = l.paths[0] // which several ask for at a time
		}
		l.sent++
		all.Go(func() { l.send(t, name, path, want) })
	}
	all.Wait()
}

func (l *load) send(t *testing.T, name, path string, want wanted) {
	begun := time.Now()
	a, err := tryAsk(http.MethodGet, l.base, path)
	took := time.Since(begun)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	if took >= 500*time.Millisecond {
		l.slow[name]++
	}
	if most := 1500*time.Millisecond + l.paused; took > most {
		l.complain(t, true, "%s: %s: got the answer after %v, want at most %v", name, path, took, most)
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
	if want != either && from != want {
		l.complain(t, true, "%s: %s: got the answer of %s, want that of %s", name, path, from, want)
	}
}

// busy is how long this process may stand still. On a machine that is so busy, live takes more than its second, too, and
// times say nothing about edges.
const busy = 300 * time.Millisecond

// complain says what is wrong, at once unless it may be no more than a matter of time. l.mu is held, or nobody sends.
func (l *load) complain(t *testing.T, ofTime bool, format string, arguments ...any) {
	t.Helper()
	if !ofTime {
		t.Errorf(format, arguments...)
		return
	}
	l.late = append(l.late, fmt.Sprintf(format, arguments...))
}

// judge says what was wrong with times.
func (l *load) judge(t *testing.T) {
	t.Helper()
	for _, wrong := range l.late[:min(10, len(l.late))] {
		if l.paused > busy {
			t.Logf("this process stood still for %v, so this may not be the edge's fault: %s", l.paused, wrong)
		} else {
			t.Error(wrong)
		}
	}
}
