package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// The requests in this file are allowed, small and numerous. Time is virtual: the duration of a
// request is the time that it waits.

// attacked runs a test on virtual time, with a handler for the long site over a store at some distance.
func attacked(t *testing.T, away time.Duration, o server.Options, test func(t *testing.T, h *server.Handler, store *counting)) {
	files := longSite(t)
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: storage.NewFolder(files)}
		handler := newHandler(t, store, o)
		defer handler.Close()
		store.away.Store(int64(away))
		test(t, handler, store)
	})
}

func largePage(offset int) string {
	return fmt.Sprintf("/api/v1/users/%s/followers?include=ens&limit=1000&offset=%d", numbered(1), offset)
}

// storedPaths are paths of stored objects, which the handler has in its cache afterwards.
func storedPaths(t *testing.T, h http.Handler) (paths []string) {
	t.Helper()
	for i := range 90 {
		path := fmt.Sprintf("/api/v1/lists/%d/details", 100+i)
		if w := ask(h, path); w.Code != http.StatusOK {
			t.Fatalf("%s: got %d, want 200", path, w.Code)
		}
		paths = append(paths, path)
	}
	return paths
}

func checkStored(t *testing.T, h http.Handler, paths []string) {
	t.Helper()
	for _, path := range paths {
		begun := time.Now()
		if w := ask(h, path); w.Code != http.StatusOK || time.Since(begun) > 0 {
			t.Errorf("%s, which is cached: got %d after %v, want 200 at once", path, w.Code, time.Since(begun))
		}
	}
}

