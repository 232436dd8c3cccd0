package live_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// versions is an upstream whose profiles and badges have a version: the time of the answer, in milliseconds since the Unix
// epoch.
type versions struct{ sleep func() }

const badgeEvent = `{"id":214087,"fancy_id":"x","name":"x","event_url":"","image_url":"","country":"","city":"","description":"","year":2026,"start_date":"","end_date":"","expiry_date":""}`

// RoundTrip answers like a worker that resolves names, and like one that knows badges of every event.
func (v *versions) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/a/") {
		v.sleep()
	}
	body, now := "", time.Now().UnixMilli()
	if address, ok := strings.CutPrefix(r.URL.Path, "/a/"); ok {
		body = fmt.Sprintf(`{"address":%q,"name":"v%d.eth","fresh":%[2]d}`, address, now)
	} else if account, event, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/scan/"), "/"); ok && event == "214087" {
		body = fmt.Sprintf(`{"tokenId":"%d","owner":%q,"event":%s}`, now, account, badgeEvent)
	}
	status := http.StatusOK
	if body == "" {
		status = http.StatusNotFound
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// A slowBucket takes time for each request.
type slowBucket struct {
	*storage.Local
	sleep func()
}

func (b slowBucket) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	b.sleep()
	return b.Local.Read(ctx, key)
}

func (b slowBucket) Put(ctx context.Context, o storage.Object, c storage.Condition) (string, error) {
	b.sleep()
	defer b.sleep()
	return b.Local.Put(ctx, o, c)
}

// A slowSnapshot takes time to be opened.
type slowSnapshot struct {
	afero.Fs
	sleep func()
}

func (s slowSnapshot) OpenFile(name string, flag int, mode os.FileMode) (afero.File, error) {
	s.sleep()
	return s.Fs.OpenFile(name, flag, mode)
}

func (s slowSnapshot) Open(name string) (afero.File, error) {
	s.sleep()
	return s.Fs.Open(name)
}

// refreshing are options of a Live that keeps refreshes in a bucket.
func refreshing(api string, u http.RoundTripper, kept live.Bucket) live.Options {
	o := options(api)
	o.Kept = kept
	o.Server = server.Options{Refresh: server.RefreshOptions{
		ProfileUpstream: "http://upstream/a/{address}", BadgeUpstream: "http://upstream/scan/{address}/{event_id}",
		Interval: time.Millisecond, Rate: 1e6, ClientRate: 1e6, Transport: u,
	}}
	return o
}

// shown returns the version in an answer, from a name such as v7.eth or from a token; 0 for the snapshot's.
func shown(t testing.TB, body string) (version int64) {
	t.Helper()
	for _, before := range []string{`"name":"v`, `"tokenId":"`} {
		if at := strings.Index(body, before); at >= 0 {
			if _, err := fmt.Sscanf(body[at+len(before):], "%d", &version); err == nil {
				return version
			}
		}
	}
	return 0
}

