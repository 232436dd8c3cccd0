package server_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/storage"
)

// ask asks a handler without a network between.
func ask(handler http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// A transport answers requests in this process.
type transport func(*http.Request) *http.Response

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r), nil }

// Many concurrent requests to refresh one list cause one refresh, and all get its result.
func TestOneRefreshForAll(t *testing.T) {
	t.Parallel()
	const clients = 1000
	b := local(t, demo(t))
	synctest.Test(t, func(t *testing.T) {
		answer := profiles(func(string) site.Profile { return profileOf("x", 1_795_300_000_000) }).handler(t)
		var asked atomic.Int64
		handler := newHandler(t, b, server.Options{Refresh: server.RefreshOptions{
			ProfileUpstream: "http://upstream/a/{address}", Interval: time.Hour, Rate: 1e6, ClientRate: 1e6,
			Transport: transport(func(r *http.Request) *http.Response {
				asked.Add(1)
				synctest.Wait() // until all wait
				w := httptest.NewRecorder()
				answer(w, r)
				return w.Result()
			}),
		}})
		defer handler.Close()
		answers := make([]*httptest.ResponseRecorder, clients)
		var group sync.WaitGroup
		for i := range clients {
			group.Go(func() { answers[i] = ask(handler, freshDetails) })
		}
		group.Wait()
		for _, w := range answers {
			if w.Code != http.StatusOK || w.Body.String() != answers[0].Body.String() || w.Header().Get("X-Refresh") != "" {
				t.Fatalf("got %d %v %s, want 200 and the same answer for all", w.Code, w.Header(), w.Body)
			}
		}
		if !strings.Contains(answers[0].Body.String(), `"name":"x"`) {
			t.Errorf("got %s, want the fresh profile", answers[0].Body)
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("got %d requests to the upstream, want 1", n)
		}
		if w := ask(handler, freshDetails); w.Code != http.StatusOK || w.Header().Get("X-Refresh") != "limited" {
			t.Errorf("the next: got %d %v, want 200 with X-Refresh: limited", w.Code, w.Header())
		}
	})
}

// A client that disconnects does not cancel the refresh for the others.
func TestTheFirstToAskLeaves(t *testing.T) {
	t.Parallel()
	b := local(t, demo(t))
	u := newUpstream(t, nil, nil)
	handler := newHandler(t, b, server.Options{Refresh: u.options()})
	asked, left := make(chan struct{}), make(chan struct{})
	answer := profiles(func(string) site.Profile { return profileOf("x", 1_795_300_000_000) }).handler(t)
	u.tell(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-left
		answer(w, r)
	}, nil)
	ctx, leave := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, freshDetails, nil).WithContext(ctx))
	})
	<-asked
	leave()
	group.Wait()
	close(left)
	eventually(t, "the refresh goes on", func() bool {
		return strings.Contains(ask(handler, largeList+"details").Body.String(), `"name":"x"`)
	})
}

// A gate lets the conditional writes of a key pass only when all have come that it
// waits for, and counts how they end.
type gate struct {
	bucket
	key        site.Key
	waitsFor   *sync.WaitGroup
	once       sync.Once
	won, lost  *atomic.Int64
	unexpected *atomic.Int64
}

func (g *gate) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	if o.Key != g.key {
		return g.bucket.Put(ctx, o, condition)
	}
	g.once.Do(func() { g.waitsFor.Done(); g.waitsFor.Wait() })
	etag, err := g.bucket.Put(ctx, o, condition)
	switch {
	case condition == storage.Always || condition == storage.IfAbsent:
		g.unexpected.Add(1)
	case err == nil:
		g.won.Add(1)
	case errors.Is(err, storage.ErrCondition):
		g.lost.Add(1)
	default:
		g.unexpected.Add(1)
	}
	return etag, err
}