// TestLargePagesDelayNobody: while some clients request one page of a thousand profiles after
// another, computed answers take no longer than their reads.
func TestLargePagesDelayNobody(t *testing.T) {
	t.Parallel()
	const away = 20 * time.Millisecond
	attacked(t, away, server.Options{CacheBytes: 1 << 20}, func(t *testing.T, h *server.Handler, _ *counting) {
		ctx, stop := context.WithCancel(t.Context())
		var attackers sync.WaitGroup
		for i := range 8 {
			attackers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if w := ask(h, largePage(i*100+n)); w.Code != http.StatusOK && w.Code != http.StatusServiceUnavailable {
						t.Errorf("a large page: got %d, want 200 or 503", w.Code)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		time.Sleep(10 * away)
		for n := range 50 {
			begun := time.Now()
			// An account, its followers in a shard, and one profile each.
			path := fmt.Sprintf("/api/v1/users/%s/followers?include=ens&limit=3&offset=%d", numbered(1), 200+40*n)
			w := ask(h, path)
			if took := time.Since(begun); w.Code != http.StatusOK || took > 6*away {
				t.Errorf("%s: got %d after %v, want 200 after at most %v", path, w.Code, took, 6*away)
			}
		}
		stop()
		attackers.Wait()
		if got := h.InFlight(); got != 0 {
			t.Errorf("got %d bytes in flight in the end, want none", got)
		}
	})
}

// TestLegalMaxima: the largest page and the largest batch are answered from a store that is not near, with
// nothing cached.
func TestLegalMaxima(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range site.MaxBatch {
		names = append(names, fmt.Sprintf("n%d.eth", i))
	}
	batch, _ := json.Marshal(names)
	for _, c := range []struct {
		method, path string
		body         []byte
		requests     int64
	}{
		{"GET", largePage(7), nil, 1005},
		{"GET", largePage(7) + "&sort=followers", nil, 1010},
		{"GET", strings.Replace(largePage(7), "followers?", "following?", 1), nil, 1005},
		{"POST", "/api/v1/lists/1/buttonStateBatch", batch, 1005},
	} {
		attacked(t, 40*time.Millisecond, server.Options{}, func(t *testing.T, h *server.Handler, store *counting) {
			begun, before := time.Now(), store.requests.Load()
			w := answerTo(h, c.method, c.path, c.body)
			if took := time.Since(begun); w.Code != http.StatusOK || took > 2*time.Second {
				t.Errorf("%s: got %d after %v, want 200 within 2 s", c.path, w.Code, took)
			}
			if got := strings.Count(w.Body.String(), `"address":"`); got < site.MaxBatch {
				t.Errorf("%s: got %d entries, want %d", c.path, got, site.MaxBatch)
			}
			if got := store.requests.Load() - before; got > c.requests {
				t.Errorf("%s: got %d requests to the store, want at most %d", c.path, got, c.requests)
			}
		})
	}
}

// TestWaitsLeaveRoom: cached objects are served at once, whatever other requests wait for.
func TestWaitsLeaveRoom(t *testing.T) {
	t.Parallel()
	const clients, most = 210, 200
	for name, request := range map[string]func(i int) *http.Request{
		"large pages":    func(i int) *http.Request { return httptest.NewRequest("GET", largePage(i%1300), nil) },
		"one large page": func(int) *http.Request { return httptest.NewRequest("GET", largePage(3), nil) },
		"small pages": func(i int) *http.Request {
			return httptest.NewRequest("GET", fmt.Sprintf("/api/v1/lists/1/following?offset=%d", i), nil)
		},
		"objects": func(i int) *http.Request {
			return httptest.NewRequest("GET", fmt.Sprintf("/api/v1/lists/%d/records", 300+i), nil)
		},
		"headers only":    func(int) *http.Request { return stalled("") },
		"parts of bodies": func(int) *http.Request { return stalled(`["` + strings.Repeat("x", 5<<10)) },
		"searches": func(i int) *http.Request {
			return httptest.NewRequest("GET", fmt.Sprintf("/api/v1/leaderboard/search?term=t%d", i), nil)
		},
	} {
		attacked(t, 0, server.Options{MaxRequests: most}, func(t *testing.T, h *server.Handler, store *counting) {
			paths := storedPaths(t, h)
			store.away.Store(int64(time.Hour)) // it hangs
			var group sync.WaitGroup
			var answered atomic.Int64
			for i := range clients {
				group.Go(func() {
					serveOne(h, request(i))
					answered.Add(1)
				})
			}
			synctest.Wait()
			if answered.Load() == clients {
				t.Errorf("%s: got an answer to all, want some that wait", name)
			}
			checkStored(t, h, paths)
			group.Wait()
			checkStored(t, h, paths)
			if got := h.RequestsWaiting(); got != 0 {
				t.Errorf("%s: got %d that wait in the end, want none", name, got)
			}
		})
	}
}

// stalled returns a request whose body starts with begin and continues too late.
func stalled(begin string) *http.Request {
	body := io.MultiReader(strings.NewReader(begin), late{time.Minute})
	return httptest.NewRequest("POST", "/api/v1/lists/1/buttonStateBatch", body)
}

// late ends after a while.
type late struct{ time.Duration }

func (l late) Read([]byte) (int, error) {
	time.Sleep(l.Duration)
	return 0, io.EOF
}

// A slowReader is a client that reads nothing for a while, or until its connection ends.
type slowReader struct {
	*httptest.ResponseRecorder
	ended chan struct{}
	cut   sync.Once
}

func (r *slowReader) Write(body []byte) (int, error) {
	select {
	case <-r.ended:
		return 0, io.ErrClosedPipe
	case <-time.After(time.Minute):
		return r.ResponseRecorder.Write(body)
	}
}

func (r *slowReader) SetWriteDeadline(time.Time) error {
	r.cut.Do(func() { close(r.ended) })
	return nil
}

// TestReadersThatDoNotRead: they take neither the slots of others, nor the memory for pages, nor more memory
// than there is.
func TestReadersThatDoNotRead(t *testing.T) {
	t.Parallel()
	const clients, inFlight = 500, 3 << 20
	const most = 2*inFlight + 16<<20 // one page of any size does not count: 8 MiB, in a body that has doubled
	attacked(t, 0, server.Options{CacheBytes: 1 << 20, InFlightBytes: inFlight, MaxRequests: 200}, func(t *testing.T, h *server.Handler, _ *counting) {
		var group sync.WaitGroup
		for i := range clients {
			group.Go(func() {
				h.ServeHTTP(&slowReader{ResponseRecorder: httptest.NewRecorder(), ended: make(chan struct{})}, httptest.NewRequest("GET", strings.Replace(largePage(i%1300), "include=ens&", "", 1), nil))
			})
			if i%100 == 0 {
				time.Sleep(time.Second)
				synctest.Wait() // others wake up at the same time, and may make an answer now
				if got := h.InFlight(); got > most {
					t.Errorf("after %d clients: got %d bytes in flight, want at most %d", i, got, most)
				}
			}
		}
		synctest.Wait()
		time.Sleep(2 * time.Second)
		for _, path := range []string{"/api/v1/lists/1/following?offset=1", largePage(5), "/api/v1/lists/200/details"} {
			ask(h, path) // may find that slow clients have to go
			synctest.Wait()
			if w := ask(h, path); w.Code != http.StatusOK {
				t.Errorf("%s: got %d, want 200", path, w.Code)
			}
		}
		group.Wait()
		if got := h.InFlight(); got != 0 {
			t.Errorf("got %d bytes in flight in the end, want none", got)
		}
	})
}

// TestAPageEnds: profiles of others do not make a page larger than it may be, by any way to ask for it.
func TestAPageEnds(t *testing.T) {
	t.Parallel()
	const most = 8 << 20
	files := longSite(t)
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: longProfiles{storage.NewFolder(files)}}
		handler := newHandler(t, store, server.Options{})
		defer handler.Close()
		for _, more := range []string{"", "&sort=followers", "&sort=earliest", "&tags=a,top8"} {
			before := store.requests.Load()
			w := ask(handler, largePage(0)+more)
			entries := strings.Count(w.Body.String(), `"address":"`)
			if w.Code != http.StatusOK || w.Body.Len() > most+512<<10 || w.Body.Len() < most-512<<10 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s: got %d and %d bytes, want 200 and about %d", more, w.Code, w.Body.Len(), most)
			}
			if got := store.requests.Load() - before; got > int64(entries)+100 { // prefetched objects may be read again
				t.Errorf("%s: got %d requests to the store for %d entries, want about as many", more, got, entries)
			}
			next := ask(handler, fmt.Sprintf("%s%s", largePage(entries/2), more))
			if !strings.HasPrefix(next.Body.String(), `{"followers":[{`) {
				t.Errorf("%s, the next page: got %.100s, want more followers", more, next.Body)
			}
		}
		eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
	})
}

