package server_test

import (
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
	go func() { ended <- server.Serve(ctx, listener, handler, slog.New(slog.DiscardHandler), limits) }()
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
	go func() { ended <- server.Serve(ctx, listener, handler, slog.New(slog.DiscardHandler), server.Limits{}) }()
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
	handler, err := server.New(context.Background(), storage.NewFolder(demo(t)), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
	handler, err := server.New(context.Background(), slow, server.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
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
