package edge_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/site"
)

// A recorder is an origin that records requests and can replace answers.
type recorder struct {
	*httptest.Server
	mutex    sync.Mutex
	requests []*http.Request
	answer   func(w http.ResponseWriter, r *http.Request) (done bool) // may be nil
}

func record(t testing.TB, handler http.Handler) *recorder {
	t.Helper()
	o := &recorder{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mutex.Lock()
		o.requests = append(o.requests, r.Clone(r.Context()))
		answer := o.answer
		o.mutex.Unlock()
		if answer == nil || !answer(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *recorder) set(answer func(w http.ResponseWriter, r *http.Request) bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.answer = answer
}

func (o *recorder) setStatus(status int) {
	o.set(func(w http.ResponseWriter, _ *http.Request) bool {
		time.Sleep(50 * time.Millisecond) // others come meanwhile
		w.WriteHeader(status)
		return true
	})
}

// taken are the requests since it was last called.
func (o *recorder) taken() []*http.Request {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	all := o.requests
	o.requests = nil
	return all
}

// clientHeaders are headers of ordinary clients, and of attackers who want to poison the cache.
var clientHeaders = []string{
	"Accept", "text/html", "Accept-Encoding", "br", "Accept-Language", "de", "Authorization", "AWS4-HMAC-SHA256 x", "Cache-Control", "no-cache",
	"Content-Encoding", "gzip", "Content-Md5", "x", "Content-Type", "text/html", "Cookie", "a=b", "Date", "x", "Forwarded", "for=1.2.3.4", "From", "x",
	"If-Match", `"x"`, "If-Modified-Since", "Mon, 02 Nov 2026 00:00:00 GMT", "If-None-Match", `"x"`, "If-Range", `"x"`, "If-Unmodified-Since", "Mon, 02 Nov 2020 00:00:00 GMT",
	"Max-Forwards", "0", "Origin", "https://example.org", "Pragma", "no-cache", "Proxy-Authorization", "x", "Range", "bytes=0-3", "Referer", "x", "Te", "trailers", "Upgrade", "h2c",
	"User-Agent", "x", "Via", "1.1 x", "X-Amz-Acl", "private", "X-Amz-Checksum-Mode", "ENABLED", "X-Amz-Content-Sha256", "x", "X-Amz-Copy-Source", "/x/y", "X-Amz-Date", "x",
	"X-Amz-Expected-Bucket-Owner", "1", "X-Amz-Meta-Data", "x", "X-Amz-Request-Payer", "requester", "X-Amz-Security-Token", "x",
	"X-Amz-Server-Side-Encryption-Customer-Algorithm", "AES256", "X-Amz-Server-Side-Encryption-Customer-Key", "x", "X-Amz-Server-Side-Encryption-Customer-Key-Md5", "x",
	"X-Followpress-Ask", "1", "X-Followpress-Ban", "x", "X-Followpress-Fresh", "1", "X-Followpress-Kind", "fallback", "X-Followpress-Maybe", "1", "X-Followpress-Stale", "1",
	"X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "https", "X-Goog-Encryption-Key", "x", "X-Goog-User-Project", "x", "X-Http-Method-Override", "DELETE",
	"X-Original-Url", "/_lock", "X-Real-Ip", "1.2.3.4", "X-Request-Id", "x",
}

// Nothing from the client reaches an origin: not its Host, no header, no body.
func TestVarnishOriginsSeeNoClient(t *testing.T) {
	o := newOriginsCaching(t, "public, max-age=1, stale-while-revalidate=60, stale-if-error=600")
	bucket, fallback := record(t, o.bucket.Config.Handler), record(t, o.fallback.Config.Handler)
	base := startVarnish(t, bucket.URL+"/bucket", fallback.URL)
	askEvil := func(path string) answer {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, base, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		request.URL.Opaque, request.Host = path, "evil.example"
		for i := 0; i < len(clientHeaders); i += 2 {
			request.Header.Set(clientHeaders[i], clientHeaders[i+1])
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return answer{status: response.StatusCode}
	}
	asked := func(what string, o *recorder, condition bool) {
		t.Helper()
		var all []*http.Request
		for begun := time.Now(); len(all) == 0; time.Sleep(10 * time.Millisecond) {
			if all = o.taken(); len(all) == 0 && time.Since(begun) > 5*time.Second {
				t.Fatalf("%s: got no request to the origin", what)
			}
		}
		for _, r := range all {
			if want := strings.TrimPrefix(o.URL, "http://"); r.Host != want {
				t.Errorf("%s: Host: got %q, want %q", what, r.Host, want)
			}
			if (r.Header.Get("If-None-Match") != "") != condition || r.Header.Get("If-None-Match") == `"x"` {
				t.Errorf("%s: got If-None-Match %q, want none of the client's", what, r.Header.Get("If-None-Match"))
			}
			for name, values := range r.Header {
				switch name {
				case "If-None-Match", "X-Followpress-Kind", "X-Followpress-Path", "X-Followpress-Caching":
				case "X-Forwarded-For":
					if what != "pass" && what != "too long" || len(values) != 1 || values[0] != "127.0.0.1" {
						t.Errorf("%s: got the header %s: %q, want the client's address, in a refresh only", what, name, values)
					}
				default:
					t.Errorf("%s: got the header %s: %q, want none", what, name, values)
				}
			}
			if r.ContentLength > 0 || r.Method != http.MethodGet {
				t.Errorf("%s: got %s with a body of %d bytes, want GET without a body", what, r.Method, r.ContentLength)
			}
		}
	}
	const path = "/api/v1/lists/8/details"
	for _, c := range []struct {
		what, path string
		from       *recorder
	}{
		{"miss", path, bucket},
		{"decided", "/api/v1/lists/7/details?x=1", bucket},
		{"search", "/api/v1/lists/8/searchFollowing?limit=3", fallback},
		{"pass", path + "?cache=fresh", fallback},
		{"too long", path + "?x=" + strings.Repeat("y", 2000), fallback},
		{"restart", "/api/v1/users/CAF%C3%89.eth/searchFollowing", fallback},
	} {
		if a := askEvil(c.path); a.status != http.StatusOK && c.what != "restart" {
			t.Errorf("%s: got status %d, want 200", c.what, a.status)
		}
		asked(c.what, c.from, false)
	}
	bucket.taken()
	time.Sleep(1500 * time.Millisecond)
	askEvil(path)
	asked("background", bucket, true)
	bucket.setStatus(http.StatusBadGateway)
	askEvil("/api/v1/lists/6/details")
	asked("failed, restarted", bucket, false)
}

// Only a 403 or 404 of the bucket means that there is no object.
func TestVarnishBucketFails(t *testing.T) {
	const path, other = "/_site", "/api/v1/lists/7/details" // the first is fetched anew while clients wait
	o := newOriginsCaching(t, "public, max-age=1, stale-if-error=600")
	bucket := record(t, o.bucket.Config.Handler)
	base := startVarnish(t, bucket.URL+"/bucket", o.fallback.URL)
	warm := ask(t, http.MethodGet, base, path)
	time.Sleep(1500 * time.Millisecond)
	for _, status := range []int{204, 206, 301, 304, 400, 401, 405, 412, 416, 418, 429, 500, 503} {
		bucket.setStatus(status)
		var all sync.WaitGroup
		for range 20 { // others wait for the first
			all.Go(func() {
				if a, err := tryAsk(http.MethodGet, base, path); err != nil || a.status != warm.status || a.body != warm.body {
					t.Errorf("status %d of the bucket: got %d %v, want the stale answer", status, a.status, err)
				}
			})
		}
		all.Wait()
		if a := ask(t, http.MethodGet, base, other); a.status != http.StatusServiceUnavailable || a.body != string(site.Unavailable.Body()) || a.header.Get("Retry-After") == "" {
			t.Errorf("status %d of the bucket: got %d %s %q, want the 503 of the API", status, a.status, a.body, a.header)
		}
	}
	bucket.set(nil)
	sameAnswer(t, "up again", ask(t, http.MethodGet, base, other), o.answer(other), "Cache-Control")
	bucket.setStatus(http.StatusBadRequest)
	const name = "/api/v1/users/%FF%FE/searchFollowing"
	sameAnswer(t, "a name that the bucket refuses", ask(t, http.MethodGet, base, name), o.answer(name))
}

// A bucket that does not answer delays clients within the time limit only.
func TestVarnishBucketHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 12 s: `make test` runs it")
	}
	const path = "/_site" // fetched anew while clients wait
	o := newOriginsCaching(t, "public, max-age=1, stale-if-error=600")
	bucket := record(t, o.bucket.Config.Handler)
	base := startVarnish(t, bucket.URL+"/bucket", "")
	warm := ask(t, http.MethodGet, base, path)
	time.Sleep(1500 * time.Millisecond)
	bucket.set(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	begun := time.Now()
	sameAnswer(t, "hanging", ask(t, http.MethodGet, base, path), warm)
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("a bucket that hangs: got answers after %v, want at most 15s", took)
	}
}

// Headers of an origin about one request do not reach other clients.
func TestVarnishKeepsNoRequestHeaders(t *testing.T) {
	o := newOrigins(t)
	mark := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", "1")
			w.Header().Set("Set-Cookie", "a=b")
			h.ServeHTTP(w, r)
		})
	}
	bucket, fallback := record(t, mark(o.bucket.Config.Handler)), record(t, mark(o.fallback.Config.Handler))
	base := startVarnish(t, bucket.URL+"/bucket", fallback.URL)
	for _, path := range []string{"/api/v1/lists/8/details", "/api/v1/lists/8/details?cache=fresh", "/api/v1/lists/8/searchFollowing?limit=3", "/api/v1/lists/404/details"} {
		for range 2 {
			a := ask(t, http.MethodGet, base, path)
			for _, name := range []string{"X-Request-Id", "Set-Cookie"} {
				if a.header.Get(name) != "" {
					t.Errorf("%s: got the header %s, want none", path, name)
				}
			}
		}
	}
	if n := len(bucket.taken()); n != 2 {
		t.Errorf("requests to the bucket: got %d, want 2: Set-Cookie keeps answers out of the cache", n)
	}
}

