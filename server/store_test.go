package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/badway"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

const storeTimeout = time.Second

// settledAfter is when a handler knows that a root was not put twice within a second, the resolution
// of a store's times.
const settledAfter = 5 * time.Second

// slack is the extra time that a busy machine may need.
const slack = 20 * time.Second

// While the store is slow, down or cuts connections, requests for cached objects are
// answered as usual, and all others get a 503 with Retry-After in time, however many
// wait. When the store is back, all requests are answered again.
func TestABadStore(t *testing.T) {
	files := demo(t)
	lists := newListing(t, files).lists
	onServers(t, func(t *testing.T, s *servers.Server) {
		at := storage.Location{Bucket: s.Bucket(t)}
		published(t, files, openS3(t, s, at, s.Endpoint))
		time.Sleep(settledAfter) // until then the handler may take the root for a new one, and clear the cache
		way := badway.To(t, strings.TrimPrefix(s.Endpoint, "http://"))
		handler := newHandler(t, openS3(t, s, at, way.Endpoint()), server.Options{
			Timeout: storeTimeout, MaxRequests: 200, Poll: 50 * time.Millisecond,
		})
		watch(t, handler)
		set := func(f badway.Fault) func() { return func() { way.Set(f) } }
		heal := set(badway.Fault{})
		for i, c := range []struct {
			name      string
			harm, end func()
		}{
			{"slow", set(badway.Fault{Latency: 5 * time.Second}), heal},
			{"silent", set(badway.Fault{Hang: true}), heal},
			{"cutting answers", set(badway.Fault{Cut: 100}), heal},
			{"resetting", set(badway.Fault{Reset: true}), heal},
			{"gone", s.Stop, s.Start},
		} {
			cached := "/" + string(lists[i].key)
			if w := ask(handler, cached); w.Code != http.StatusOK {
				t.Fatalf("%s: before: got %d, want 200", c.name, w.Code)
			}
			c.harm()
			badly(t, c.name, handler, cached)
			c.end()
			eventually(t, c.name+" has passed", func() bool {
				return ask(handler, fmt.Sprintf("/api/v1/lists/%s/badges", lists[i].tokenID)).Code == http.StatusOK
			})
		}
	})
}

