package live_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// TestAnswersAreOfOneGraph sends random requests during random rounds. Each answer must equal, byte
// for byte, the answer of serve for the graph in X-Heads. That graph must have been current at some
// time during the request.
func TestAnswersAreOfOneGraph(t *testing.T) {
	t.Parallel()
	for _, api := range []string{site.APISpec, site.APIEFP} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			o := options(api)
			if api == site.APIEFP { // what happened lately counts from the time of each graph
				o.Generator.Config.HistoryWindow = site.Window(site.DefaultHistoryWindow)
			}
			rounds, graphs := servers.Rounds(12, 400), 4
			var snapshots []afero.Fs
			var twins []http.Handler
			var asked []naive.Request
			for seed := range uint64(graphs) {
				files := naive.Random(seed)
				snapshots = append(snapshots, afero.FromIOFS{FS: files})
				twins = append(twins, served(t, snapshots[seed], o))
				asked = append(asked, someRequests(t, files, seed)...)
			}
			var answered atomic.Uint64 // the newest block that was served for sure
			o.Hooks.Round = func(end live.RoundEnd) { answered.Store(end.Heads[0].Block) }
			l := run(t, o)
			var of sync.Map // the number of the snapshot of each block
			random := rand.New(rand.NewPCG(1, 2))
			send := func(number uint64, graph int, changed bool) {
				of.Store(number, graph)
				if changed {
					l.serve(t, atBlock(number, snapshots[graph]), live.NewGraph)
				} else {
					l.serve(t, atBlock(number, nil), live.NewHeads)
				}
			}
			send(1, 0, true)
			ctx, cancel := context.WithCancel(t.Context())
			var askers sync.WaitGroup
			var checked [2]atomic.Int64 // answers 200, and others
			for asker := range uint64(3) {
				askers.Go(func() {
					random := rand.New(rand.NewPCG(asker, 3))
					for i := 1; ctx.Err() == nil; i++ {
						if i%20 == 0 {
							time.Sleep(time.Millisecond) // the rounds need the processor too
						}
						r := asked[random.IntN(len(asked))]
						before := answered.Load()
						got := do(l, r)
						number, graph, err := graphOf(got, &of)
						if err != nil || number < before {
							t.Errorf("%s: got X-Heads %q, want a graph of block %d or later", r, got.Header().Get("X-Heads"), before)
							return
						}
						if err := sameAnswer(got, do(twins[graph], r)); err != nil {
							t.Errorf("%s at block %d: %v", r, number, err)
							return
						}
						checked[min(1, got.Code-http.StatusOK)].Add(1)
					}
				})
			}
			graph := 0
			for number := uint64(2); number < uint64(rounds); number++ {
				changed := random.IntN(3) > 0
				if changed {
					graph = random.IntN(graphs)
				}
				send(number, graph, changed)
			}
			cancel()
			askers.Wait()
			if ok, others := checked[0].Load(), checked[1].Load(); ok < 50 || others < 5 {
				t.Errorf("answers: got %d of status 200 and %d others, want many", ok, others)
			}
		})
	}
}

// someRequests are requests that a site of a graph answers, and others.
func someRequests(t testing.TB, files fs.FS, seed uint64) []naive.Request {
	t.Helper()
	graph, err := naive.Load(files, naive.Config{HistoryWindow: site.DefaultHistoryWindow}) // those about operations are 404 under the specification
	if err != nil {
		t.Fatal(err)
	}
	return naive.Requests(rand.New(rand.NewPCG(seed, 0)), graph, 400)
}

func do(h http.Handler, r naive.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(r.Method, r.URL(), strings.NewReader(string(r.Body))))
	return w
}

// graphOf returns the block of an answer, and the number of its graph.
func graphOf(w *httptest.ResponseRecorder, of *sync.Map) (number uint64, graph int, err error) {
	text, ok := strings.CutPrefix(w.Header().Get("X-Heads"), fmt.Sprint(base)+":")
	number, err = strconv.ParseUint(text, 10, 64)
	n, known := of.Load(number)
	if !ok || err != nil || !known {
		return 0, 0, fmt.Errorf("no such block: %q", text)
	}
	return number, n.(int), nil
}

// sameAnswer compares answers as clients see them, except for age and cache lifetime.
func sameAnswer(got, want *httptest.ResponseRecorder) error {
	if got.Code != want.Code || got.Body.String() != want.Body.String() {
		return fmt.Errorf("got %d and %.300s, want %d and %.300s", got.Code, got.Body, want.Code, want.Body)
	}
	for _, name := range []string{"Etag", "Content-Type", "Content-Length", "Allow", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"} {
		if got.Header().Get(name) != want.Header().Get(name) {
			return fmt.Errorf("%s: got %q, want %q", name, got.Header().Get(name), want.Header().Get(name))
		}
	}
	return nil
}

// A blocked is a client that reads its answer when it may.
type blocked struct {
	*httptest.ResponseRecorder
	read chan struct{}
}