// Of two fallbacks that refresh one list at once, one stores its result, and the other answers with
// the stored object.
func TestTwoFallbacksRefreshOneList(t *testing.T) {
	t.Parallel()
	files := demo(t)
	onBuckets(t, func(t *testing.T, open func() bucket) {
		published(t, files, open())
		for _, c := range []struct {
			path  string
			fresh func(n int) (profiles, badges http.HandlerFunc) // what the upstream tells the nth fallback
		}{
			{freshDetails, func(int) (http.HandlerFunc, http.HandlerFunc) {
				return profiles(func(string) site.Profile { return profileOf("same", 1_795_300_000_000) }).handler(t), nil
			}},
			{badgeData, func(int) (http.HandlerFunc, http.HandlerFunc) {
				return nil, tokens(t, map[string]string{"214087": "99"})
			}},
		} {
			var arrive sync.WaitGroup
			arrive.Add(2)
			var won, lost, unexpected atomic.Int64
			var group sync.WaitGroup
			bodies := make([]string, 2)
			for i := range 2 {
				u := newUpstream(t, nil, nil)
				u.tell(c.fresh(i))
				key := site.Key(strings.TrimPrefix(strings.TrimSuffix(c.path, "?cache=fresh"), "/"))
				handler := newHandler(t, &gate{bucket: open(), key: key, waitsFor: &arrive, won: &won, lost: &lost, unexpected: &unexpected},
					server.Options{Refresh: u.options()})
				group.Go(func() {
					w := ask(handler, c.path)
					bodies[i] = w.Body.String()
					if w.Code != http.StatusOK || w.Header().Get("X-Refresh") != "" {
						t.Errorf("%s: got %d %v, want 200 without X-Refresh", c.path, w.Code, w.Header())
					}
				})
			}
			group.Wait()
			if won.Load() != 1 || lost.Load() != 1 || unexpected.Load() != 0 {
				t.Errorf("%s: got %d writes with an effect, %d without, %d others, want 1, 1 and 0", c.path, won.Load(), lost.Load(), unexpected.Load())
			}
			stored := ask(newHandler(t, open(), server.Options{}), strings.TrimSuffix(c.path, "?cache=fresh")).Body.String()
			if bodies[0] != bodies[1] || bodies[0] != stored {
				t.Errorf("%s: got the answers\n%s and\n%s, want the stored object\n%s", c.path, bodies[0], bodies[1], stored)
			}
		}
	})
}

// A refresh that was overtaken by another fallback's refresh with newer data changes nothing:
// neither the object, nor its copies, nor badges, which do not show their age.
func TestAnOvertakenRefreshChangesNothing(t *testing.T) {
	t.Parallel()
	files := efpSite(t, afero.FromIOFS{FS: fixtures.Demo()}, site.NamesCopies)
	for path, answer := range map[string]func(n int) (profiles, badges http.HandlerFunc){
		freshDetails: func(n int) (http.HandlerFunc, http.HandlerFunc) {
			return profiles(func(string) site.Profile { return profileOf(fmt.Sprintf("x%d", n), 1_795_300_000_000+int64(n)) }).handler(t), nil
		},
		badgeData: func(n int) (http.HandlerFunc, http.HandlerFunc) {
			return nil, tokens(t, map[string]string{"214087": strconv.Itoa(100 + n)})
		},
	} {
		bucket := local(t, files)
		before := content(t, bucket, "api/")
		var newest string
		newer := func() {
			time.Sleep(2 * time.Millisecond) // another millisecond than that of the older one
			u := newUpstream(t, nil, nil)
			u.tell(answer(1))
			newest = ask(newHandler(t, bucket, server.Options{Refresh: u.options()}), path).Body.String()
		}
		var overtaken sync.Once
		var after map[site.Key]string
		u := newUpstream(t, nil, nil)
		u.tell(answer(0))
		hooked := &hookedBucket{Local: bucket, put: func(key site.Key) {
			if strings.HasPrefix(string(key), string(site.RefreshPrefix)) {
				overtaken.Do(func() {
					newer()
					after = content(t, bucket, "api/")
				})
			}
		}}
		w := ask(newHandler(t, hooked, server.Options{Refresh: u.options()}), path)
		if w.Code != http.StatusOK || w.Body.String() != newest || maps.Equal(before, after) {
			t.Errorf("%s: got %d %s, want the newer answer\n%s", path, w.Code, w.Body, newest)
		}
		for key, body := range content(t, bucket, "api/") {
			if after[key] != body {
				t.Errorf("%s: got %s, want what the newer refresh has stored\n%s", key, body, after[key])
			}
		}
	}
}

// A hookedBucket calls the hooks that are set before the methods that they are named after.
type hookedBucket struct {
	*storage.Local
	put  func(key site.Key)
	list func() error
}

func (h *hookedBucket) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	if h.put != nil {
		h.put(o.Key)
	}
	return h.Local.Put(ctx, o, condition)
}

func (h *hookedBucket) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	if h.list != nil {
		if err := h.list(); err != nil {
			return err
		}
	}
	return h.Local.List(ctx, prefix, after, found)
}

