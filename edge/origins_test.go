package edge_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/site"
)

// A witness is an origin that records requests.
type witness struct {
	*httptest.Server

	mu       sync.Mutex
	received []received
}

type received struct {
	method, host, uri, body string
	header                  http.Header
}

func newWitness(t testing.TB, answer http.HandlerFunc) *witness {
	w := &witness{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("body of %s: %v", r.URL, err)
		}
		w.mu.Lock()
		w.received = append(w.received, received{r.Method, r.Host, r.RequestURI, string(body), r.Header})
		w.mu.Unlock()
		answer(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *witness) all() []received {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.received)
}

// isUnavailable checks that an answer is the 503 of the API.
func isUnavailable(t testing.TB, what string, a answer) {
	t.Helper()
	if a.status != http.StatusServiceUnavailable || a.body != string(site.Unavailable.Body()) || a.header.Get("Retry-After") != "5" ||
		a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("Cache-Control") != site.NoStore {
		t.Errorf("%s: got %d %v %.200s, want the 503 of the API", what, a.status, a.header, a.body)
	}
}

// The origins receive neither the headers nor the body of a client, by any route.
func TestOriginsReceive(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		bucket := newWitness(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/404/") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			_, _ = io.WriteString(w, "{}")
		})
		fallback := newWitness(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
		base := s.start(t, bucket.URL+"/bucket", fallback.URL+"/below")
		send := func(method, path, condition string, body io.Reader) {
			t.Helper()
			request, err := http.NewRequest(method, base+path, body)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{
				"Accept", "Authorization", "Content-Type", "Cookie", "Forwarded", "If-Modified-Since", "If-Range", "Origin", "Range",
				"Referer", "Te", "Upgrade-Insecure-Requests", "User-Agent", "Via", "X-Amz-Date", "X-Amz-Server-Side-Encryption-Customer-Algorithm", "X-Forwarded-For",
				"X-Forwarded-Host", "X-Http-Method-Override", "X-Request-Id", "9", "!",
			} {
				request.Header.Set(name, "mine")
			}
			if s.kind != "nginx" { // it judges these itself
				request.Header.Set("If-Match", "mine")
				request.Header.Set("If-Unmodified-Since", "mine")
			}
			if condition != "" {
				request.Header.Set("If-None-Match", condition)
			}
			if _, err := do(request); err != nil {
				t.Errorf("%s %s: %v", method, path, err)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			for _, path := range []string{"/api/v1/lists/1/details", "/api/v1/lists/404/details", "/api/v1/lists/1/searchFollowing?term=a", "/api/v1/lists/1/details?cache=fresh"} {
				for _, condition := range []string{"", `"mine"`} {
					send(method, path, condition, nil)
					send(method, path, condition, strings.NewReader("body"))
					send(method, path, condition, io.MultiReader(strings.NewReader("chunked"))) // its length is not known
				}
			}
		}
		for what, w := range map[string]*witness{"bucket": bucket, "fallback": fallback} {
			if len(w.all()) == 0 {
				t.Errorf("requests to the %s: got none", what)
			}
			for _, r := range w.all() {
				if s.exactConditions { // the bucket judges these
					r.header.Del("If-None-Match")
				}
				if strings.Contains(fmt.Sprint(r.header), "mine") || r.header.Get("Range") != "" || r.body != "" || r.host != strings.TrimPrefix(w.URL, "http://") {
					t.Errorf("request to the %s: got %+v, want no header, body or host of the client", what, r)
				}
			}
		}
	}, "cloudfront")
}

// soonStale makes answers stale after a second. Edges may serve them for ten more minutes while the bucket fails.
const soonStale = "public, max-age=1, stale-if-error=600"