// badly requests many objects that the store fails to deliver, and cached objects concurrently.
func badly(t *testing.T, name string, handler *server.Handler, cached string) {
	t.Helper()
	var group sync.WaitGroup
	var done atomic.Bool
	var wrong atomic.Int64
	group.Go(func() {
		var answered int // in time: a busy machine may hold up some, but not all
		for !done.Load() {
			begun := time.Now()
			w := ask(handler, cached)
			if time.Since(begun) < storeTimeout/2 {
				answered++
				if w.Code != http.StatusOK {
					t.Errorf("%s: cached objects: got %d, want 200", name, w.Code)
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
		if answered == 0 {
			t.Errorf("%s: got no concurrent answer from the cache, want some", name)
		}
	})
	time.AfterFunc(storeTimeout/2, func() { done.Store(true) })
	for n := range 300 {
		group.Go(func() {
			begun := time.Now()
			path := fmt.Sprintf("/api/v1/lists/%d/searchFollowing?term=x", 1_000_000+n) // only the store knows that the list is missing
			w := ask(handler, path)
			if took := time.Since(begun); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" ||
				w.Header().Get("Cache-Control") != "no-store" || took > storeTimeout+slack {
				if wrong.Add(1) == 1 {
					t.Errorf("%s: %s: got %d %v after %v, want 503 in time", name, path, w.Code, w.Header(), took)
				}
			}
		})
		time.Sleep(time.Millisecond) // so that refused requests do not fill MaxRequests
	}
	group.Wait()
	if !handler.Ready() {
		t.Errorf("%s: got not ready, want ready, as there is a site to serve", name)
	}
}

// A hanging store gives no answer until the context ends.
type hanging struct {
	bucket
	hangs atomic.Bool
	slow  time.Duration // before an answer
	err   error         // at the end of the context; it is one that lets the handler try again

	release chan struct{} // ends the hanging; nil for never

	last atomic.Int64 // the latest time, in nanoseconds, until which a read may have lasted
}

func (h *hanging) wait(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		h.last.Store(max(h.last.Load(), deadline.UnixNano()))
	}
	if h.hangs.Load() {
		select {
		case <-ctx.Done():
		case <-h.release:
		}
		return errors.Join(ctx.Err(), h.err)
	}
	select {
	case <-time.After(h.slow):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hanging) Get(ctx context.Context, key site.Key) ([]byte, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.bucket.Get(ctx, key)
}

func (h *hanging) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	if err := h.wait(ctx); err != nil {
		return nil, storage.Info{}, err
	}
	return h.bucket.Read(ctx, key)
}

// The time limit is for the whole answer, however many objects it is made of.
func TestTheTimeLimitIsForAllReads(t *testing.T) {
	t.Parallel()
	store := &hanging{bucket: local(t, demo(t)), err: temporary(t)}
	const timeout = 2 * time.Second
	handler := newHandler(t, store, server.Options{Timeout: timeout})
	store.slow = timeout * 45 / 100 // just within the time for one try
	var group sync.WaitGroup
	begun := time.Now()
	for range 2 { // one reads, the other waits for the same
		group.Go(func() {
			w := ask(handler, "/api/v1/users/miralund.eth/searchFollowing?term=zzz") // the user's list, then its entries
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("got %d after %v, want 503", w.Code, time.Since(begun))
			}
		})
	}
	time.Sleep(timeout / 10)
	store.hangs.Store(true) // for later reads
	group.Wait()
	// The time granted to the store is more reliable than a clock on a busy machine.
	if granted := time.Unix(0, store.last.Load()).Sub(begun); granted > timeout*13/10 {
		t.Errorf("time for the store: got %v, want the timeout at most", granted)
	}
}

// If requests wait for both the store and refreshes, cached objects are still answered. Others get a 503 with Retry-After at once.
func TestRoomForWhatIsCached(t *testing.T) {
	t.Parallel()
	store := &hanging{bucket: local(t, demo(t)), err: temporary(t), release: make(chan struct{})}
	u := newUpstream(t, nil, nil)
	handler := newHandler(t, store, server.Options{Timeout: time.Minute, MaxRequests: 100, Refresh: u.options()})
	if w := ask(handler, largeList+"details"); w.Code != http.StatusOK {
		t.Fatalf("got %d, want 200", w.Code)
	}
	store.hangs.Store(true)
	var group sync.WaitGroup
	var ended atomic.Int64
	for n := range 90 {
		group.Go(func() {
			w := ask(handler, fmt.Sprintf("/api/v1/lists/%d/details", 1_000_000+n))
			if refused := w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "5"; !refused && w.Code != http.StatusNotFound {
				t.Errorf("a missing object: got %d %v, want 404, or 503 with Retry-After", w.Code, w.Header())
			}
			ended.Add(1)
		})
		group.Go(func() { ask(handler, freshDetails); ended.Add(1) })
	}
	eventually(t, "all but 75 were sent away", func() bool { return ended.Load() >= 180-75 })
	if w := ask(handler, largeList+"details"); w.Code != http.StatusOK {
		t.Errorf("cached objects: got %d, want 200; %d requests wait, %d of them for a refresh", w.Code, handler.RequestsWaiting(), handler.RefreshesWaiting())
	}
	close(store.release)
	group.Wait()
}

// A clock that only advances when the test says so.
type stoppedClock struct{ now atomic.Int64 }

func (c *stoppedClock) NowNano() int64                      { return c.now.Load() }
func (c *stoppedClock) Tick(time.Duration) <-chan time.Time { return nil }
func (c *stoppedClock) pass(d time.Duration)                { c.now.Add(int64(d)) }

// Changes by others are noticed: after seconds if the object was absent, after minutes
// if it existed.
func TestTheCacheIsNotForEver(t *testing.T) {
	t.Parallel()
	b := local(t, demo(t))
	clock := &stoppedClock{}
	clock.now.Store(time.Now().UnixNano())
	o := server.Options{}
	o.SetClock(clock)
	handler := newHandler(t, b, o)
	put := func(key site.Key, body string) {
		t.Helper()
		o := storage.Object{Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum([]byte(body))}, Body: []byte(body)}
		if _, err := b.Put(t.Context(), o, storage.Always); err != nil {
			t.Fatal(err)
		}
	}
	const absent = "/api/v1/lists/999/details"
	for _, path := range []string{absent, largeList + "details"} {
		ask(handler, path)
		put(site.Key(path[1:]), `{"new":1}`)
		if w := ask(handler, path); w.Body.String() == `{"new":1}` {
			t.Errorf("%s: got the new object, want the cached one", path)
		}
	}
	clock.pass(11 * time.Second)
	if w := ask(handler, absent); w.Body.String() != `{"new":1}` {
		t.Errorf("missing object: got %d %s, want the new object", w.Code, w.Body)
	}
	clock.pass(6 * time.Minute)
	eventually(t, "what somebody has refreshed is noticed", func() bool {
		return ask(handler, largeList+"details").Body.String() == `{"new":1}`
	})
}

