package server_test

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
	"github.com/followpress/followpress/storage"
)

// listen serves a handler as the commands do and stops with the test.
func listen(t *testing.T, handler http.Handler) (base string) {
	t.Helper()
	return listenWithin(t, handler, server.Limits{})
}

func listenWithin(t *testing.T, handler http.Handler, limits server.Limits) (base string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.ServeWithin(ctx, listener, handler, slog.New(slog.DiscardHandler), limits) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve: got %v, want no error", err)
		}
	})
	return "http://" + listener.Addr().String()
}

// Requests under way are answered before Serve returns.
func TestServeDrains(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	begun := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		time.Sleep(200 * time.Millisecond)
		fmt.Fprint(w, "done")
	})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler, slog.New(slog.DiscardHandler)) }()
	go func() {
		<-begun
		stop()
	}()
	if _, body := request(t, http.MethodGet, "http://"+listener.Addr().String()); body != "done" {
		t.Errorf("got %q, want done", body)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: got %v, want no error", err)
	}
}

// A path with missing escapes is resolved as it was sent: an encoded slash is never a
// separator.
func TestPathsAsSent(t *testing.T) {
	handler := newHandler(t, storage.NewFolder(demo(t)), server.Options{})
	base := listen(t, handler)
	for path, detail := range map[string]string{
		`/api%2Fv1%2Fusers%2F"%2FsearchFollowing`: "There is nothing at this path.",
		`/api/v1/users/a%2F"/searchFollowing`:     site.NoSuchName.Detail,
		"/api/v1/users/é.eth/searchFollowing":     site.NoSuchName.Detail,
		"/api/v1/users/0x123/searchFollowing":     "An address is 0x and 40 hexadecimal digits.",
	} {
		conn, err := net.Dial("tcp", base[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
		answer, err := io.ReadAll(conn)
		if err := errors.Join(err, conn.Close()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(answer), detail) {
			t.Errorf("%s: got %s, want a problem that says %q", path, answer, detail)
		}
	}
}

// A client that has closed its side of the connection may still read: it gets the
// answer, not an empty one.
func TestHalfClosedClients(t *testing.T) {
	slow := slowStore{storage.NewFolder(demo(t)), 100 * time.Millisecond}
	handler := newHandler(t, slow, server.Options{})
	base := listen(t, handler)
	for range 2 { // from the store, then from the cache
		conn, err := net.Dial("tcp", base[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %sdetails HTTP/1.1\r\nHost: x\r\n\r\n", largeList)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err := errors.Join(err, conn.Close()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(answer), "Cache-Control: ") || !strings.HasSuffix(string(answer), "}") {
			t.Errorf("got %q, want a whole answer", answer)
		}
	}
}

// A slowStore takes its time.
type slowStore struct {
	server.Store
	takes time.Duration
}

func (s slowStore) Get(ctx context.Context, key site.Key) ([]byte, error) {
	time.Sleep(s.takes)
	return s.Store.Get(ctx, key)
}

// What net/http refuses before there is a request gets a problem too, in JSON and with the headers of every answer.
func TestRefusedRequestsGetProblems(t *testing.T) {
	base := serve(t, storage.NewFolder(demo(t)))
	const good = "GET /api/v1/leaderboard/followers HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		sent   string
		status int
		detail string
	}{
		"percent at the end":     {"GET /api/v1/users/100%/stats HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		"percent and one digit":  {"GET /api/v1/users/%4/searchFollowing HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		"percent and letters":    {"GET /%zz?limit=1 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		"HEAD":                   {"HEAD /api/v1/users/100%/stats HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		"POST with a body":       {"POST /api/v1/lists/1%/buttonStateBatch HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]", 400, "malformed"},
		"no Host":                {"GET / HTTP/1.1\r\n\r\n", 400, "missing required Host header"},
		"bad Host":               {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "malformed Host header"},
		"header without a colon": {"GET / HTTP/1.1\r\nHost: x\r\nx\r\n\r\n", 400, "malformed"},
		"header value":           {"GET / HTTP/1.1\r\nHost: x\r\nX: \x01\r\n\r\n", 400, "malformed"},
		"no HTTP":                {"hello\r\n\r\n", 400, "malformed"},
		"two lengths":            {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400, "malformed"},
		"long headers":           {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 431, "too long"},
		"long URL":               {"GET /" + strings.Repeat("x", 20<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431, "too long"},
		"transfer encoding":      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "transfer encoding"},
		"version":                {"GET / HTTP/3.1\r\nHost: x\r\n\r\n", 505, "protocol version"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", base[len("http://"):])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// Two good requests before it, the second in one packet with it.
			answers := bufio.NewReader(conn)
			for _, sent := range []string{good, good + c.sent} {
				if _, err := io.WriteString(conn, sent); err != nil {
					t.Fatal(err)
				}
				response, body := nextAnswer(t, answers)
				if response.StatusCode != http.StatusOK || !json.Valid([]byte(body)) {
					t.Fatalf("before it: got %d %q, want the leaderboard", response.StatusCode, body)
				}
			}
			response, body := nextAnswer(t, answers)
			var problem struct {
				Type, Title, Detail, Response string
				Status                        int
			}
			err = json.Unmarshal([]byte(body), &problem)
			if err != nil || response.StatusCode != c.status || problem.Status != c.status || problem.Type != "about:blank" ||
				problem.Title != http.StatusText(c.status) || problem.Response != problem.Detail || !strings.Contains(problem.Detail, c.detail) {
				t.Errorf("got %d %q, %v, want a problem %d that says %q", response.StatusCode, body, err, c.status, c.detail)
			}
			for name, want := range map[string]string{
				"Content-Type": "application/problem+json", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "nosniff",
			} {
				if got := response.Header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if rest, err := io.ReadAll(answers); !response.Close || len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("after it: got %q, %v, closing %t, want nothing and the end", rest, err, response.Close)
			}
		})
	}
}

func nextAnswer(t *testing.T, answers *bufio.Reader) (*http.Response, string) {
	t.Helper()
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// A handler's own text is left as it is, and so is a file that the kernel sends.
func TestHandlersTextsAreLeft(t *testing.T) {
	const text = "400 Bad Request"
	base := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/file" {
			http.ServeFile(w, r, "serve_test.go")
			return
		}
		http.Error(w, text, http.StatusBadRequest)
	}))
	if response, body := request(t, http.MethodGet, base); response.StatusCode != 400 || body != text+"\n" {
		t.Errorf("got %d %q, want the handler's own", response.StatusCode, body)
	}
	if _, body := request(t, http.MethodGet, base+"/file"); !strings.HasSuffix(body, "}\n") {
		t.Errorf("got %.100q, want the file", body)
	}
}
