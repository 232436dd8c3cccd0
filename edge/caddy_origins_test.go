package edge_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
)

// A witness is an origin that records requests. The test sets its answers.
type witness struct {
	*httptest.Server

	mu       sync.Mutex
	received []received
	answer   http.HandlerFunc
}

type received struct {
	method, host, uri, body string
	header                  http.Header
}

func newWitness(t testing.TB, answer http.HandlerFunc) *witness {
	w := &witness{answer: answer}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("body of %s: %v", r.URL, err)
		}
		w.mu.Lock()
		w.received = append(w.received, received{r.Method, r.Host, r.RequestURI, string(body), r.Header})
		answer := w.answer
		w.mu.Unlock()
		answer(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *witness) answers(answer http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

func (w *witness) all() []received {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.received)
}

// status answers like a failing bucket.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, bucketWords)
	}
}

const bucketWords = "<Error><Code>TheBucketsOwn</Code></Error>"

// The origins receive neither the headers nor the body of a client, by any route.
func TestCaddyOriginsReceive(t *testing.T) {
	t.Parallel()
	bucket := newWitness(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/404/") {
			status(http.StatusForbidden)(w, r)
			return
		}
		_, _ = io.WriteString(w, "{}")
	})
	fallback := newWitness(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	base := startCaddy(t, bucket.URL+"/bucket", fallback.URL+"/below")
	send := func(method, path, condition string, body io.Reader) {
		t.Helper()
		request, err := http.NewRequest(method, base+path, body)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{
			"Accept", "Authorization", "Content-Type", "Cookie", "Forwarded", "If-Match", "If-Modified-Since", "If-Range", "If-Unmodified-Since", "Origin", "Range",
			"Referer", "Te", "Upgrade-Insecure-Requests", "User-Agent", "Via", "X-Amz-Date", "X-Amz-Server-Side-Encryption-Customer-Algorithm", "X-Forwarded-For",
			"X-Forwarded-Host", "X-Http-Method-Override", "X-Request-Id", "9", "!",
		} {
			request.Header.Set(name, "mine")
		}
		if condition != "" {
			request.Header.Set("If-None-Match", condition)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s %s: got status %d, want 200", method, path, response.StatusCode)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, path := range []string{"/api/v1/lists/1/details", "/api/v1/lists/404/details", "/api/v1/lists/1/searchFollowing?term=a"} {
			for _, condition := range []string{"", `"x"`} {
				send(method, path, condition, nil)
				send(method, path, condition, strings.NewReader("body"))
				send(method, path, condition, io.MultiReader(strings.NewReader("chunked"))) // its length is not known
			}
		}
	}
	for what, w := range map[string]*witness{"bucket": bucket, "fallback": fallback} {
		conditions := map[string]int{}
		for _, r := range w.all() {
			conditions[r.header.Get("If-None-Match")]++
			r.header.Del("If-None-Match")
			if what == "fallback" && r.header.Get("X-Forwarded-For") == "127.0.0.1" { // not the client's own
				r.header.Del("X-Forwarded-For")
			}
			if len(r.header) > 0 || r.body != "" || r.host != strings.TrimPrefix(w.URL, "http://") ||
				r.method != http.MethodGet {
				t.Errorf("request to the %s: got %+v, want no header, body or host of the client", what, r)
			}
		}
		if len(w.all()) != 24 || conditions[""] != 12 || conditions[`"x"`] != 12 {
			t.Errorf("requests to the %s: got %d with conditions %v, want 24, half of them with a condition", what, len(w.all()), conditions)
		}
	}
}

// Only the operators learn whether the fallback and live are well. Clients of Caddy get the answer
// to an unknown path.
func TestCaddyProbes(t *testing.T) {
	t.Parallel()
	for what, o := range map[string]*origins{"spec": newOrigins(t), "efp": newOriginsEFP(t, site.NamesCopies)} {
		asked := newWitness(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
		live := newWitness(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/_site" { // the health check of Caddy
				t.Errorf("%s: live was asked for %s", what, r.URL)
			}
		})
		for _, base := range []string{
			startCaddy(t, o.bucket.URL+"/bucket", ""), startCaddy(t, o.bucket.URL+"/bucket", asked.URL),
			startCaddy(t, o.bucket.URL+"/bucket", asked.URL, func(o *edge.Options) { o.Live = live.URL }),
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions} {
				for _, path := range []string{"/healthz", "/readyz", "/%68ealthz", "/readyz?x=1"} {
					sameAnswer(t, what+": "+method+" "+path, ask(t, method, base, path), o.direct(t, method, path))
				}
			}
		}
		if all := asked.all(); len(all) > 0 {
			t.Errorf("%s: got requests to the fallback %v, want none", what, all)
		}
	}
}

// An error of the bucket becomes a 503 in JSON without the bucket's body.
func TestCaddyBucketErrors(t *testing.T) {
	t.Parallel()
	bucket := newWitness(t, nil)
	fallback := newWitness(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fallback") })
	for _, fallbackURL := range []string{"", fallback.URL} {
		base := startCaddy(t, bucket.URL+"/bucket", fallbackURL)
		for _, code := range []int{204, 206, 301, 302, 307, 400, 401, 402, 405, 409, 411, 412, 416, 429, 500, 501, 502, 503, 504, 507} {
			bucket.answers(status(code))
			for _, path := range []string{"/api/v1/lists/8/details", "/api/v1/leaderboard/followers"} {
				isUnavailable(t, fmt.Sprintf("%d: %s", code, path), ask(t, http.MethodGet, base, path))
			}
		}
		// S3 refuses a name that is not UTF-8.
		bucket.answers(status(http.StatusBadRequest))
		a := ask(t, http.MethodGet, base, "/api/v1/users/%FF/searchFollowing")
		if want := map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[fallbackURL == ""]; a.status != want || strings.Contains(a.body, bucketWords) {
			t.Errorf("a name that is not UTF-8: got %d %s, want 404 or the fallback's 200", a.status, a.body)
		}
	}
}

// hang answers nothing until the test ends.
func hang(t testing.TB) http.HandlerFunc {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}
}

// A bucket that does not answer is an error within the time limit.
func TestCaddyHangingBucket(t *testing.T) {
	t.Parallel()
	bucket := newWitness(t, hang(t))
	base := startCaddy(t, bucket.URL+"/bucket", "")
	begun := time.Now()
	isUnavailable(t, "hanging", ask(t, http.MethodGet, base, "/api/v1/lists/8/details"))
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("an origin that hangs: got an answer after %v, want at most a minute", took)
	}
}
