package edge_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
)

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
	go func() {
		method, _, _ := strings.Cut(line, " ")
		response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
		if err != nil {
			answered <- answer{body: err.Error()}
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body) // the connection may be cut behind the answer
		answered <- answer{response.StatusCode, response.Header, string(body)}
	}()
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