// A panic in a refresh ends that refresh, not the process.
func TestAPanicEndsOneRefresh(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, http.NotFound, nil)
	handler := newHandler(t, panicking{local(t, demo(t))}, server.Options{Refresh: u.options()})
	for _, path := range []string{freshDetails, badgeData} {
		if w := ask(handler, path); w.Code != http.StatusServiceUnavailable && w.Code != http.StatusInternalServerError {
			t.Errorf("%s: got %d %v, want 503 or 500", path, w.Code, w.Header())
		}
	}
	if w := ask(handler, largeList+"details"); w.Code != http.StatusOK {
		t.Errorf("afterwards: got %d, want 200", w.Code)
	}
}

type panicking struct{ bucket }

func (p panicking) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	if key != site.RootKey {
		panic("a bug")
	}
	return p.bucket.Read(ctx, key)
}

// A store that fails once is asked again, in a refresh too.
func TestAReadThatFailsOnce(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, profiles(func(string) site.Profile { return profileOf("x", 1_795_300_000_000) }).handler(t), nil)
	once := &failsOnce{bucket: local(t, demo(t)), err: temporary(t)}
	handler := newHandler(t, once, server.Options{Refresh: u.options(), Timeout: 2 * time.Second})
	for _, path := range []string{largeList + "details", freshDetails, "/api/v1/lists/4/badges"} {
		once.armed.Store(true)
		if w := ask(handler, path); w.Code != http.StatusOK || w.Header().Get("X-Refresh") != "" || once.armed.Load() {
			t.Errorf("%s: got %d %v, want 200 without X-Refresh, after a fault", path, w.Code, w.Header())
		}
	}
}

type failsOnce struct {
	bucket
	err   error
	armed atomic.Bool
}

func (f *failsOnce) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, _, err := f.Read(ctx, key)
	return body, err
}

func (f *failsOnce) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	if f.armed.Swap(false) {
		return nil, storage.Info{}, f.err
	}
	return f.bucket.Read(ctx, key)
}

// temporary returns an error as a bad connection gives it.
func temporary(t testing.TB) error {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer s.Close()
	_, err := openS3(t, &servers.Server{AccessKey: "user", SecretKey: "secret"}, storage.Location{Bucket: "bucket"}, s.URL).Get(t.Context(), "key")
	if !storage.Temporary(err) {
		t.Fatalf("got %v, want an error that is retryable", err)
	}
	return err
}
