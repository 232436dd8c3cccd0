package edge_test

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
)

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
			a := sendRaw(t, base, c.request)
			var p struct{ Status int }
			if err := json.Unmarshal([]byte(a.body), &p); c.status != 200 && (err != nil || p.Status != c.status ||
				a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("Access-Control-Allow-Origin") != "*") {
				t.Errorf("%s: got %v %.100q, want a problem with the right status", c.name, a.header, a.body)
			}
			if a.status != c.status {
				t.Errorf("%s: got status %d, want %d", c.name, a.status, c.status)
			}
		}
	}
	if a := ask(t, http.MethodGet, base, path); a.status != http.StatusOK {
		t.Errorf("afterwards: got status %d, want 200", a.status)
	}
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

// nginx stores no body on the disk, not even one that it accepts.
func TestNginxStoresNoBody(t *testing.T) {
	t.Parallel()
	o := newOriginsEFP(t, site.NamesCopies)
	var state string
	base := runNginx(t, oneProcess, o.bucket.URL+"/bucket", o.fallback.URL, func(o *edge.Options) { state = o.CacheDir + "-state" })
	for _, path := range []string{"/api/v1/lists/1/records", "/nothing", "/api/v1/lists/1/buttonStateBatch"} {
		for _, framing := range []string{"Transfer-Encoding: chunked\r\n\r\n1f000\r\n", "Content-Length: 131072\r\n\r\n"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// All but the end, so that nginx has it and waits.
			if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+framing+strings.Repeat("x", 120<<10)); err != nil {
				t.Fatal(err)
			}
		}
	}
	time.Sleep(200 * time.Millisecond) // for what must not happen
	err := filepath.WalkDir(state, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != "current" {
			t.Errorf("got the file %s, want none of bodies", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
