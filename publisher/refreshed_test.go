package publisher

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Refreshed objects are back in the bucket soon after any run that has overwritten them, or that
// followed one, even if a running fallback already serves the same site.
func TestOverwrittenRefreshesAreReapplied(t *testing.T) {
	sites := simulatedSites()
	old, other := sites[0], sites[1]
	key := old.root.Config.ListKey("1", site.Details)
	siteObject := []byte(old.memorySite[key])
	for name, overwrite := range map[string]func(t *testing.T, w *world){
		"a publish cut off before its root": func(t *testing.T, w *world) {
			w.set(site.MarkKey, []byte("{}"))
			w.set(key, []byte("of another site"))
			w.publishCalmly(t, old, w.calm("again", nil), Options{})
		},
		"one that was cut off after it had put the object back": func(t *testing.T, w *world) {
			w.set(site.MarkKey, []byte("{}"))
			w.set(key, siteObject)
			w.publishCalmly(t, old, w.calm("again", nil), Options{})
		},
		"another site in between": func(t *testing.T, w *world) {
			w.publishCalmly(t, other, w.calm("other", nil), Options{})
			w.publishCalmly(t, old, w.calm("again", nil), Options{AllowRollback: true})
		},
		"a repair": func(t *testing.T, w *world) {
			w.set(key, []byte("damaged"))
			if _, err := Repair(t.Context(), old, w.calm("repairer", nil), Options{}); err != nil {
				t.Error(err)
			}
		},
		"a repair that was interrupted before the root": func(t *testing.T, w *world) {
			w.set(key, []byte("damaged"))
			ctx, cancel := context.WithCancel(t.Context())
			dying := interruptedAt{w.calm("repairer", nil), site.RootKey, cancel}
			if _, err := Repair(ctx, old, dying, Options{}); err == nil {
				t.Error("the interrupted repair: got no error")
			}
			w.publishCalmly(t, old, w.calm("again", nil), Options{})
		},
		"a late request of the last run": func(t *testing.T, w *world) {
			body := w.lock(t)
			body.Doubt = &lock.Doubt{Run: body.ID, Since: time.Now().UTC()}
			w.setLock(t, body)
			w.set(key, siteObject)
			time.Sleep(requests.Lateness + time.Second)
			w.publishCalmly(t, old, w.calm("again", nil), Options{})
			if body := w.lock(t); body.Doubt != nil {
				t.Errorf("doubt an hour later: got %+v, want none", body.Doubt)
			}
		},
		"a late request of a run before": func(t *testing.T, w *world) {
			body := w.lock(t)
			body.Doubt = &lock.Doubt{Run: "before", Since: time.Now().UTC()}
			w.setLock(t, body)
			w.set(key, siteObject)
			w.publishCalmly(t, old, w.calm("again", nil), Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			calmly(t, conditional, func(t *testing.T, w *world) {
				w.publishCalmly(t, old, w.calm("first", nil), Options{})
				h, stop := w.watchingFallback(t)
				w.refreshBy(t, h, key)
				told, _ := w.object(key)
				time.Sleep(time.Minute)
				overwrite(t, w)
				time.Sleep(time.Minute)
				stop()
				if got, _ := w.object(key); got.sum != told.sum {
					t.Errorf("a minute later: got %s, want %s", got.body, told.body)
				}
			})
		})
	}
}

// Objects of an older version, and refreshed ones, have that version's headers: a run that compares
// with a listing puts them again.
func TestRefreshedObjectsGetOtherHeaders(t *testing.T) {
	sites := simulatedSites()
	newer, older := sites[0], sites[len(sites)/2]
	key := newer.root.Config.ListKey("1", site.Details)
	calmly(t, conditional, func(t *testing.T, w *world) {
		p := w.calm("first", nil)
		p.older = true
		w.publishCalmly(t, older, p, Options{anyRules: true})
		w.refreshed(t, key)
		w.mu.Lock()
		o := w.objects[key]
		o.cacheControl = olderHeader(key, o.cacheControl)
		w.objects[key] = o
		w.mu.Unlock()
		w.set(site.MarkKey, []byte("{}"))
		w.publishCalmly(t, newer, w.calm("second", nil), Options{})
		o, _ = w.object(key)
		if _, want := newer.headers(key); o.cacheControl != want {
			t.Errorf("got %q, want %q", o.cacheControl, want)
		}
		w.isSite(t, newer) // has the headers of the newer version
	})
}

// Where ETags are not MD5s, an object may be refreshed between two requests of a verification: for
// its digest, and for the data that explain it.
func TestRefreshDuringVerify(t *testing.T) {
	of := simulatedSites()[0]
	key := of.root.Config.ListKey("1", site.Details)
	calmly(t, conditional, func(t *testing.T, w *world) {
		w.encrypted = true
		w.publishCalmly(t, of, w.calm("first", nil), Options{anyRules: true})
		w.refreshed(t, key)
		once := sync.OnceFunc(func() { w.refreshed(t, key) })
		v, err := Verify(t.Context(), refreshedMeanwhile{w.calm("verifier", nil), once}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !v.Good() || v.Refreshed.Count != 1 {
			t.Errorf("got altered %v and refreshed %v, want only %s refreshed", v.Altered.Keys, v.Refreshed.Keys, key)
		}
	})
}

// refreshedMeanwhile reads a bucket that is refreshed after the first read of refresh data.
type refreshedMeanwhile struct {
	*process
	refresh func()
}

func (r refreshedMeanwhile) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	body, info, err := r.process.Read(ctx, key)
	if strings.HasPrefix(string(key), string(site.RefreshPrefix)) {
		r.refresh()
	}
	return body, info, err
}

// refreshed lets a fallback refresh an object, and stops it.
func (w *world) refreshed(t *testing.T, key site.Key) {
	t.Helper()
	h, stop := w.watchingFallback(t)
	defer stop()
	w.refreshBy(t, h, key)
}

// refreshBy lets a running fallback refresh an object.
func (w *world) refreshBy(t *testing.T, h *server.Handler, key site.Key) {
	t.Helper()
	before, _ := w.object(key)
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/"+string(key)+"?cache=fresh", http.NoBody))
	if after, _ := w.object(key); after.sum == before.sum {
		t.Fatal("the refresh has not replaced the object")
	}
}

// watchingFallback returns a fallback that serves the bucket and refreshes profiles, until it is stopped.
func (w *world) watchingFallback(t *testing.T) (h *server.Handler, stop func()) {
	t.Helper()
	p := w.calm("fallback", nil)
	p.refreshes = true
	ctx, cancel := context.WithCancel(t.Context())
	h, err := server.New(ctx, p, server.Options{
		Log: slog.New(slog.DiscardHandler), CacheBytes: 64 << 10,
		Refresh: server.RefreshOptions{ProfileUpstream: "http://upstream/{address}", Interval: time.Second, Rate: 1000, Transport: upstream{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		h.Watch(ctx)
	}()
	time.Sleep(time.Minute)
	return h, func() {
		cancel()
		<-watched
		h.Close()
	}
}

// interruptedAt interrupts its run before it puts a key.
type interruptedAt struct {
	*process
	key       site.Key
	interrupt context.CancelFunc
}

func (i interruptedAt) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	if o.Key == i.key {
		i.interrupt()
		return "", &storage.UnansweredError{Err: context.Canceled}
	}
	return i.process.Put(ctx, o, condition)
}