// TestAPageOfLongRowsEnds: so do pages whose rows are long by themselves.
func TestAPageOfLongRowsEnds(t *testing.T) {
	t.Parallel()
	const most = 8 << 20
	files := longSite(t)
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t, longRows{storage.NewFolder(files)}, server.Options{})
		defer handler.Close()
		user := "users/" + numbered(1)
		for _, path := range []string{
			user + "/followers?", user + "/followers?sort=followers&", user + "/searchFollowers?term=n&", user + "/followers?sort=followers&tags=a,top8&",
			user + "/commonFollowers?leader=" + numbered(1) + "&", "discover?",
		} {
			w := ask(handler, "/api/v1/"+path+"limit=1000")
			if w.Code != http.StatusOK || w.Body.Len() > most+512<<10 || !json.Valid(w.Body.Bytes()) || strings.Count(w.Body.String(), `"address":"`) < 3 {
				t.Errorf("%s: got %d and %d bytes, want 200 and at most %d", path, w.Code, w.Body.Len(), most)
			}
		}
		eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
	})
}

// longRows is a store whose followers have avatars of 12 KiB, and larger ones where they were followed lately.
type longRows struct{ server.Store }

func (s longRows) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, err := s.Store.Get(ctx, key)
	for prefix, size := range map[string]int{"_search/followers/": 12 << 10, "_search/discover": 64 << 10} {
		if strings.HasPrefix(string(key), prefix) {
			body = []byte(strings.ReplaceAll(string(body), `"x"`, `"`+strings.Repeat("x", size)+`"`))
		}
	}
	return body, err
}

// longProfiles is a store whose accounts have 200 KiB each.
type longProfiles struct{ server.Store }

func (s longProfiles) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, err := s.Store.Get(ctx, key)
	if strings.HasSuffix(string(key), "/account") {
		body = []byte(strings.Replace(string(body), `"url":"y"`, `"url":"`+strings.Repeat("y", 200<<10)+`"`, 1))
	}
	return body, err
}

// TestAStalledBody: a body that stops in the middle is the client's fault, and is counted as such.
func TestAStalledBody(t *testing.T) {
	t.Parallel()
	files := longSite(t)
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t, storage.NewFolder(files), server.Options{})
		defer handler.Close()
		listener := &pipes{make(chan net.Conn), make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := server.Serve(ctx, listener, handler, slog.New(slog.DiscardHandler)); err != nil {
				t.Errorf("Serve: got %v, want no error", err)
			}
		})
		for _, begin := range []string{"Transfer-Encoding: chunked\r\n\r\n5\r\n[\"", "Content-Length: 100\r\n\r\n[", "Content-Length: 9000\r\n\r\n" + strings.Repeat("[", 5000)} {
			conn, served := net.Pipe()
			listener.connections <- served
			replies := talk(t, conn, "POST /api/v1/lists/1/buttonStateBatch HTTP/1.1\r\nHost: x\r\n"+begin)
			if got := statuses(replies); fmt.Sprint(got) != "[400]" {
				t.Errorf("%.40q: got %v, want 400", begin, got)
			}
		}
		if metrics := ask(handler.Metrics(), "/metrics").Body.String(); strings.Contains(metrics, `status="499"`) || strings.Contains(metrics, `status="503"`) {
			t.Error("got 499 or 503 in the metrics, want neither")
		}
		stop()
		serving.Wait()
	})
}

