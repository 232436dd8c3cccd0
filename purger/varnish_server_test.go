package purger

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/servers"
)

// vcl is the least that a VCL needs; the tests of the package edge purge the one that we generate.
const vcl = `vcl 4.1;
import std;
backend default { .host = "127.0.0.1"; .port = "%s"; }
acl purgers { "127.0.0.1"; }
sub vcl_recv {
	if (req.method == "BAN") {
		if (client.ip !~ purgers) {
			return (synth(403));
		}
		if (!std.ban("obj.http.X-Url ~ " + req.http.X-Ban-Url)) {
			return (synth(400, std.ban_error()));
		}
		return (synth(200));
	}
}
sub vcl_backend_response {
	set beresp.http.X-Url = bereq.url;
	set beresp.ttl = 1h;
}
sub vcl_deliver { unset resp.http.X-Url; }
`

// startVarnish gives the URL of a Varnish in front of an origin.
func startVarnish(t *testing.T, origin string) string {
	t.Helper()
	program, err := exec.LookPath("varnishd")
	if err != nil {
		t.Skip("needs varnishd: `make test` installs and runs it")
	}
	folder := t.TempDir()
	_, port, _ := strings.Cut(strings.TrimPrefix(origin, "http://"), ":")
	if err := os.WriteFile(filepath.Join(folder, "test.vcl"), fmt.Appendf(nil, vcl, port), 0o600); err != nil {
		t.Fatal(err)
	}
	address := servers.FreeAddress(t)
	servers.Listen(t, address, exec.Command(program, "-F", "-j", "none", "-n", filepath.Join(folder, "varnish"), "-a", address, "-f", filepath.Join(folder, "test.vcl")))
	return "http://" + address
}

// A real Varnish accepts the expressions, of any length, and bans what they match and
// nothing else.
func TestVarnishItself(t *testing.T) {
	var n atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, n.Add(1)) }))
	t.Cleanup(origin.Close)
	cache := startVarnish(t, origin.URL)
	get := func(uri string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cache+uri, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque, _, _ = strings.Cut(uri, "?") // as browsers send it, not as net/url spells it
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response.Status, err)
		}
		return string(body)
	}
	p, err := New("varnish:"+cache, Options{Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	what := Purge{
		Exact: append(many(1000), "/api/v1/lists/7/records", "/api/v1/lists/7/records?includeTags=false"),
		Wide:  []string{"/api/v1/lists/7/searchFollowing", "/api/v1/users/a%22%26%26b'c&&d(e)%20/searchFollowing", "/api/v1/users/a[b]~|'c.eth/searchFollowing", "/_variants/leaderboard/followers/"},
		Each:  []string{"/api/v1/users/*/commonFollowers", "/api/v1/lists/8/*/buttonState"},
	}
	goes := []string{"/api/v1/lists/0/details", "/api/v1/lists/999/details", "/api/v1/lists/7/records", "/api/v1/lists/7/records?includeTags=false",
		"/api/v1/lists/7/searchFollowing?term=x", "/api/v1/users/a%22%26%26b'c&&d(e)%20/searchFollowing", "/api/v1/users/a[b]~|'c.eth/searchFollowing", "/_variants/leaderboard/followers/limit=5",
		"/api/v1/users/b%C3%BCb/commonFollowers?leader=x", "/api/v1/lists/8/bob/buttonState"}
	stays := []string{"/api/v1/users/bob/x/commonFollowers", "/api/v1/users/bob/stats", "/api/v1/lists/9/bob/buttonState", "/api/v1/lists/8/bob/buttonStates", "/api/v1/lists/1000/details", "/api/v1/lists/70/records", "/api/v1/lists/7/records2", "/_variants/leaderboard/following/limit=5"}
	before := map[string]string{}
	for _, uri := range append(goes, stays...) {
		if before[uri] = get(uri); get(uri) != before[uri] {
			t.Fatalf("%s: got it from the server, want it cached", uri)
		}
	}
	mustPurge(t, p, what)
	for _, uri := range goes {
		if get(uri) == before[uri] {
			t.Errorf("%s: got it from the cache, want it purged", uri)
		}
	}
	for _, uri := range stays {
		if get(uri) != before[uri] {
			t.Errorf("%s: got it from the server, want it still cached", uri)
		}
	}
	mustPurge(t, p, Everything())
	for _, uri := range stays {
		if get(uri) == before[uri] {
			t.Errorf("%s: got it from the cache after purging everything, want it purged", uri)
		}
	}
}
