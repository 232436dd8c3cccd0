package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// isUnavailable checks that an answer is the 503 of the API.
func isUnavailable(t testing.TB, what string, a answer) {
	t.Helper()
	if a.status != http.StatusServiceUnavailable || a.body != string(site.Unavailable.Body()) || a.header.Get("Retry-After") != "5" ||
		a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("Cache-Control") != site.NoStore {
		t.Errorf("%s: got %d %v %.200s, want the 503 of the API", what, a.status, a.header, a.body)
	}
}

// Whatever the failure of an origin, its body does not reach the client, it is not
// cached, and cached answers are served on.
func TestNginxFailingOrigins(t *testing.T) {
	t.Parallel()
	o := newOrigins(t)
	const cached, other, root = "/api/v1/lists/8/details", "/api/v1/lists/7/details", "/_site"
	const search = "/api/v1/lists/8/searchFollowing?limit=3"
	for _, fallbackURL := range []string{o.fallback.URL, ""} {
		base := startNginx(t, o.bucket.URL+"/bucket", fallbackURL)
		warm := ask(t, http.MethodGet, base, cached)
		for _, status := range []int64{301, 302, 307, 400, 401, 402, 405, 409, 410, 412, 416, 429, 451, 500, 501, 502, 503, 504, 507, 520} {
			o.bucket.failing.Store(status)
			sameAnswer(t, fmt.Sprint("bucket says ", status, ": cached"), ask(t, http.MethodGet, base, cached), warm)
			for _, path := range []string{other, root, "/api/v1/users/%F0%9F%A6%8Anone.eth/x", "/api/v1/leaderboard/followers?limit=7"} {
				if a := ask(t, http.MethodGet, base, path); a.status != http.StatusNotFound || strings.Contains(a.body, "<") {
					isUnavailable(t, fmt.Sprint("bucket says ", status, ": ", path), a)
				}
			}
			if fallbackURL == "" {
				isUnavailable(t, fmt.Sprint("bucket says ", status, ": fresh"), ask(t, http.MethodGet, base, other+"?cache=fresh"))
			}
		}
		o.bucket.failing.Store(0)
		for _, path := range []string{other, root} {
			sameAnswer(t, "bucket up again", ask(t, http.MethodGet, base, path), o.direct(t, http.MethodGet, path))
		}
		if fallbackURL == "" {
			continue
		}
		for _, status := range []int64{301, 401, 403, 410, 500, 501, 502, 503, 504, 520} {
			o.fallback.failing.Store(status)
			for _, path := range []string{search, "/api/v1/lists/8/details?cache=fresh"} {
				isUnavailable(t, fmt.Sprint("fallback says ", status, ": ", path), ask(t, http.MethodGet, base, path))
			}
		}
		o.fallback.failing.Store(0)
		sameAnswer(t, "fallback up again", ask(t, http.MethodGet, base, search), o.direct(t, http.MethodGet, search))
	}
}

// A bucket that answers 5xx is treated like one that is down: stale answers are served for as long as
// stale-if-error says, and no longer.
func TestNginxStaleWhileFailing(t *testing.T) {
	t.Parallel()
	for _, status := range []int64{429, 500, 502, 503, 504} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			const path, root = "/api/v1/lists/8/details", "/_site"
			o := newOriginsCaching(t, "public, max-age=1, stale-if-error=4")
			base := startNginx(t, o.bucket.URL+"/bucket", "")
			warm, warmRoot := ask(t, http.MethodGet, base, path), ask(t, http.MethodGet, base, root)
			o.bucket.failing.Store(status)
			time.Sleep(2500 * time.Millisecond)
			before := o.bucket.requests.Load()
			for range 3 {
				sameAnswer(t, "stale", ask(t, http.MethodGet, base, path), warm)
				sameAnswer(t, "stale root", ask(t, http.MethodGet, base, root), warmRoot)
			}
			if n := o.bucket.requests.Load() - before; n != 6 {
				t.Errorf("requests to the bucket: got %d, want 6: the answers were not stale", n)
			}
			time.Sleep(4 * time.Second)
			isUnavailable(t, "too stale", ask(t, http.MethodGet, base, path))
			sameAnswer(t, "the root has no bound", ask(t, http.MethodGet, base, root), warmRoot)
			o.bucket.failing.Store(0)
			sameAnswer(t, "bucket up again", ask(t, http.MethodGet, base, path), warm)
		})
	}
}

// Headers of an origin for one client do not reach others.
func TestNginxKeepsHeadersOfOneClient(t *testing.T) {
	t.Parallel()
	o := newOrigins(t)
	personal := func(to string) *origin {
		return newOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Set-Cookie", "session=1")
			w.Header().Set("X-Request-Id", "1")
			a, err := tryAsk(r.Method, to, r.URL.RequestURI())
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			for _, name := range []string{"Cache-Control", "Content-Type", "ETag"} {
				w.Header().Set(name, a.header.Get(name))
			}
			w.WriteHeader(a.status)
			_, _ = io.WriteString(w, a.body)
		}))
	}
	base := startNginx(t, personal(o.bucket.URL).URL+"/bucket", personal(o.fallback.URL).URL)
	for _, path := range []string{"/api/v1/lists/8/details", "/_site", "/api/v1/lists/8/searchFollowing?limit=3", "/api/v1/lists/8/details?cache=fresh"} {
		for range 2 {
			a := ask(t, http.MethodGet, base, path)
			if a.status != http.StatusOK || a.header["Set-Cookie"] != nil || a.header["X-Request-Id"] != nil {
				t.Errorf("%s: got %d %v, want 200 without Set-Cookie and X-Request-Id", path, a.status, a.header)
			}
		}
	}
}