// Whatever the failure of an origin, its body does not reach the client, it is not cached, and cached answers are served on.
func TestFailingOrigins(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		const cached, other, root, board = "/api/v1/lists/8/details", "/api/v1/lists/7/details", "/_site", "/api/v1/leaderboard/followers?limit=7"
		const search, notUTF8 = "/api/v1/lists/8/searchFollowing?limit=3", "/api/v1/users/%FF/searchFollowing"
		o := newOrigins(t)
		if s.kind == "worker" { // for nginx, see TestNginxStaleWhileFailing
			o = newOriginsCaching(t, soonStale)
		}
		for _, fallbackURL := range []string{o.fallback.URL, ""} {
			base := s.start(t, o.bucket.URL+"/bucket", fallbackURL)
			warm := ask(t, http.MethodGet, base, cached)
			if s.kind == "worker" {
				time.Sleep(1500 * time.Millisecond)
			}
			statuses := []int64{301, 302, 307, 400, 401, 402, 405, 409, 411, 412, 416, 429, 500, 501, 502, 503, 504, 507}
			if s.kind != "nginx" { // it passes these on; no bucket sends them for a plain GET
				statuses = append(statuses, 204, 206)
			}
			for _, status := range statuses {
				o.bucket.failing.Store(status)
				if s.caches {
					sameAnswer(t, fmt.Sprint("bucket says ", status, ": cached"), ask(t, http.MethodGet, base, cached), warm)
				}
				for _, path := range []string{other, root, board} {
					isUnavailable(t, fmt.Sprint("bucket says ", status, ": ", path), ask(t, http.MethodGet, base, path))
				}
				if fallbackURL == "" {
					isUnavailable(t, fmt.Sprint("bucket says ", status, ": fresh"), ask(t, http.MethodGet, base, other+"?cache=fresh"))
				}
			}
			o.bucket.failing.Store(http.StatusBadRequest) // S3 refuses a name that is not UTF-8
			sameAnswer(t, "a name that is not UTF-8", ask(t, http.MethodGet, base, notUTF8), o.direct(t, http.MethodGet, notUTF8))
			o.bucket.failing.Store(0)
			for _, path := range []string{other, root} {
				sameAnswer(t, "bucket up again", ask(t, http.MethodGet, base, path), o.direct(t, http.MethodGet, path), "Cache-Control")
			}
			if fallbackURL == "" {
				continue
			}
			for _, status := range []int64{301, 401, 403, 410, 500, 501, 502, 503, 504, 520} {
				o.fallback.failing.Store(status)
				for _, path := range []string{search, cached + "?cache=fresh"} {
					isUnavailable(t, fmt.Sprint("fallback says ", status, ": ", path), ask(t, http.MethodGet, base, path))
				}
			}
			o.fallback.failing.Store(0)
			sameAnswer(t, "fallback up again", ask(t, http.MethodGet, base, search), o.direct(t, http.MethodGet, search))
		}
	}, "cloudfront")
}

// A bucket that does not answer counts as failed, within the time limit.
func TestHangingBucket(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		const cached, other = "/api/v1/lists/8/details", "/api/v1/lists/7/details"
		o := newOriginsCaching(t, soonStale)
		base := s.start(t, o.bucket.URL+"/bucket", "")
		warm := ask(t, http.MethodGet, base, cached)
		time.Sleep(1500 * time.Millisecond)
		o.bucket.hanging.Store(true)
		begun := time.Now()
		if s.caches {
			sameAnswer(t, "stale", ask(t, http.MethodGet, base, cached), warm)
		}
		isUnavailable(t, "nothing cached", ask(t, http.MethodGet, base, other))
		if took := time.Since(begun); took > 2*time.Minute {
			t.Errorf("an origin that hangs: got the answers after %v, want at most a minute each", took)
		}
	}, "cloudfront")
}

// strange are headers that no answer of the API has. An edge sets some of them itself.
var strange = []string{
	"Access-Control-Allow-Credentials", "Access-Control-Allow-Origin", "Alt-Svc", "Clear-Site-Data", "Content-Disposition", "Content-Encoding", "Content-Language",
	"Content-Location", "Content-Security-Policy", "Cross-Origin-Opener-Policy", "Expires", "Last-Modified", "Link", "Location", "Nel", "Permissions-Policy", "Pragma",
	"Proxy-Authenticate", "Public-Key-Pins", "Refresh", "Report-To", "Service-Worker-Allowed", "Set-Cookie", "Sourcemap", "Strict-Transport-Security", "Timing-Allow-Origin",
	"Vary", "Via", "Warning", "Www-Authenticate", "X-Accel-Buffering", "X-Accel-Charset", "X-Accel-Expires", "X-Accel-Limit-Rate", "X-Accel-Redirect", "X-Amz-Meta-Strange",
	"X-Amz-Version-Id", "X-Content-Type-Options", "X-Dns-Prefetch-Control", "X-Frame-Options", "X-Nobody-Knows", "X-Sendfile", "x_underscore", "0", "!#$%&'*+.^_`|~",
}

// known are the headers that answers of an edge may have.
var known = map[string]bool{
	"Access-Control-Allow-Headers": true, "Access-Control-Allow-Methods": true, "Access-Control-Allow-Origin": true, "Access-Control-Expose-Headers": true,
	"Access-Control-Max-Age": true, "Allow": true, "Cache-Control": true, "Connection": true, "Content-Length": true, "Content-Type": true, "Date": true, "Etag": true,
	"Followpress-Edge": true, "Retry-After": true, "Server": true, "Transfer-Encoding": true, "Vary": true, "X-As-Of": true, "X-Content-Type-Options": true, "X-Finalized": true, "X-Heads": true, "X-Refresh": true,
}

// hostile adds unexpected parts to the answers of a handler: headers, twice each, early hints, and
// trailers.
func hostile(h http.Handler, early, announced bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if early {
			w.Header().Set("Link", "</strange>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
		}
		for _, name := range strange {
			w.Header()[name] = []string{"strange", "stranger"}
		}
		w.Header().Set("Trailer", "X-Announced")
		h.ServeHTTP(w, r)
		w.Header().Set("X-Announced", "strange")
		if !announced { // Caddy passes these on (docs/deploy/caddy.md)
			w.Header().Set(http.TrailerPrefix+"X-Not-Announced", "strange")
		}
	})
}