func (b blocked) Write(p []byte) (int, error) {
	<-b.read
	return b.ResponseRecorder.Write(p)
}

// sleepy is a body that arrives after some time.
type sleepy struct {
	io.Reader
	after time.Duration
}

func (s sleepy) Read(p []byte) (int, error) {
	time.Sleep(s.after)
	return s.Reader.Read(p)
}

// A graph that was replaced is freed when its last answer is made, not when that is read. Two are in memory at most: the
// next one waits for that.
func TestReplacedGraphsAreFreed(t *testing.T) {
	served(t, demo(), options(site.APIEFP)) // the first bundling starts timers, which must stay out of the bubble
	synctest.Test(t, func(t *testing.T) {
		l := started(t, options(site.APIEFP), 1, 1)
		read := make(chan struct{})
		slow := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			w := blocked{httptest.NewRecorder(), read}
			l.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/leaderboard/ranked", nil))
			slow <- w.ResponseRecorder
		}()
		synctest.Wait()
		want := get(l, "/api/v1/leaderboard/ranked").Body.String()
		changed := textSnapshot(map[string]string{
			"meta.json": `{"format":1,"as_of":"2026-11-20T00:00:00Z"}`, "lists.ndjson": "", "records.ndjson": "", "accounts.ndjson": "", "events.ndjson": "", "badges.ndjson": "",
		})
		for number := uint64(2); number < 6; number++ {
			r := twoChains(number, 1)
			r.Snapshot = changed
			if end := l.serve(t, r, live.NewGraph); end.Took != 0 {
				t.Errorf("round %d took %s, want no wait for readers", number, end.Took)
			}
			synctest.Wait()
			if got := l.Status().Graphs; got != 1 {
				t.Errorf("graphs in memory after round %d: got %d, want 1", number, got)
			}
		}
		close(read)
		if got := (<-slow).Body.String(); got != want {
			t.Errorf("the slow answer: got %.100s, want that of its graph, %.100s", got, want)
		}

		// An answer that is not made yet keeps its graph, and the round after the next one waits.
		posted := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			w := httptest.NewRecorder()
			body := sleepy{strings.NewReader(`["0x0000000000000000000000000000000000000001"]`), time.Second}
			r := httptest.NewRequest(http.MethodPost, "/api/v1/lists/1/buttonStateBatch", body)
			l.ServeHTTP(w, r)
			posted <- w
		}()
		synctest.Wait()
		for number := uint64(6); number < 8; number++ {
			r := twoChains(number, 1)
			r.Snapshot = demo()
			end := l.serve(t, r, live.NewGraph)
			if waited := end.Took > 0; waited != (number == 7) {
				t.Errorf("round %d took %s, want that the second one waits", number, end.Took)
			}
			if got := l.Status().Graphs; got > 2 {
				t.Errorf("graphs in memory: got %d, want two at most", got)
			}
		}
		if w := <-posted; w.Code != http.StatusNotFound || // the old graph has no list
			w.Header().Get("X-Heads") != "8453:5, 10:1" {
			t.Errorf("the answer: got %d %s with heads %q, want one of the old graph", w.Code, w.Body, w.Header().Get("X-Heads"))
		}
	})
}

// heads returns the heads of two chains. The second is behind the clock of this machine.
func heads(base, optimism uint64, behind time.Duration) source.Round {
	r := twoChains(base, optimism)
	r.Heads[1].Time -= behind.Milliseconds()
	return r
}

// A chain lags when no new block came for MaxLag, or when its newest block is older than that. Then
// every answer is a 503, until the chain has a newer block.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t, options(site.APISpec), 1, 1)
		expect := func(what string, reason string) {
			t.Helper()
			status := http.StatusOK
			if reason != "" {
				status = http.StatusServiceUnavailable
			}
			w := get(l, "/api/v1/leaderboard/followers")
			if w.Code != status || (w.Header().Get("Retry-After") != "") != (reason != "") {
				t.Errorf("%s: got %d %v, want %d", what, w.Code, w.Header(), status)
			}
			err := l.Ready()
			if (err != nil) != (reason != "") || err != nil && !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: Ready: got %v, want %q", what, err, reason)
			}
		}
		expect("at the begin", "")
		time.Sleep(15 * time.Minute)
		expect("after 15 minutes", "")
		time.Sleep(time.Second)
		expect("after more", "chain 8453 lags 15m1s, more than 15m0s: its newest block is 1; chain 10 lags")
		l.serve(t, heads(2, 2, 0), live.NewHeads)
		expect("with new blocks", "")
		l.serve(t, heads(3, 3, 16*time.Minute), live.NewHeads)
		expect("with an old block", "chain 10 lags 16m0s")
		l.serve(t, heads(4, 4, 10*time.Minute), live.NewHeads)
		expect("with a younger one", "")
		time.Sleep(4 * time.Minute)
		l.serve(t, source.Round{Heads: append(heads(5, 4, 0).Heads[:1], l.Status().Head(10))}, live.NewHeads)
		expect("after 4 minutes of one chain alone", "")
		time.Sleep(2 * time.Minute)
		expect("after 6 minutes of one chain alone", "chain 10 lags 16m0s")
		if w := get(l, live.EventsPath); w.Code != http.StatusServiceUnavailable {
			t.Errorf("events: got %d, want 503", w.Code)
		}
		if w := get(l, live.StatusPath); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "chain 10 lags") {
			t.Errorf("the status: got %d %s, want the reason", w.Code, w.Body)
		}
		// Blocks with a time in the future count as current.
		l.serve(t, heads(6, 6, -time.Hour), live.NewHeads)
		expect("with a block of the future", "")
		time.Sleep(16 * time.Minute)
		expect("16 minutes after that", "chain 8453 lags 16m0s")
	})
}

