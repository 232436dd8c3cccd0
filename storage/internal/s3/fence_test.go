package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// A contextThatEnds is like a lease: Err reports its end before Done is closed.
type contextThatEnds struct {
	context.Context
	ended atomic.Bool
}

var errEnded = errors.New("it has ended")

func (c *contextThatEnds) Err() error {
	if c.ended.Load() {
		return errEnded
	}
	return c.Context.Err()
}

// After the end of its context, no further byte of a request is sent; the next request is.
func TestNothingIsSentAfterTheEnd(t *testing.T) {
	t.Run("http", func(t *testing.T) { nothingIsSentAfterTheEnd(t, httptest.NewServer, nil) })
	t.Run("https", func(t *testing.T) { nothingIsSentAfterTheEnd(t, httptest.NewTLSServer, nil) })
	t.Run("https through a proxy with https", func(t *testing.T) {
		proxy := httptest.NewTLSServer(http.HandlerFunc(tunnel))
		t.Cleanup(proxy.Close)
		at, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		nothingIsSentAfterTheEnd(t, httptest.NewTLSServer, http.ProxyURL(at))
	})
}

// tunnel answers CONNECT.
func tunnel(w http.ResponseWriter, r *http.Request) {
	to, err := net.Dial("tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
	go io.Copy(from, to) //nolint:errcheck // ends when either side closes
	_, _ = io.Copy(to, from)
}

func nothingIsSentAfterTheEnd(t *testing.T, serve func(http.Handler) *httptest.Server, proxy func(*http.Request) (*url.URL, error)) {
	t.Helper()
	arrived := make(chan int, 100)
	server := serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 1<<10)
		for {
			n, err := r.Body.Read(buffer)
			arrived <- n
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	trusted := x509.NewCertPool()
	if server.TLS != nil {
		trusted.AddCert(server.Certificate()) // all test servers have the same
	}
	client := &http.Client{Transport: fence(&http.Transport{
		DialContext: (&net.Dialer{}).DialContext, Proxy: proxy, TLSClientConfig: &tls.Config{RootCAs: trusted},
	})}
	ask := func(ctx context.Context, body io.Reader) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err == nil {
			response.Body.Close()
		}
		return err
	}

	ctx := &contextThatEnds{Context: t.Context()}
	body, write := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- ask(ctx, body) }()
	if _, err := write.Write([]byte("before")); err != nil {
		t.Fatal(err)
	}
	if n := <-arrived; n != len("before") {
		t.Fatalf("first read: got %d bytes, want %d", n, len("before"))
	}
	ctx.ended.Store(true)
	go func() {
		_, _ = write.Write([]byte("after")) // fails when the request does
		write.Close()                       // ends a request that still runs
	}()
	if err := <-done; !errors.Is(err, errEnded) {
		t.Errorf("request that is under way: got %v, want %v", err, errEnded)
	}
	select {
	case n := <-arrived:
		if n != 0 {
			t.Errorf("after the end: got %d bytes, want none", n)
		}
	case <-time.After(5 * time.Second):
		t.Error("connection after the end of the context: got open, want closed")
	}

	if err := ask(ctx, nil); !errors.Is(err, errEnded) {
		t.Errorf("request after the end: got %v, want %v", err, errEnded)
	}
	if err := ask(t.Context(), nil); err != nil {
		t.Errorf("next request: got %v, want no error", err)
	}
}

// A body returns no byte after the end of its context, however it is read.
func TestABodyIsNotReadAfterTheEnd(t *testing.T) {
	ctx := &contextThatEnds{Context: t.Context()}
	b := newBody(ctx, []byte("followpress"))
	if n, err := b.Read(make([]byte, 6)); n != 6 || err != nil {
		t.Fatalf("before the end: got %d bytes, %v, want 6", n, err)
	}
	ctx.ended.Store(true)
	if n, err := b.Read(make([]byte, 6)); n != 0 || !errors.Is(err, errEnded) {
		t.Errorf("Read: got %d bytes, %v, want none and %v", n, err, errEnded)
	}
	if n, err := b.WriteTo(io.Discard); n != 0 || !errors.Is(err, errEnded) {
		t.Errorf("WriteTo: got %d bytes, %v, want none and %v", n, err, errEnded)
	}
}