// TestOthersHaveTheProcessor: what reads many rows waits for its share of the processor, and nothing else does.
func TestOthersHaveTheProcessor(t *testing.T) {
	t.Parallel()
	one, batch := numbered(1), `["`+numbered(10)+`"]`
	attacked(t, 0, server.Options{}, func(t *testing.T, h *server.Handler, _ *counting) {
		stored := storedPaths(t, h)
		free := h.HoldScans()
		var group sync.WaitGroup
		var answered sync.Map
		for _, path := range []string{
			"leaderboard/search?term=n1", "leaderboard/ranked?offset=200&sort=blocks",
			"users/" + one + "/followers?offset=200", "users/" + one + "/followers?sort=followers&offset=200", "users/" + one + "/followers?tags=a",
			"users/" + one + "/searchFollowers?term=n1", "lists/1/searchFollowing?term=n1", "lists/2/following?offset=2000", "lists/2/followers?limit=5",
			"users/" + one + "/commonFollowers?leader=" + one, "lists/1/" + numbered(10) + "/buttonState", "lists/1/allFollowingAddresses",
			"users/" + one + "/allFollowingAddresses", "exportState/1", "lists/1/recommended", "lists/1/buttonStateBatch",
		} {
			group.Go(func() {
				var w *httptest.ResponseRecorder
				if strings.HasSuffix(path, "Batch") {
					w = answerTo(h, http.MethodPost, "/api/v1/"+path, []byte(batch))
				} else {
					w = ask(h, "/api/v1/"+path)
				}
				answered.Store(path, true)
				if w.Code != http.StatusOK {
					t.Errorf("%s: got %d, want 200", path, w.Code)
				}
			})
		}
		synctest.Wait()
		answered.Range(func(path, _ any) bool {
			t.Errorf("%s: got an answer, want it to wait", path)
			return true
		})
		checkStored(t, h, append(stored, "/api/v1/users/n5.eth/ens", "/api/v1/users/n5.eth/followers?limit=3"))
		free()
		group.Wait()
	})
}

// TestClientsAreLimited: one client cannot use up the refreshes of all, whatever it puts before the entry of
// the proxy, or whichever addresses of its network it takes.
func TestClientsAreLimited(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, profiles(func(string) site.Profile { return profileOf("x", 1_795_300_000_000) }).handler(t), nil)
	o := server.Options{Refresh: u.options()}
	o.Refresh.ClientRate, o.Refresh.Proxies, o.Refresh.Strict = 0.001, 1, true
	handler := newHandler(t, local(t, demo(t)), o)
	defer handler.Close()
	refresh := func(remote, forwarded string) int {
		r := httptest.NewRequest(http.MethodGet, freshDetails, nil)
		r.RemoteAddr = remote
		if forwarded != "" {
			r.Header["X-Forwarded-For"] = strings.Split(forwarded, ";")
		}
		return serveOne(handler, r).Code
	}
	for i := range 12 {
		want := http.StatusOK
		if i >= 10 {
			want = http.StatusTooManyRequests
		}
		for name, from := range map[string][2]string{
			"a client":           {"10.0.0.1:1", fmt.Sprintf("1.2.3.%d, 192.0.2.1", i)},
			"in several headers": {"10.0.0.1:2", fmt.Sprintf("1.2.3.%d;192.0.2.2", i)},
			"a network":          {"10.0.0.1:3", fmt.Sprintf("2001:db8:0:1::%x", i)},
			"directly":           {fmt.Sprintf("198.51.100.1:%d", i), ""},
		} {
			if got := refresh(from[0], from[1]); got != want {
				t.Errorf("%s, refresh %d: got %d, want %d", name, i, got, want)
			}
		}
	}
	if got := refresh("10.0.0.1:1", "2001:db8:0:2::1"); got != http.StatusOK {
		t.Errorf("another client: got %d, want 200", got)
	}
}

// TestLargeBadges: an upstream decides neither how much memory a refresh takes, nor how large the objects
// become.
func TestLargeBadges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bytes  int // length of a text in each event
		failed bool
	}{{100, false}, {60 << 10, false}, {65 << 10, true}, {1 << 20, true}} {
		u := newUpstream(t, nil, nil)
		b := local(t, demo(t))
		answer := tokens(t, map[string]string{"214087": "99"})
		u.tell(nil, func(w http.ResponseWriter, r *http.Request) {
			told := httptest.NewRecorder()
			answer(told, r)
			w.WriteHeader(told.Code)
			_, _ = w.Write(regexp.MustCompile(`"image_url":"[^"]*"`).ReplaceAll(told.Body.Bytes(), []byte(`"image_url":"`+strings.Repeat("x", c.bytes)+`"`)))
		})
		handler := newHandler(t, b, server.Options{Refresh: u.options()})
		w := ask(handler, badgeData)
		if failed := w.Header().Get("X-Refresh") == "failed"; w.Code != http.StatusOK || failed != c.failed {
			t.Errorf("%d bytes: got %d %v, want failed %v", c.bytes, w.Code, w.Header(), c.failed)
		}
		handler.Close()
	}
}
