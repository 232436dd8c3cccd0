package edge_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

// With an address, Caddy listens there alone, and answers every host name.
func TestCaddyListens(t *testing.T) {
	for listen, want := range map[string]string{
		"8080": "http://:8080 {\n\t#", "*:8080": "http://:8080 {\n\t#", "0.0.0.0:8080": "http://:8080 {\n\t#", "[::]:8080": "http://:8080 {\n\t#",
		"127.0.0.1:8080": "http://:8080 {\n\tbind 127.0.0.1\n", "[::1]:8080": "http://:8080 {\n\tbind ::1\n",
		"api.example.org:8080": "http://api.example.org:8080 {\n\t#", "api:80": "http://api:80 {\n\t#", "8080.example": "https://8080.example {\n\t#",
		"api.example.org": "https://api.example.org {\n\t#", "API.example.org:443": "https://api.example.org {\n\t#", "localhost:443": "https://localhost {\n\t#",
	} {
		o := edge.Options{Config: siteConfig(t), Bucket: "http://bucket", Listen: listen}
		if file := renderAll(t, edge.Caddy, o)["Caddyfile"]; !strings.Contains(file, want) {
			t.Errorf("--listen %s: got %s, want %q", listen, file, want)
		}
	}
	o := newOrigins(t)
	base := startCaddy(t, o.bucket.URL+"/bucket", o.fallback.URL)
	const path = "/api/v1/lists/1/details"
	request, err := http.NewRequest(http.MethodGet, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "api.example.org"
	got, err := do(request)
	if err != nil {
		t.Fatal(err)
	}
	sameAnswer(t, "another host", got, o.answer(path))
	elsewhere := strings.Replace(strings.TrimPrefix(base, "http://"), "127.0.0.1", "127.0.0.2", 1)
	if conn, err := net.DialTimeout("tcp", elsewhere, time.Second); err == nil {
		conn.Close()
		t.Errorf("%s: got a connection, want Caddy at 127.0.0.1 alone", elsewhere)
	}
}

// An address that no edge can serve is refused before any file is written, with the remedy.
func TestListenRefuses(t *testing.T) {
	both := []edge.Kind{edge.Nginx, edge.Caddy}
	for listen, c := range map[string]struct {
		kinds []edge.Kind
		want  string
	}{
		"0": {both, "no port"}, "65536": {both, "no port"}, "-1": {both, "no port"}, "127.0.0.1": {both, "no port"}, "[::1]": {both, "no port"}, ":": {both, "no port"},
		"api.example.org:": {both, "no port"}, "api.example.org:http": {both, "no port"}, "8080 {": {both, "no port"},
		"*.example.org": {both, "no port"}, "*.example.org:443": {both, "neither"}, "api..example.org:80": {both, "neither"}, "-api.example.org:80": {both, "neither"},
		"a_b.example.org:80": {both, "neither"}, "api.example.org.:80": {both, "neither"}, "1.2.3:80": {both, "neither"}, "256.1.1.1:80": {both, "neither"},
		"::1:80": {both, "neither"}, "[127.0.0.1]:80": {both, "neither"}, "[fe80::1%eth0]:80": {both, "neither"}, "bücher.example:80": {both, "neither"},
		strings.Repeat("a.", 130) + "org:80": {both, "neither"}, "a;b:80": {both, "neither"}, "https://api.example.org": {both, "no port"}, "a\nb:80": {both, "neither"},
		"443": {both, "needs a name"}, "127.0.0.1:443": {both, "needs a name"}, "*:443": {both, "needs a name"},
		"api:443": {both[1:], "no authority"}, "api": {both[1:], "no authority"},
		"api.example.org:8080": {both[:1], "answers for every name"}, "api.example.org": {both[:1], "no certificate"}, "localhost:443": {both[:1], "no certificate"},
	} {
		for _, kind := range c.kinds {
			_, err := edge.Render(kind, edge.Options{Config: siteConfig(t), Bucket: "http://bucket", Listen: listen})
			if err == nil || !strings.Contains(err.Error(), "--listen") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, --listen %q: got %v, want an error with %q", kind, listen, err, c.want)
			}
		}
	}
	for listen, want := range map[string]string{
		"8080": "8080", ":8080": "8080", "*:8080": "8080", "0.0.0.0:8080": "0.0.0.0:8080", "[::1]:08080": "[::1]:8080", "localhost:8080": "localhost:8080",
	} {
		file := renderAll(t, edge.Nginx, edge.Options{Config: siteConfig(t), Bucket: "http://bucket", Listen: listen})["followpress.conf"]
		if !strings.Contains(file, "    listen "+want+";\n") {
			t.Errorf("nginx, --listen %s: got no listen %s", listen, want)
		}
	}
}

// Caddy serves a name with TLS, live or not, and leads there from plain HTTP. The test changes its ports and its authority alone.
func TestCaddyServesName(t *testing.T) {
	servers.Wanted(t)
	o := newOrigins(t)
	const path = "/api/v1/lists/1/details"
	for what, change := range map[string]func(*edge.Options){"stored": func(*edge.Options) {}, "live": before(o.liveOf(t))} {
		plain, secure := servers.FreeAddress(t), servers.FreeAddress(t)
		port := func(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
		dir := render(t, "caddy", o.bucket.URL+"/bucket", o.fallback.URL, "api.example.org", change)
		file := filepath.Join(dir, "Caddyfile")
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "Caddyfile", "{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\thttp_port "+port(plain)+"\n\thttps_port "+port(secure)+
			"\n\tstorage file_system "+dir+"\n}\n"+string(body))
		servers.Program(t, secure, "env", "XDG_CONFIG_HOME="+dir, "caddy", "run", "--adapter", "caddyfile", "--config", file)
		over := &http.Client{Timeout: 20 * time.Second, CheckRedirect: client.CheckRedirect, Transport: &http.Transport{
			DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the authority is Caddy's own
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, map[string]string{"80": plain, "443": secure}[port(address)])
			},
		}}
		response, err := over.Get("https://api.example.org" + path)
		for begun := time.Now(); err != nil && time.Since(begun) < 20*time.Second; { // Caddy makes its certificates after the start
			time.Sleep(50 * time.Millisecond)
			response, err = over.Get("https://api.example.org" + path)
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		_ = response.Body.Close() // its headers say enough
		if isLive := response.Header.Get("X-Heads") != ""; response.StatusCode != http.StatusOK || isLive != (what == "live") {
			t.Errorf("%s: got %d %v, want the answer", what, response.StatusCode, response.Header)
		}
		response, err = over.Get("http://api.example.org" + path)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		_ = response.Body.Close() // it has none
		if to := response.Header.Get("Location"); response.StatusCode/100 != 3 || to != "https://api.example.org"+path {
			t.Errorf("%s, plain HTTP: got %d to %q, want a redirect to https", what, response.StatusCode, to)
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
