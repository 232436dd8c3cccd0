package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
)

// listen serves a handler as the commands do and stops with the test.
func listen(t *testing.T, handler http.Handler) (base string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler, slog.New(slog.DiscardHandler), server.Limits{}) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return "http://" + listener.Addr().String()
}

// Clients that never finish their request are let go, and others do not wait for them.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	handler, err := server.New(context.Background(), storage.NewFolder(demo(t)), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	base := listen(t, handler)
	var slow []net.Conn
	for range 100 {
		conn, err := net.Dial("tcp", base[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET %sdetails HTTP/1.1\r\nHost: x\r\nX-Slow", largeList)
		slow = append(slow, conn)
	}
	if r, _ := request(t, http.MethodGet, base+largeList+"details"); r.StatusCode != 200 {
		t.Errorf("beside slow clients: %d", r.StatusCode)
	}
	for _, conn := range slow {
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1024)
		for {
			if _, err = conn.Read(buf); err != nil {
				break
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a client that does not finish its request is kept for more than 20 s")
		}
	}
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
		t.Errorf("got %q", body)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// What a client sends without the escapes that a URL needs is resolved as it was
// sent: an encoded slash never separates.
func TestPathsAsSent(t *testing.T) {
	handler, err := server.New(context.Background(), storage.NewFolder(demo(t)), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	base := listen(t, handler)
	for path, detail := range map[string]string{
		`/api%2Fv1%2Fusers%2F"%2FsearchFollowing`: "There is nothing at this path.",
		`/api/v1/users/a%2F"/searchFollowing`:     "No account has this name.",
		"/api/v1/users/é.eth/searchFollowing":     "No account has this name.",
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
			t.Errorf("%s: %s", path, answer)
		}
	}
}
