package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// twoChains returns a round with the newest blocks of two chains, with the current time.
func twoChains(base, optimism uint64) source.Round {
	now := time.Now().UnixMilli()
	return source.Round{Heads: []source.Head{{Chain: 8453, Block: base, Time: now}, {Chain: 10, Block: optimism, Time: now}}}
}

// started returns a Live with the demo at two heads.
func started(t *testing.T, o live.Options, base, optimism uint64) *running {
	t.Helper()
	l := run(t, o)
	first := twoChains(base, optimism)
	first.Snapshot = demo()
	l.serve(t, first, live.NewGraph)
	return l
}

// A request that names blocks is answered when the graph has all of them, or after its preferred
// wait.
func TestAfter(t *testing.T) {
	for _, test := range []struct {
		after, prefer string
		reached       time.Duration // until the graph has 8453:20 and 10:30
		want          time.Duration // until the answer
		heads         string
	}{
		{"8453:10", "", time.Second, 0, "8453:10, 10:10"},
		{"8453:9,10:10", "", time.Second, 0, "8453:10, 10:10"},
		{"8453:20", "", time.Second, time.Second, "8453:20, 10:30"},
		{"8453:11", "", 3 * time.Second, 3 * time.Second, "8453:20, 10:30"},
		{"8453:1, 10:30", "", 9 * time.Second, 9 * time.Second, "8453:20, 10:30"},
		{"8453:20", "", 11 * time.Second, 10 * time.Second, "8453:10, 10:10"},
		{"8453:21", "", time.Second, 10 * time.Second, "8453:20, 10:30"},
		{"8453:20", "wait=2", 3 * time.Second, 2 * time.Second, "8453:10, 10:10"},
		{"8453:20", "wait=2", time.Second, time.Second, "8453:20, 10:30"},
		{"8453:20", "wait=0", time.Second, 0, "8453:10, 10:10"},
		{"8453:20", "wait=60", 30 * time.Second, 10 * time.Second, "8453:10, 10:10"},
		{"8453:20", `respond-async, Wait = "3"; x=1, wait=9`, 30 * time.Second, 3 * time.Second, "8453:10, 10:10"},
		{"8453:20", "wait=soon", 30 * time.Second, 10 * time.Second, "8453:10, 10:10"},
		{"8453:18446744073709551615", "wait=1", time.Second / 2, time.Second, "8453:20, 10:30"},
	} {
		t.Run(test.after+" "+test.prefer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := started(t, options(site.APISpec), 10, 10)
				begun := time.Now()
				go func() {
					time.Sleep(test.reached)
					l.feed <- twoChains(20, 30)
				}()
				headers := []string{"X-After", test.after}
				if test.prefer != "" {
					headers = append(headers, "Prefer", test.prefer)
				}
				w := get(l, "/api/v1/leaderboard/followers", headers...)
				if took := time.Since(begun); w.Code != http.StatusOK || took != test.want || w.Header().Get("X-Heads") != test.heads {
					t.Errorf("got %d after %s with heads %q, want a 200 after %s with %q", w.Code, took, w.Header().Get("X-Heads"), test.want, test.heads)
				}
				if got := w.Header().Get("Cache-Control"); got != "no-store" {
					t.Errorf("Cache-Control: got %q, want no-store", got)
				}
				time.Sleep(time.Minute) // everything sent is read by now
			})
		})
	}
}

func TestAfterRefuses(t *testing.T) {
	t.Parallel()
	l := started(t, options(site.APISpec), 10, 10)
	for _, after := range []string{
		"", "8453", "8453:", ":10", "8453:10,", ",8453:10", "8453:010", "8453:-1", "8453:+1", "8453:0x10", "8453:1e3", "8453 :10", "8453: 10", "8453:10;10:10",
		"8453:18446744073709551616", "base:10", "1:5", "8453:10:10", strings.Repeat("8453:10,", 16) + "8453:10",
	} {
		w := get(l, "/api/v1/leaderboard/followers", "X-After", after)
		if w.Code != http.StatusBadRequest || w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), "X-After") {
			t.Errorf("%q: got %d %s, want a 400 that names the header", after, w.Code, w.Body)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%q: Cache-Control: got %q, want no-store", after, got)
		}
	}
	if w := get(l, "/api/v1/leaderboard/followers", "X-After", "8453:10", "X-After", "10:10"); w.Code != http.StatusOK {
		t.Errorf("two lines: got %d, want 200", w.Code)
	}
}

