package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// framings are headers of a client that say where its request ends, or that it is to become something else, with what
// follows them.
var framings = []string{
	"Content-Length: 4\r\n\r\nbody",
	"Content-Length: 28\r\n\r\nGET /_site HTTP/1.1\r\nHost: x",
	"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
	"Expect: 100-continue\r\nContent-Length: 4\r\n\r\nbody",
	"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	"Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody!",
	"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
}

// No edge tells an origin how a client frames a request that has no body for the origin: the origin would wait for the
// body, or take the next client's request for it.
func TestFramingStaysAtTheEdge(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		for name, waits := range map[string]bool{"an origin that waits for bodies": true, "an origin that answers early": false} {
			o := newOrigins(t)
			watched := func(h http.Handler) *origin {
				return newOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.ContentLength != 0 || len(r.TransferEncoding) > 0 || r.Header.Get("Expect")+r.Header.Get("Upgrade") != "" {
						t.Errorf("%s: %s %s: got %d bytes, %v, %v, want nothing of the client's framing", name, r.Method, r.URL, r.ContentLength, r.TransferEncoding, r.Header)
					}
					if waits {
						_, _ = io.Copy(io.Discard, r.Body) // a body that does not come ends in an error
					}
					h.ServeHTTP(w, r)
				}))
			}
			bucket, fallback := watched(o.bucket.Config.Handler), watched(o.handler)
			configs.Store(bucket.URL+"/bucket", o.config)
			base := s.start(t, bucket.URL+"/bucket", fallback.URL)
			n := 0
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
				for _, framing := range framings {
					n++
					for _, path := range []string{
						fmt.Sprintf("/api/v1/lists/%d/details", n), fmt.Sprintf("/api/v1/lists/8/searchFollowing?limit=%d&offset=1", n), "/api/v1/lists/1/details?cache=fresh",
					} {
						if a := sendFramed(t, base, method+" "+path, framing); a.status == 0 || a.status == http.StatusServiceUnavailable { // workerd says 500 to two lengths
							t.Errorf("%s: %s %s, %q: got %d %s, want an answer", name, method, path, framing, a.status, a.body)
						}
						other := fmt.Sprintf("/api/v1/lists/8/searchFollowing?limit=%d&offset=2", n)
						sameAnswer(t, name+": another client, after "+framing, ask(t, http.MethodGet, base, other), o.answer(other), s.unseen...)
					}
				}
			}
			if bucket.requests.Load() == 0 || fallback.requests.Load() == 0 {
				t.Errorf("%s: got %d and %d requests to the origins, want some", name, bucket.requests.Load(), fallback.requests.Load())
			}
		}
	}, "cloudfront") // its function alone runs here; a service frames what it sends itself
}

// sendFramed sends a request as it stands, and returns the first answer that is final.
func sendFramed(t *testing.T, base, line, framing string) answer {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, line+" HTTP/1.1\r\nHost: "+conn.RemoteAddr().String()+"\r\n"+framing); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(line, " ")
	reader := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			return answer{body: err.Error()}
		}
		if response.StatusCode == http.StatusContinue {
			continue
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body) // the connection may be cut behind the answer
		return answer{response.StatusCode, response.Header, string(body)}
	}
}
