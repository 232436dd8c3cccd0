package live_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

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