// A fallback refreshes a list while another is about to keep older data of it: what the first has kept
// stays, so that the publisher knows its object.
func TestTwoFallbacksKeepTheirRefreshes(t *testing.T) {
	t.Parallel()
	bucket := openLocal(filepath.Join(t.TempDir(), "bucket"))
	published(t, demo(t), bucket)
	refresh := func(b server.Bucket, name string, fresh int64) {
		u := newUpstream(t, profiles(func(string) site.Profile { return profileOf(name, fresh) }).handler(t), nil)
		if w := ask(newHandler(t, b, server.Options{Refresh: u.options()}), freshDetails); w.Code != http.StatusOK || w.Header().Get("X-Refresh") != "" {
			t.Errorf("%s: got %d %v, want 200 without X-Refresh", name, w.Code, w.Header())
		}
	}
	var once sync.Once
	refresh(&hookedBucket{Local: bucket, put: func(key site.Key) {
		if key == site.RefreshKey(site.Details, "104") {
			once.Do(func() { refresh(bucket, "newer", 1_790_000_000_002) })
		}
	}}, "older", 1_790_000_000_001)
	for _, key := range []site.Key{"api/v1/lists/104/details", site.RefreshKey(site.Details, "104")} {
		if body, err := bucket.Get(t.Context(), key); err != nil || !strings.Contains(string(body), `"newer"`) {
			t.Errorf("%s: got %s, %v, want the newer profile", key, body, err)
		}
	}
	if v, err := publisher.Verify(t.Context(), bucket, publisher.Options{}); err != nil || !v.Good() || v.Refreshed.Count != 1 {
		t.Errorf("verify: got %v, %v, want a good bucket with a refreshed object", v, err)
	}
}

// publishedAfter returns a bucket in which a site was published after a refresh of the second account. The
// options are for handlers that reapply it.
func publishedAfter(t *testing.T, refreshed, next string) (*storage.Local, server.RefreshOptions) {
	t.Helper()
	bucket := openLocal(filepath.Join(t.TempDir(), "bucket"))
	publish := func(asOf, ens string) {
		files, _ := generatedEFP(t, wholeSnapshot(t, asOf, ens, ""), nil)
		published(t, files, bucket)
	}
	publish(dayOne, staleENS)
	u := newUpstream(t, says(refreshed), nil)
	if w := ask(newHandler(t, bucket, server.Options{Refresh: u.options()}), "/api/v1/lists/2/details?cache=fresh"); w.Code != http.StatusOK || w.Header().Get("X-Refresh") != "" {
		t.Fatalf("refresh: got %d %v, want 200 without X-Refresh", w.Code, w.Header())
	}
	publish("2026-01-02T00:00:00Z", next)
	return bucket, u.options()
}

// A new site may know a newer profile than a refresh before it: reapplying leaves it.
func TestReapplyingLeavesNewerData(t *testing.T) {
	t.Parallel()
	bucket, options := publishedAfter(t, strings.Replace(staleENS, "1000", "2000", 1), freshENS)
	before := content(t, bucket, "")
	newHandler(t, bucket, server.Options{Refresh: options}).Reapply(t.Context())
	unchanged(t, bucket, before, "reapplied older data")
}

// What could not be reapplied is tried again, but not for ever.
func TestReapplyingIsTriedAgain(t *testing.T) {
	t.Parallel()
	bucket, options := publishedAfter(t, freshENS, strings.Replace(staleENS, "1000", "2000", 1))
	for _, failures := range []int{1000, 2} {
		before, lists := content(t, bucket, ""), 0
		hooked := &hookedBucket{Local: bucket, list: func() error {
			if lists++; lists <= failures {
				return errors.New("the bucket is busy")
			}
			return nil
		}}
		newHandler(t, hooked, server.Options{Refresh: options, Poll: time.Millisecond}).Reapply(t.Context())
		if lists != 3 {
			t.Errorf("%d failures: got %d tries, want 3", failures, lists)
		}
		if failures > lists {
			unchanged(t, bucket, before, "all tries failed")
		} else if body, err := bucket.Get(t.Context(), "api/v1/lists/2/details"); err != nil || !strings.Contains(string(body), "<new>.png") {
			t.Errorf("after the last try: got %s, %v, want the refreshed profile", body, err)
		}
	}
}

// A waiting bucket does something before each write.
type waiting struct {
	bucket
	do func()
}

func (w waiting) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	w.do()
	return w.bucket.Put(ctx, o, condition)
}