// A clock that jumps does not take the service down, whether it was right before or is right
// afterwards. Only elapsed time counts.
func TestClockThatJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour, 20 * time.Minute} {
			l := started(t, options(site.APISpec), 1, 1)
			l.SetWall(func() time.Time { return time.Now().Add(jump) })
			l.serve(t, heads(2, 2, 0), live.NewHeads)
			if err := l.Ready(); err != nil {
				t.Errorf("after a jump of %s: got %v, want no lag", jump, err)
			}
			time.Sleep(16 * time.Minute)
			if err := l.Ready(); err == nil {
				t.Errorf("16 minutes after a jump of %s: got no lag, want one", jump)
			}
		}
		for _, wrong := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
			l := run(t, options(site.APISpec))
			l.SetBegin(wrong) // the clock was wrong when the process began, and is right now
			r := heads(1, 1, 0)
			r.Snapshot = demo()
			l.serve(t, r, live.NewGraph)
			if err := l.Ready(); err != nil {
				t.Errorf("with a clock that was wrong by %s: got %v, want no lag", wrong, err)
			}
		}
	})
}

// If a round makes no graph, the old graph keeps serving with its heads. Later rounds retry with
// backoff, and the first success reports all changes.
func TestRoundThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t, options(site.APISpec), 1, 1)
		s, leave := listen(t, l, "")
		defer leave()
		<-s.first
		bad := twoChains(2, 1)
		bad.Snapshot = textSnapshot(map[string]string{"meta.json": "{}"})
		bad.Accounts, bad.Lists, bad.Undone = []site.Address{{19: 2}}, []string{"2"}, []uint64{8453}
		if end := l.serve(t, bad, live.Failed); end.Err == nil || end.Heads[0].Block != 1 {
			t.Errorf("got %+v, want an error and the heads that serve", end)
		}
		check := func(what, want string) {
			t.Helper()
			w := get(l, "/api/v1/leaderboard/followers")
			if got := w.Header().Get("X-Heads"); got != want || w.Code != http.StatusOK {
				t.Errorf("%s: got %d, heads %q, want the serving heads %q", what, w.Code, got, want)
			}
		}
		check("after it failed", "8453:1, 10:1")
		l.feed <- twoChains(3, 2) // too soon to try again
		synctest.Wait()
		check("with new heads", "8453:1, 10:1")
		if got := l.Status(); got.Rounds[live.Failed] != 1 || got.LastRound.Error == "" {
			t.Errorf("the status: got %+v, want one round that failed", got)
		}
		time.Sleep(2 * time.Second)
		l.serve(t, twoChains(4, 3), live.Failed)
		time.Sleep(5 * time.Second)
		good := twoChains(5, 4)
		good.Snapshot, good.Accounts, good.Lists, good.Undone = demo(), []site.Address{{19: 1}, {19: 2}}, []string{"1"}, []uint64{10}
		l.serve(t, good, live.NewGraph)
		check("with a good round", "8453:5, 10:4")
		const want = `"accounts":["0x0000000000000000000000000000000000000001","0x0000000000000000000000000000000000000002"],"lists":["1","2"],"undone":[10,8453]}`
		if e := <-s.events; !strings.HasSuffix(e.data, want) {
			t.Errorf("the event: got %s, want all that changed, %s", e.data, want)
		}
		l.serve(t, twoChains(6, 5), live.NewHeads)
		check("with new heads", "8453:6, 10:5")
		if got := l.Status().Chains[0].Undone; got != 1 {
			t.Errorf("undone: got %d, want 1", got)
		}
	})
}

// A failed first round is retried too, and an error of the source ends Run.
func TestFirstRoundThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := run(t, options(site.APISpec))
		bad := twoChains(2, 1)
		bad.Snapshot = textSnapshot(map[string]string{"meta.json": "{}"})
		l.serve(t, bad, live.Failed)
		if err := l.Ready(); !errors.Is(err, live.ErrNoGraph) {
			t.Errorf("Ready: got %v, want %v", err, live.ErrNoGraph)
		}
		time.Sleep(time.Minute)
		good := twoChains(3, 1)
		good.Snapshot = demo()
		l.serve(t, good, live.NewGraph)
		if err := l.Ready(); err != nil {
			t.Errorf("Ready: got %v, want nil", err)
		}
	})
}
