package edge_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

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