// TestRefreshesAreNeverLost refreshes accounts while graphs are made and replaced. Once a refresh
// has answered, no graph gives an older answer, and neither does a Live that starts later.
func TestRefreshesAreNeverLost(t *testing.T) {
	for _, api := range []string{site.APISpec, site.APIEFP} {
		served(t, demo(), options(api)) // the first bundling starts timers, which must stay out of the bubble
		t.Run(api, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				toItsTime()
				var random sync.Mutex
				source := rand.New(rand.NewPCG(7, 7))
				upTo := func(most time.Duration) func() {
					return func() {
						random.Lock()
						d := time.Duration(source.Int64N(int64(most)))
						random.Unlock()
						time.Sleep(d)
					}
				}
				u := &versions{sleep: upTo(20 * time.Millisecond)}
				bucket := slowBucket{storage.OpenLocal(dir), upTo(5 * time.Millisecond)}
				o := refreshing(api, u, bucket)
				l := run(t, o)
				l.SetMostReplaced(100) // so that some graphs are made for them alone
				slow := slowSnapshot{demo(), upTo(30 * time.Millisecond)}
				send := func(number uint64) {
					r := twoChains(number, 1)
					r.Snapshot = slow
					l.feed <- r
				}
				send(1)
				<-l.ended
				targets := map[string][]string{
					"/api/v1/lists/104/details?cache=fresh": {"/api/v1/lists/104/details"}, "/api/v1/lists/104/badges?cache=fresh": {"/api/v1/lists/104/badges"},
				}
				if api == site.APIEFP {
					account := field(get(l, "/api/v1/lists/104/details").Body.String(), "address")
					targets = map[string][]string{
						"/api/v1/lists/104/details?cache=fresh": {"/api/v1/lists/104/details", "/api/v1/users/" + account + "/details", "/api/v1/users/" + account + "/account"},
						"/api/v1/lists/104/badges?cache=fresh":  {"/api/v1/lists/104/badges", "/api/v1/users/" + account + "/badges"},
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				var clients sync.WaitGroup
				latest := map[string]*atomic.Int64{}
				var refreshed atomic.Int64
				for fresh, reads := range targets {
					newest := &atomic.Int64{}
					latest[fresh] = newest
					for range 2 {
						clients.Go(func() {
							pause := upTo(60 * time.Millisecond)
							for ctx.Err() == nil {
								pause()
								w := get(l, fresh)
								switch {
								case w.Header().Get("X-Refresh") == "limited": // the last one took no longer than Interval
									continue
								case w.Code != http.StatusOK || w.Header().Get("X-Refresh") != "":
									t.Errorf("%s: got %d %v %s, want a refresh", fresh, w.Code, w.Header(), w.Body)
									return
								}
								refreshed.Add(1)
								for got := shown(t, w.Body.String()); ; {
									if was := newest.Load(); got <= was || newest.CompareAndSwap(was, got) {
										break
									}
								}
							}
						})
					}
					for _, target := range reads {
						clients.Go(func() {
							pause := upTo(30 * time.Millisecond)
							for ctx.Err() == nil {
								pause()
								least := newest.Load()
								if w := get(l, target); w.Code != http.StatusOK || shown(t, w.Body.String()) < least {
									t.Errorf("%s: got %d %.300s, want version %d or later", target, w.Code, w.Body, least)
									return
								}
							}
						})
					}
				}
				outcomes := map[live.Outcome]int{}
				for number := uint64(2); number < 20; number++ {
					send(number)
					for end := range l.ended {
						outcomes[end.Outcome]++
						if end.Outcome == live.NewGraph {
							break
						}
					}
				}
				cancel()
				clients.Wait()
				if refreshed.Load() < 20 || outcomes[live.Refreshed] == 0 || outcomes[live.Failed] > 0 {
					t.Errorf("got %d refreshes and the rounds %v, want many, and some rounds without new blocks", refreshed.Load(), outcomes)
				}
				if err := l.stop(); err != nil {
					t.Error(err)
				}
				for _, object := range []site.ListObject{site.Details, site.Badges} {
					body, err := bucket.Get(t.Context(), site.RefreshKey(object, "104"))
					if err != nil || strings.Contains(string(body), `"stored"`) {
						t.Errorf("stored %s: got %.300s, %v, want no digests of objects outside of buckets", object, body, err)
					}
				}
				again := run(t, o)
				r := twoChains(1, 1)
				r.Snapshot = slow
				again.serve(t, r, live.NewGraph)
				for fresh, reads := range targets {
					for _, target := range reads {
						if w := get(again, target); shown(t, w.Body.String()) < latest[fresh].Load() {
							t.Errorf("%s after a start: got %.300s, want version %d", target, w.Body, latest[fresh].Load())
						}
					}
				}
			})
		})
	}
}

// A told is an upstream whose answers have the version that the test chooses.
type told struct{ asked chan chan int64 }

