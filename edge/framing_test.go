package edge_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
)

// framings are client headers that set the length of the request or ask for an upgrade, followed by
// the rest of the request.
var framings = []string{
	"Content-Length: 4\r\n\r\nbody",
	"Content-Length: 28\r\n\r\nGET /_site HTTP/1.1\r\nHost: x",
	"Content-Length: 32\r\n\r\nGET /_site HTTP/1.1\r\nHost: x\r\n\r\n",
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
			bucket, fallback, live := watched(o.bucket.Config.Handler), watched(o.handler), watched(o.liveOf(t).Config.Handler)
			configs.Store(bucket.URL+"/bucket", o.config)
			sendFramings(t, name, s.start(t, bucket.URL+"/bucket", fallback.URL), o, s.unseen)
			if live.requests.Load() > 0 || bucket.requests.Load() == 0 || fallback.requests.Load() == 0 {
				t.Errorf("%s: got %d and %d requests to the origins, want some", name, bucket.requests.Load(), fallback.requests.Load())
			}
			// Its answers have another Cache-Control.
			sendFramings(t, name+", live", s.start(t, bucket.URL+"/bucket", fallback.URL, before(live)), o, append([]string{"Cache-Control"}, s.unseen...))
			if live.requests.Load() == 0 {
				t.Errorf("%s: got no request to live, want some", name)
			}
		}
	})
}

// sendFramings sends requests with every framing, and after each one of another client.
func sendFramings(t *testing.T, name, base string, o *origins, unseen []string) {
	t.Helper()
	n := 0
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
		for _, framing := range framings {
			if t.Failed() { // an edge that is wrong waits for a quarter of a minute each time
				return
			}
			n++
			for _, path := range []string{
				fmt.Sprintf("/api/v1/lists/%d/details", n), fmt.Sprintf("/api/v1/lists/8/searchFollowing?limit=%d&offset=1", n), "/api/v1/lists/1/details?cache=fresh",
			} {
				if a := sendRaw(t, base, method+" "+path+" HTTP/1.1\r\nHost: x\r\n"+framing); a.status == 0 || a.status == http.StatusServiceUnavailable { // workerd says 500 to two lengths
					t.Errorf("%s: %s %s, %q: got %d %s, want an answer", name, method, path, framing, a.status, a.body)
				}
				other := fmt.Sprintf("/api/v1/lists/8/searchFollowing?limit=%d&offset=2", n)
				sameAnswer(t, name+": another client, after "+framing, ask(t, http.MethodGet, base, other), o.answer(other), unseen...)
			}
		}
	}
}

// The servers behind edges, serve and live, ignore bodies, and never read one as a second request.
func TestFramingOfServers(t *testing.T) {
	o := newOrigins(t)
	for name, handler := range map[string]http.Handler{"serve": o.handler, "live": o.liveOf(t).Config.Handler} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(ctx, listener, handler, slog.New(slog.DiscardHandler)) }()
		base := "http://" + listener.Addr().String()
		sendFramings(t, name, base, o, []string{"Cache-Control"})
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
			for _, framing := range framings {
				if all := answersTo(t, base, method+" /_site", framing); all != 1 {
					t.Errorf("%s: %s, %q: got %d answers, want one", name, method, framing, all)
				}
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// answersTo counts the final answers to a request and what follows it, until the connection is closed or nothing comes.
func answersTo(t *testing.T, base, line, framing string) (n int) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, line+" HTTP/1.1\r\nHost: x\r\n"+framing); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(line, " ")
	reader := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			return n
		}
		if response.StatusCode != http.StatusContinue {
			n++
		}
		_, _ = io.Copy(io.Discard, response.Body) // the connection may be cut behind the answer
		_ = response.Body.Close()
	}
}

// sendRaw sends a request as it stands, and returns the first answer that is final, or the error as a body.
func sendRaw(t testing.TB, base, request string) answer {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	go func() { _, _ = io.WriteString(conn, request) }() // a server may answer before it has read all
	return finalAnswer(conn, request)
}

// finalAnswer reads the first answer to a request that is final.
func finalAnswer(from io.Reader, request string) answer {
	method, _, _ := strings.Cut(request, " ")
	reader := bufio.NewReader(from)
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

// mostSent is how much of a body is sent: more than any buffer holds.
const mostSent = 4 << 20

// A body without end, of any method and to any path, gets an answer in JSON: no edge waits for all of it.
func TestEndlessBodies(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		if s.kind == "cloudfront" {
			return // CloudFront takes no body with a GET, and its functions see none
		}
		for _, o := range []*origins{newOrigins(t), newOriginsEFP(t, site.NamesCopies)} {
			base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
			for _, method := range []string{"GET", "PUT", "POST", "PROPFIND"} {
				for _, path := range []string{
					"/api/v1/lists/1/records", "/api/v1/lists/1/searchFollowing?limit=3", "/api/v1/lists/1/buttonStateBatch", "/nothing",
				} {
					for _, framing := range []string{"Transfer-Encoding: chunked", fmt.Sprint("Content-Length: ", 1<<40)} {
						what := method + " " + path + ", " + framing
						a := sendEndless(t, base, method+" "+path, framing)
						if a.status == 0 || !json.Valid([]byte(a.body)) {
							t.Errorf("%s: got %d, %q, want an answer in JSON", what, a.status, a.body)
						}
						refused := s.kind == "nginx"
						if refused && (a.status != 413 || a.body != string(site.BodyTooLarge.Body()) ||
							a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("Access-Control-Allow-Origin") != "*") {
							t.Errorf("%s: got %d %v %s, want the 413 of the API", what, a.status, a.header, a.body)
						}
					}
				}
			}
		}
	})
}

// sendEndless sends the head of a request, and a body until the answer comes or mostSent bytes are sent.
func sendEndless(t *testing.T, base, line, framing string) answer {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, line+" HTTP/1.1\r\nHost: "+conn.RemoteAddr().String()+"\r\n"+framing+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan answer, 1)
	go func() { answered <- finalAnswer(conn, line) }()
	piece := strings.Repeat("x", 64<<10)
	if strings.HasPrefix(framing, "Transfer") {
		piece = fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
	}
	for sent := 0; sent < mostSent; {
		select {
		case a := <-answered:
			return a
		default:
		}
		_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // a full connection does not keep the answer waiting
		n, err := io.WriteString(conn, piece[sent%len(piece):])
		sent += n
		if err != nil && !isTimeout(err) {
			break
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	return <-answered
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