// Requests that nginx refuses itself get a JSON body and the right status.
func TestNginxRefusals(t *testing.T) {
	t.Parallel()
	o := newOrigins(t)
	base := startNginx(t, o.bucket.URL+"/bucket", o.fallback.URL)
	const path = "/api/v1/lists/8/details"
	const empty = "/api/v1/users/0x6363636363636363636363636363636363636363/searchFollowing"
	long := strings.Repeat("x", 40_000)
	get := func(path, headers string) string { return "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n" }
	for _, c := range []struct {
		name, request string
		status        int
	}{
		{"no Host", get(path, ""), 400},
		{"bad Host", get(path, "Host: a/b\r\n"), 400},
		{"two Hosts", get(path, "Host: a\r\nHost: b\r\n"), 400},
		{"no Host, no route", get("/nothing", ""), 404},
		{"no Host, no method", "DELETE " + path + " HTTP/1.1\r\n\r\n", 405},
		{"path above the root", get("/../x", "Host: a\r\n"), 404},
		{"long URL", get("/"+long, "Host: a\r\n"), 414},
		{"long parameters", get(path+"?x="+long, "Host: a\r\n"), 414},
		{"long header", get(path, "Host: a\r\nX: "+long+"\r\n"), 431},
		{"many headers", get(path, "Host: a\r\n"+strings.Repeat("X: "+long[:2000]+"\r\n", 40)), 431},
		{"Transfer-Encoding", get(path, "Host: a\r\nTransfer-Encoding: other\r\n"), 501},
		{"Content-Length", get(path, "Host: a\r\nContent-Length: x\r\n"), 400},
		{"If-Match", get(path, "Host: a\r\nIf-Match: \"x\"\r\n"), 412},
		{"If-Match of the fallback", get(path[:len(path)-7]+"searchFollowing?limit=3", "Host: a\r\nIf-Match: \"x\"\r\n"), 412},
		{"If-Unmodified-Since", get(path, "Host: a\r\nIf-Unmodified-Since: Mon, 02 Nov 2026 00:00:00 GMT\r\n"), 412},
		{"If-Match of an empty search", get(empty, "Host: a\r\nIf-Match: \"x\"\r\n"), 412},
		{"If-Match of a problem", get("/api/v1/lists/404/details", "Host: a\r\nIf-Match: \"x\"\r\n"), 404},
		{"If-Match that holds", get(path, "Host: a\r\nIf-Match: *\r\n"), 200},
		{"version", "GET " + path + " HTTP/3.0\r\nHost: a\r\n\r\n", 505},
	} {
		for range 2 {
			status, header, body := sendRaw(t, base, c.request)
			var p struct{ Status int }
			if err := json.Unmarshal([]byte(body), &p); c.status != 200 && (err != nil || p.Status != c.status ||
				header.Get("Content-Type") != "application/problem+json" || header.Get("Access-Control-Allow-Origin") != "*") {
				t.Errorf("%s: got %v %.100q, want a problem with the right status", c.name, header, body)
			}
			if status != c.status {
				t.Errorf("%s: got status %d, want %d", c.name, status, c.status)
			}
		}
	}
	if a := ask(t, http.MethodGet, base, path); a.status != http.StatusOK {
		t.Errorf("afterwards: got status %d, want 200", a.status)
	}
}

func sendRaw(t testing.TB, base, request string) (int, http.Header, string) {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second)) // it is open
	go func() { _, _ = io.WriteString(connection, request) }()   // nginx may answer before it has read all
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body) // nginx may cut the connection where it did not read all
	return response.StatusCode, response.Header, string(body)
}

// Engines that reuse a context keep the variables of a module for the next request.
func TestNginxDecidesEachRequest(t *testing.T) {
	t.Parallel()
	startNginx(t, "http://127.0.0.1:1", "") // where there are no servers, there is no Node
	script := filepath.Join(render(t, "nginx", "http://127.0.0.1:1", "", "1"), "followpress.js")
	output, err := exec.Command("node", "--input-type=module", "-e", `
		import { readFileSync } from 'node:fs';
		const source = 'data:text/javascript;base64,' + readFileSync(process.argv[1]).toString('base64');
		const { default: script } = await import(source);
		const request = (line) => ({ variables: { request: line, request_uri: line.split(' ')[1] } });
		const lines = ['GET /api/v1/lists/8/details HTTP/1.1', 'GET /api/v1/lists/7/details HTTP/1.1', 'POST /api/v1/lists/7/details HTTP/1.1'];
		console.log(lines.map((line) => script.kind(request(line)) + script.path(request(line))).join(' '));
	`, script).CombinedOutput()
	if want := "object/api/v1/lists/8/details object/api/v1/lists/7/details own\n"; err != nil || string(output) != want {
		t.Errorf("decisions: got %q, want %q (%v)", output, want, err)
	}
}