// No answer is of a graph without the blocks that the request named, unless the time is over; and it comes as soon as
// they are there.
func TestAfterIsNeverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(site.APISpec)
		o.MaxWaiting = 200 * 8 // all are one client
		l := started(t, o, 1, 1)
		begun := time.Now()
		const every = 100 * time.Millisecond // a block
		var askers sync.WaitGroup
		for asker := range uint64(200) {
			askers.Go(func() {
				random := rand.New(rand.NewPCG(asker, 1))
				for range 5 {
					time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
					asked := time.Now()
					block := uint64(random.IntN(100))
					w := get(l, "/api/v1/leaderboard/followers", "X-After", fmt.Sprint("8453:", block), "Prefer", "wait=5")
					var got, other uint64
					if _, err := fmt.Sscanf(w.Header().Get("X-Heads"), "8453:%d, 10:%d", &got, &other); err != nil {
						t.Error(err)
					}
					due := max(0, begun.Add(time.Duration(block)*every).Sub(asked))
					if block <= 1 {
						due = 0
					}
					took := time.Since(asked)
					if got < block && took != 5*time.Second || got >= block && took != due && took != 5*time.Second || took > 5*time.Second {
						t.Errorf("block %d: got one of %d after %s, want it after %s or 5 s", block, got, took, due)
					}
				}
			})
		}
		for number := uint64(2); number < 120; number++ {
			time.Sleep(time.Until(begun.Add(time.Duration(number) * every)))
			l.serve(t, twoChains(number, 1), live.NewHeads)
		}
		askers.Wait()
	})
}

// Requests that wait are bounded: others are answered at once. Clients that leave make room, and nobody waits when Run
// ends.
func TestWaitsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(site.APISpec)
		o.MaxWaiting = 3
		client := 0
		l := started(t, o, 10, 10)
		begun := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		took := make(chan time.Duration, 10)
		wait := func(ctx context.Context) {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/leaderboard/followers", nil)
			r.Header.Set("X-After", "8453:11")
			client++
			r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", client)
			l.ServeHTTP(httptest.NewRecorder(), r)
			took <- time.Since(begun)
		}
		for range 3 {
			go wait(ctx)
			synctest.Wait()
		}
		if got := l.Status().Waiting; got != 3 {
			t.Errorf("waiting: got %d, want 3", got)
		}
		wait(t.Context())
		if got := <-took; got != 0 {
			t.Errorf("the fourth: got an answer after %s, want it at once", got)
		}
		time.Sleep(time.Second)
		leave()
		for range 3 {
			if got := <-took; got != time.Second {
				t.Errorf("a client that left: waited %s, want 1 s", got)
			}
		}
		go wait(t.Context())
		time.Sleep(time.Second)
		if err := l.stop(); err != nil {
			t.Error(err)
		}
		if got := <-took; got != 2*time.Second {
			t.Errorf("when Run ended: waited until %s, want 2 s", got)
		}
		if got := l.Status().Waiting; got != 0 {
			t.Errorf("waiting: got %d, want none", got)
		}
	})
}

// One client takes an eighth of the places at most, behind proxies too. Others still wait.
func TestWaitsOfOneClient(t *testing.T) {
	for _, proxies := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			o := options(site.APISpec)
			o.MaxWaiting, o.Server.Refresh.Proxies = 16, proxies
			l := started(t, o, 10, 10)
			begun, ctx, group := time.Now(), t.Context(), sync.WaitGroup{}
			ask := func(client string) (took time.Duration) {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/leaderboard/followers", nil)
				r.Header.Set("X-After", "8453:11")
				r.RemoteAddr = client + ":7"
				if proxies == 1 {
					r.RemoteAddr = "192.0.2.99:7" // the proxy, which appends to the header that the client forged
					r.Header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d, %s", time.Now().Nanosecond()%250, strings.Trim(client, "[]")))
				}
				l.ServeHTTP(httptest.NewRecorder(), r)
				return time.Since(begun)
			}
			waits := func(client string) {
				group.Go(func() {
					if got := ask(client); got != 10*time.Second {
						t.Errorf("%s, %d proxies: waited %s, want 10 s", client, proxies, got)
					}
				})
				synctest.Wait()
			}
			waits("192.0.2.1")
			waits("192.0.2.1")
			waits("[2001:db8::1]")
			waits("[2001:db8::2]") // in the same network
			for _, full := range []string{"192.0.2.1", "[2001:db8::3]"} {
				if got := ask(full); got != 0 {
					t.Errorf("%s, %d proxies: waited %s, want an answer at once", full, proxies, got)
				}
			}
			waits("192.0.2.2")
			waits("[2001:db8:0:1::1]")
			group.Wait()
			begun = time.Now()
			waits("192.0.2.1") // its places are free again
			group.Wait()
			if err := l.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// One client takes an eighth of the streams at most. Streams of others still begin, and its own
// once one has ended.
func TestStreamsOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(site.APISpec)
		o.MaxStreams = 16
		l := started(t, o, 10, 10)
		group := sync.WaitGroup{}
		begin := func(client string) (status func() int, end context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, live.EventsPath, nil)
			r.RemoteAddr = client + ":7"
			group.Go(func() { l.ServeHTTP(w, r) })
			synctest.Wait()
			return func() int { return w.Code }, cancel
		}
		_, end := begin("192.0.2.1")
		begin("192.0.2.1")
		if status, _ := begin("192.0.2.1"); status() != http.StatusServiceUnavailable || l.Status().Streams != 2 {
			t.Errorf("its third: got %d and %d streams, want 503 and 2", status(), l.Status().Streams)
		}
		if status, _ := begin("192.0.2.2"); status() != http.StatusOK || l.Status().Streams != 3 {
			t.Errorf("another client: got %d and %d streams, want 200 and 3", status(), l.Status().Streams)
		}
		end()
		synctest.Wait()
		if status, _ := begin("192.0.2.1"); status() != http.StatusOK || l.Status().Streams != 3 {
			t.Errorf("after one has ended: got %d and %d streams, want 200 and 3", status(), l.Status().Streams)
		}
		if err := l.stop(); err != nil {
			t.Error(err)
		}
		group.Wait()
	})
}