// Long URLs get the handler's answer or are refused, but never fail for lack of memory.
func TestVarnishLongURLs(t *testing.T) {
	o := newOrigins(t)
	both, alone := startVarnish(t, o.bucket.URL+"/bucket", o.fallback.URL), startVarnish(t, o.bucket.URL+"/bucket", "")
	for _, start := range []string{
		"/api/v1/lists/8/details?x=", "/api/v1/lists/8/searchFollowing?limit=3&term=", "/api/v1/lists/8/searchFollowing?limit=3&offset=2&cache=fresh&term=fox&x=",
		"/api/v1/users/alice.eth/searchFollowing?limit=3&offset=1&x=", "/api/v1/users/", "/api/v1/leaderboard/followers?limit=5&x=", "/",
	} {
		for _, filler := range []string{"a", "%C3%A9", "!", "%26", "&limit=5", "&", "+", "%25"} {
			for _, length := range []int{300, 900, 1024, 1025, 2000, 4000, 7000, 12 << 10, 12<<10 + 1, 20_000} {
				path := start + strings.Repeat(filler, (length-len(start))/len(filler))
				path += strings.Repeat("a", length-len(path))
				got := ask(t, http.MethodGet, both, path)
				if length > 12<<10 {
					if got.status != http.StatusRequestURITooLong || got.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(got.body, `"status":414`) {
						t.Errorf("%s%s…, %d bytes: got %d %s, want a problem with 414", start, filler, length, got.status, got.body)
					}
				} else if want := o.served(t, path); want.status != 0 {
					sameAnswer(t, path[:min(200, len(path))], got, want)
				}
				got = ask(t, http.MethodGet, alone, path)
				if got.status >= 500 || (got.status == http.StatusRequestURITooLong) != (length > 1024) {
					t.Errorf("without fallback: %s%s…, %d bytes: got %d %s, want a 414 beyond 1 KB and no 5xx", start, filler, length, got.status, got.body)
				}
			}
		}
	}
}