func (u told) RoundTrip(r *http.Request) (*http.Response, error) {
	version := make(chan int64)
	u.asked <- version
	body := fmt.Sprintf(`{"address":%q,"name":"v%d.eth","fresh":%[2]d}`, strings.TrimPrefix(r.URL.Path, "/a/"), <-version)
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// A slowToSay reports to the test that it has written an object, and returns when the test allows
// it.
type slowToSay struct {
	*storage.Local
	written chan chan struct{}
}

func (b slowToSay) Put(ctx context.Context, o storage.Object, c storage.Condition) (string, error) {
	etag, err := b.Local.Put(ctx, o, c)
	on := make(chan struct{})
	b.written <- on
	<-on
	return etag, err
}

// Two graphs refresh an account at the same time, and the older graph gets older data. Each
// answer's data is in the newest graph by then, and the newer data stays in the next graph.
func TestTwoGraphsRefreshAtOnce(t *testing.T) {
	const target = "/api/v1/lists/104/details"
	for _, olderWritesFirst := range []bool{false, true} {
		served(t, demo(), options(site.APIEFP)) // the first bundling starts timers, which must stay out of the bubble
		t.Run(fmt.Sprintf("older first %t", olderWritesFirst), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				toItsTime()
				u, bucket := told{make(chan chan int64)}, slowToSay{storage.OpenLocal(dir), make(chan chan struct{})}
				l := run(t, refreshing(site.APIEFP, u, bucket))
				serve := func(number uint64) {
					r := twoChains(number, 1)
					r.Snapshot = demo()
					l.serve(t, r, live.NewGraph)
				}
				var refreshes sync.WaitGroup
				refresh := func() (tell chan int64) {
					time.Sleep(2 * time.Millisecond) // more than Interval
					refreshes.Go(func() {
						w := get(l, target+"?cache=fresh")
						if is := get(l, target); w.Header().Get("X-Refresh") != "" || shown(t, is.Body.String()) < shown(t, w.Body.String()) {
							t.Errorf("got %v %.300s, and then %.300s, want a refresh, and nothing older", w.Header(), w.Body, is.Body)
						}
					})
					return <-u.asked
				}
				serve(1)
				older := refresh()
				serve(2)
				newer := refresh()
				latest := time.Now().UnixMilli()
				first, second, version := newer, older, latest
				if olderWritesFirst {
					first, second, version = older, newer, latest-1
				}
				first <- version
				on := <-bucket.written
				second <- latest - 1 + latest - version
				synctest.Wait()
				select {
				case on := <-bucket.written: // the second answer of the bucket comes first
					close(on)
					synctest.Wait()
				default:
				}
				close(on)
				done := make(chan struct{})
				go func() {
					for {
						select {
						case on := <-bucket.written:
							close(on)
						case <-done:
							return
						}
					}
				}()
				refreshes.Wait()
				for range 2 {
					if w := get(l, target); shown(t, w.Body.String()) != latest {
						t.Errorf("got %.300s, want version %d", w.Body, latest)
					}
					serve(3)
				}
				close(done)
			})
		})
	}
}

// field returns the value of a member that is a string.
func field(body, name string) string {
	_, rest, _ := strings.Cut(body, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// toItsTime lets the clock of a test, which begins in the year 2000, go on to after the snapshot of the demo.
func toItsTime() { time.Sleep(time.Until(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))) }

// Refreshes by other programs in the same bucket appear within a minute, and earlier ones from the
// start.
func TestKeptByOthers(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		toItsTime()
		u := &versions{sleep: func() {}}
		bucket := storage.OpenLocal(dir)
		o := refreshing(site.APISpec, u, bucket)
		l := run(t, o)
		r := twoChains(1, 1)
		r.Snapshot = demo()
		l.serve(t, r, live.NewGraph)
		const target = "/api/v1/lists/104/details"
		account := field(get(l, target).Body.String(), "address")
		body := fmt.Appendf(nil, `{"address":%q,"name":"v5.eth","fresh":%d}`, account, int64(1_900_000_000_000))
		_, err := bucket.Put(t.Context(), storage.Object{
			Entry: site.Entry{Key: site.RefreshKey(site.Details, "104"), Size: int64(len(body)), MD5: site.Sum(body)}, Body: body,
		}, storage.Always)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if got := shown(t, get(l, target).Body.String()); got != 5 {
			t.Errorf("after a minute: got version %d, want 5", got)
		}
		if got := l.Status().Kept; got.Objects != 1 || got.Bytes != int64(len(body)) {
			t.Errorf("kept: got %+v, want one object of %d bytes", got, len(body))
		}
		r = twoChains(2, 1)
		r.Snapshot = demo()
		l.serve(t, r, live.NewGraph)
		if got := shown(t, get(l, target).Body.String()); got != 5 {
			t.Errorf("in the next graph: got version %d, want 5", got)
		}
	})
}
