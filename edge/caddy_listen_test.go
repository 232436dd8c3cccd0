package edge_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/edge"
)

// Caddy that is to listen at an address does so there alone, and answers whatever host the client names.
func TestCaddyListens(t *testing.T) {
	for listen, want := range map[string]string{
		"8080": "http://:8080 {\n\t#", "*:8080": "http://:8080 {\n\t#", "0.0.0.0:8080": "http://:8080 {\n\t#", "[::]:8080": "http://:8080 {\n\t#",
		"127.0.0.1:8080": "http://:8080 {\n\tbind 127.0.0.1\n", "[::1]:8080": "http://:8080 {\n\tbind ::1\n",
		"api.example.org:8080": "http://api.example.org:8080 {\n\t#",
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