// Of the headers of a bucket, a fallback or live, only those of the API pass.
func TestOriginsHeaders(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		for _, early := range []bool{false, true} {
			if early && s.kind != "worker" {
				continue // TestEarlyHints
			}
			o := newOriginsEFP(t, site.NamesCopies)
			bucket, fallback := newOrigin(t, hostile(o.bucket.Config.Handler, early, s.kind == "caddy")), newOrigin(t, hostile(o.handler, early, s.kind == "caddy"))
			live := newOrigin(t, hostile(o.liveOf(t).Config.Handler, early, s.kind == "caddy"))
			configs.Store(bucket.URL+"/bucket", o.config)
			const batch = `["0x0000000000000000000000000000000000000001"]`
			for _, base := range []string{
				s.start(t, bucket.URL+"/bucket", ""), s.start(t, bucket.URL+"/bucket", fallback.URL), s.start(t, bucket.URL+"/bucket", fallback.URL, before(live)),
			} {
				for _, c := range []struct{ method, path, body, header, value string }{
					{path: "/api/v1/lists/1/details"}, {path: "/api/v1/lists/1/details"}, {method: "HEAD", path: "/api/v1/lists/1/details"},
					{path: "/api/v1/lists/1/details", header: "If-None-Match", value: o.answer("/api/v1/lists/1/details").header.Get("Etag")},
					{path: "/_site"}, {path: "/api/v1/lists/404/details"}, {path: "/api/v1/users/0x00000000000000000000000000000000000000ff/details"},
					{path: "/api/v1/lists/1/following?limit=1&offset=1"}, {path: "/api/v1/lists/1/details?cache=fresh"}, {path: "/api/v1/users/cafe%CC%81.eth/details"},
					{path: "/api/v1/users/alice.eth/ens/avatar"}, {path: "/api/v1/users/nobody.eth/ens/avatar"}, {path: "/_reports/index"}, {path: "/nothing"},
					{path: "/api/v1/lists/1/details", header: "X-After", value: "8453:99"}, {path: "/_live/status"},
					{method: "POST", path: "/api/v1/lists/1/buttonStateBatch", body: batch}, {method: "POST", path: "/api/v1/lists/1/buttonStateBatch", body: batch, header: "X-After", value: "8453:99"},
					{method: "OPTIONS", path: "/api/v1/lists/1/details"}, {method: "PUT", path: "/api/v1/lists/1/details"},
				} {
					what := fmt.Sprintf("%s%s %s %s: %s", map[bool]string{true: "hints first: "}[early], base, c.method, c.path, c.header)
					a, trailer := askAll(t, c.method, base+c.path, c.body, c.header, c.value)
					if a.status == 0 {
						t.Errorf("%s: %s", what, a.body)
					}
					for name, values := range a.header {
						if strings.Contains(fmt.Sprint(values), "strange") || !known[name] && (name != "Location" || a.status != http.StatusFound || !strings.HasSuffix(c.path, "/ens/avatar")) {
							t.Errorf("%s: got %d %s: %q, want none", what, a.status, name, values)
						}
					}
					if len(trailer) > 0 {
						t.Errorf("%s: got the trailers %v, want none", what, trailer)
					}
				}
			}
		}
	}, "cloudfront")
}

// An origin that sends early hints spoils only its own answer: nginx and Caddy 2.6 cannot pass the
// rest.
func TestEarlyHints(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOriginsEFP(t, site.NamesCopies)
		bucket := newOrigin(t, hostile(o.bucket.Config.Handler, true, true))
		configs.Store(bucket.URL+"/bucket", o.config)
		base := s.start(t, bucket.URL+"/bucket", o.fallback.URL)
		a, _ := askAll(t, http.MethodGet, base+"/api/v1/lists/1/details", "", "", "")
		if strings.Contains(fmt.Sprint(a.header), "strange") {
			t.Errorf("got %d %v, want nothing of the hints", a.status, a.header)
		}
		const path = "/api/v1/lists/1/following?limit=1&offset=1"
		sameAnswer(t, "the next answer", ask(t, http.MethodGet, base, path), o.answer(path))
	}, "cloudfront", "worker")
}

// askAll sends a request that allows compression and trailers, and returns the answer with its trailers. An answer before it fails.
func askAll(t *testing.T, method, url, body, name, value string) (a answer, trailer http.Header) {
	t.Helper()
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
		if header.Get("Link") != "" {
			t.Errorf("%s: got %d %v before the answer, want no hints", url, code, header)
		}
		return nil
	}}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		request.Body = nil
	}
	request.Header.Set("Te", "trailers")
	if name != "" {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{body: err.Error()}, nil
	}
	defer response.Body.Close()
	received, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return answer{response.StatusCode, response.Header, string(received)}, response.Trailer
}