// followed returns the graph after some operations of list 7 of account a, which follow and tag b.
func followed(a, b string, at time.Time, ops int) afero.Fs {
	texts := map[string]string{
		"meta.json":       fmt.Sprintf(`{"format":1,"as_of":%q}`, at.UTC().Format(time.RFC3339)),
		"lists.ndjson":    fmt.Sprintf(`{"token_id":"7","owner":%q}`, a),
		"accounts.ndjson": fmt.Sprintf(`{"address":%q,"primary_list":"7"}`, a),
		"records.ndjson":  "", "events.ndjson": "", "badges.ndjson": "", "ops.ndjson": "",
	}
	if ops > 0 {
		tags := ""
		if ops > 1 {
			tags = `"top8"`
		}
		texts["records.ndjson"] = fmt.Sprintf(`{"token_id":"7","version":1,"record_type":"address","data":%q,"tags":[%s]}`, b, tags)
	}
	for i, op := range []string{"0x01010101", "0x01030101"}[:ops] {
		tag := []string{"", "746f7038"}[i]
		texts["ops.ndjson"] += fmt.Sprintf(`{"token_id":"7","time":%q,"chain_id":8453,"block":%d,"log_index":0,"op":"%s%s%s"}`+"\n",
			at.Add(time.Duration(i-5)*time.Second).UTC().Format("2006-01-02T15:04:05.000Z"), 100+i, op, b[2:], tag)
	}
	return textSnapshot(texts)
}

// Notifications belong to the newest round. A request that waits for the block of an operation sees
// the operation. An operation that a reorganization removed is gone from notifications and from the
// history of its list.
func TestNotifications(t *testing.T) {
	t.Parallel()
	a, b := site.Address{19: 0xa}.String(), site.Address{19: 0xb}.String()
	o := options(site.APIEFP)
	o.Generator.Config.HistoryWindow = site.Window(site.DefaultHistoryWindow)
	l := run(t, o)
	now := time.Now().Truncate(time.Second)
	l.serve(t, atBlock(100, followed(a, b, now, 0)), live.NewGraph)
	paths := []string{"/api/v1/users/" + b + "/notifications", "/api/v1/lists/7/activity"}
	check := func(what string, follows, tags int, headers ...string) {
		t.Helper()
		for _, path := range paths {
			got := get(l, path, headers...)
			want := fmt.Sprintf(`"total":%d,"total_follows":%d,"total_unfollows":0,"total_tags":%d,"total_untags":0}`, follows+tags, follows, tags)
			if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), want) {
				t.Errorf("%s: %s: got %d, %s, want %s", what, path, got.Code, got.Body, want)
			}
		}
	}
	check("before", 0, 0)
	written := make(chan *httptest.ResponseRecorder, len(paths))
	for _, path := range paths {
		go func() { written <- get(l, path, "X-After", fmt.Sprintf("%d:101", base)) }()
	}
	round := atBlock(101, followed(a, b, now, 2))
	l.serve(t, round, live.NewGraph)
	for range paths {
		if got := <-written; !strings.Contains(got.Body.String(), `"total":2,`) || got.Header().Get("X-Heads") != fmt.Sprintf("%d:101", base) {
			t.Errorf("a reader that waits for its own operation: got %s, %s, want it in the answer", got.Header().Get("X-Heads"), got.Body)
		}
	}
	check("both operations", 1, 1)
	reorganised := atBlock(102, followed(a, b, now, 1))
	reorganised.Undone = []uint64{base}
	l.serve(t, reorganised, live.NewGraph)
	check("the tag is gone", 1, 0, "X-After", fmt.Sprintf("%d:102", base))
	l.serve(t, atBlock(103, followed(a, b, now, 0)), live.NewGraph)
	check("the follow is gone", 0, 0)
}