// Refreshes during a publish of another site are not lost: they are stored for the next
// run of the generator, and stay in the objects that the new site does not change.
func TestAPublishLosesNoRefresh(t *testing.T) {
	t.Parallel()
	files := demo(t)
	old := newListing(t, files)
	// In the new site, the details of every other list differ.
	changed := map[string]bool{}
	for i, list := range old.lists {
		changed[list.account] = changed[list.account] || i%2 == 0
	}
	next := generated(t, rewritten(t, "accounts.ndjson", func(r row) row {
		if changed[r.text("address")] {
			r["ens"] = []byte(`{"name":"","display":"changed"}`)
		}
		return r
	}), site.Config{})
	onBuckets(t, func(t *testing.T, open func() bucket) {
		published(t, files, open())
		u := newUpstream(t, nil, nil)
		var clock atomic.Int64
		clock.Store(1_795_300_000_000)
		u.tell(profiles(func(address string) site.Profile { return profileOf(address[2:8], clock.Add(1)) }).handler(t), nil)
		handler := newHandler(t, open(), server.Options{Refresh: u.options(), Timeout: time.Minute}) // a slow disk may take its time

		var refreshed atomic.Int64
		ended := make(chan struct{})
		answered := make([]string, len(old.lists)) // the last answer of each list
		var group sync.WaitGroup
		const workers = 4
		for worker := range workers {
			group.Go(func() {
				for round := 0; ; round++ {
					for i := worker; i < len(old.lists); i += workers {
						w := ask(handler, "/"+string(old.lists[i].key)+"?cache=fresh")
						if w.Code != http.StatusOK || w.Header().Get("X-Refresh") != "" {
							t.Errorf("%s: got %d %v, want 200 without X-Refresh", old.lists[i].key, w.Code, w.Header())
							return
						}
						answered[i] = w.Body.String()
						refreshed.Add(1)
					}
					select {
					case <-ended:
						return
					default:
					}
				}
			})
		}
		eventually(t, "some refreshes", func() bool { return refreshed.Load() > 10 || t.Failed() })
		before := refreshed.Load()
		refreshes := sync.OnceFunc(func() {
			eventually(t, "refreshes meanwhile", func() bool { return refreshed.Load() > before+10 || t.Failed() })
		})
		_, err := publisher.Publish(t.Context(), storage.NewFolder(next), waiting{open(), refreshes}, publisher.Options{Concurrency: 2})
		during := refreshed.Load() - before
		close(ended)
		group.Wait()
		if err != nil || during == 0 {
			t.Errorf("publish: got %v and %d concurrent refreshes, want no error and some", err, during)
		}
		all := content(t, open(), "")
		for i, list := range old.lists {
			account, _ := site.ParseAddress(list.account)
			last, _, err := site.DecodeDetails([]byte(answered[i]))
			if err != nil {
				t.Fatal(err)
			}
			kept, err := refresh.DecodeProfile([]byte(all[site.RefreshKey(site.Details, list.tokenID)]), account, time.Time{})
			if err != nil || kept.Fresh != last.ENS.Fresh {
				t.Errorf("list %s: got fresh %d in the answer and %d kept, %v, want the same", list.tokenID, last.ENS.Fresh, kept.Fresh, err)
			}
			if !changed[list.account] && all[list.key] != answered[i] {
				t.Errorf("list %s: got the answer\n%s, want the stored object\n%s", list.tokenID, answered[i], all[list.key])
			}
		}
		if all[site.RootKey] != readObject(t, next, site.RootKey) {
			t.Error("the root: got another one, want that of the new site")
		}
		if v, err := publisher.Verify(t.Context(), open(), publisher.Options{}); err != nil || !v.Good() {
			t.Errorf("afterwards: got %+v, %v, want a good bucket", v, err)
		}
	})
}

// A listing is the lists of a site.
type listing struct{ lists []listOf }

type listOf struct {
	tokenID, account string
	key              site.Key // key of its details
}

func newListing(t testing.TB, files afero.Fs) (l listing) {
	t.Helper()
	folders, err := afero.ReadDir(files, "api/v1/lists")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		id := folder.Name()
		l.lists = append(l.lists, listOf{id, accountOf(t, files, id), site.Key("api/v1/lists/" + id + "/details")})
	}
	if len(l.lists) < 20 {
		t.Fatalf("got %d lists, want at least 20", len(l.lists))
	}
	return l
}
