package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

// TestWeb: objects are read with or without a stated size, and failures are told apart.
func TestWeb(t *testing.T) {
	const text = "an object"
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "of another server") }))
	t.Cleanup(other.Close)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	large := strings.Repeat("0123456789", 100_000)
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		most      int64 // admitted size; 0 for any
		want      string
		err       error
		message   string
		temporary bool
	}{
		"with its size": {handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }, want: text},
		"without its size": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, large)
		}, want: large, most: int64(len(large))},
		"asks for the signed site":    {handler: func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X-Signed")) }, want: "only"},
		"empty":                       {handler: status(http.StatusOK)},
		"absent":                      {handler: status(http.StatusNotFound), err: object.ErrNotFound},
		"forbidden":                   {handler: status(http.StatusForbidden), message: "status 403: the object is missing, or the bucket forbids access"},
		"busy":                        {handler: status(http.StatusServiceUnavailable), message: "status 503", temporary: true},
		"too many requests":           {handler: status(http.StatusTooManyRequests), message: "status 429", temporary: true},
		"no content":                  {handler: status(http.StatusNoContent), message: "status 204"},
		"larger than is admitted":     {handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }, most: 3, err: errMost},
		"cut off":                     {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "99") }, message: "EOF", temporary: true},
		"compressed though not asked": {handler: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") }, message: `Content-Encoding "br"`},
		"redirects to another server": {handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
		}, message: "redirects to"},
		"redirects for ever": {handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x"+r.URL.Path, http.StatusFound) }, message: "more than 5 redirects"},
		"redirects on the same server": {handler: func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/there") {
				http.Redirect(w, r, "/there"+r.URL.Path, http.StatusFound)
				return
			}
			_, _ = io.WriteString(w, text)
		}, want: text},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			t.Cleanup(server.Close)
			web := openWeb(t, server.URL+"/prefix/")
			admitted := int64(-1)
			body, err := web.GetAdmitted(t.Context(), "api/v1/lists/1/details", func(_ context.Context, size int64) error {
				admitted = size
				if tc.most > 0 && size > tc.most {
					return errMost
				}
				return nil
			})
			if tc.err == nil && tc.message == "" {
				if err != nil || string(body) != tc.want || admitted != int64(len(tc.want)) {
					t.Errorf("got %d bytes, %v, admitted %d, want %d bytes", len(body), err, admitted, len(tc.want))
				}
				return
			}
			if err == nil || tc.err != nil && !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.message) || object.Temporary(err) != tc.temporary {
				t.Errorf("got %v (temporary: %v), want an error with %q", err, object.Temporary(err), tc.message)
			}
		})
	}
}

var errMost = errors.New("too large")

// TestWebKeepsBounds: an endless body is rejected soon after it exceeds the limit.
func TestWebKeepsBounds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for piece := make([]byte, 1<<10); ; {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	web := openWeb(t, server.URL)
	var most int64
	_, err := web.GetAdmitted(t.Context(), site.RootKey, func(_ context.Context, size int64) error {
		if most = size; size > 1<<10 {
			return errMost
		}
		return nil
	})
	if !errors.Is(err, errMost) || most > 64<<10 {
		t.Errorf("got %v after %d bytes, want it refused after 64 KiB", err, most)
	}
	if _, err := web.Get(t.Context(), site.RootKey); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("Get: got %v, want an end after 64 MiB", err)
	}
}

// TestWebRequests: the path of a request is the escaped key below the site's path, and its headers ask for a plain,
// signed object.
func TestWebRequests(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header.Get("Accept-Encoding"), " ", r.UserAgent(), " ", r.Header.Get("Cookie"))
	}))
	t.Cleanup(server.Close)
	if _, err := openWeb(t, server.URL+"/a/").Get(t.Context(), "b/ü c"); err != nil {
		t.Fatal(err)
	}
	if want := "GET /a/b/%C3%BC%20c identity followpress "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func openWeb(t *testing.T, text string) *Site {
	t.Helper()
	web, err := Open(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = web.Close() })
	return web
}

// A server that sends one byte a second fails after half a minute, also object by object or within a header. One that
// sends 2 KiB a second, or waits long before each small object, does not.
func TestSlowServers(t *testing.T) {
	const kib = 1 << 10
	for _, tt := range []struct {
		name              string
		header            bool // it sends the header byte by byte
		size, piece       int
		pause, before     time.Duration
		objects           int
		says              string
		atLeast, lessThan time.Duration
	}{
		{"a byte a second", false, kib, 1, time.Second, 0, 1, "less than 1 KiB/s", 30 * time.Second, 33 * time.Second},
		{"small objects, a byte a second", false, 20, 1, time.Second, 0, 50, "less than 1 KiB/s", 30 * time.Second, 60 * time.Second},
		{"nothing after the first byte", false, kib, 1, time.Hour, 0, 1, "less than 1 KiB/s", 30 * time.Second, 33 * time.Second},
		{"a header, a byte a second", true, 1, 1, 0, 0, 1, "timeout awaiting response headers", 30 * time.Second, 33 * time.Second},
		{"no header", false, 1, 1, 0, time.Hour, 1, "timeout awaiting response headers", 30 * time.Second, 33 * time.Second},
		{"2 KiB a second", false, 100 * kib, 2 * kib, time.Second, 0, 2, "", 99 * time.Second, 102 * time.Second},
		{"20 s before each small object", false, 100, 100, 0, 20 * time.Second, 10, "", 200 * time.Second, 201 * time.Second},
	} {
		for _, sized := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, sized: %t", tt.name, sized), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var servers sync.WaitGroup
					serve := func(conn net.Conn) {
						defer func() { _ = conn.Close() }()
						for from := bufio.NewReader(conn); ; {
							if _, err := http.ReadRequest(from); err != nil {
								return
							}
							time.Sleep(tt.before)
							header := "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
							if sized {
								header = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", tt.size)
							}
							piece, pause := len(header), time.Duration(0)
							if tt.header {
								piece, pause = 1, time.Second
							}
							if !drip(conn, header, piece, pause) || !drip(conn, strings.Repeat("x", tt.size), tt.piece, tt.pause) {
								return
							}
							if !sized {
								return
							}
						}
					}
					web := openWeb(t, "http://site.example")
					web.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
						client, server := net.Pipe()
						servers.Go(func() { serve(server) })
						return client, nil
					}
					begun := time.Now()
					var err error
					for i := 0; i < tt.objects && err == nil; i++ {
						_, err = web.Get(t.Context(), site.RootKey)
					}
					took := time.Since(begun)
					if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
						t.Errorf("got %v, want %q", err, tt.says)
					}
					if took < tt.atLeast || took > tt.lessThan {
						t.Errorf("it took %s, want %s to %s", took, tt.atLeast, tt.lessThan)
					}
					if err := web.Close(); err != nil {
						t.Error(err)
					}
					servers.Wait()
				})
			})
		}
	}
}

// drip writes a text piece by piece. It returns false if nobody reads it.
func drip(to io.Writer, text string, piece int, pause time.Duration) bool {
	for len(text) > 0 {
		n := min(piece, len(text))
		if _, err := io.WriteString(to, text[:n]); err != nil {
			return false
		}
		text = text[n:]
		time.Sleep(pause)
	}
	return true
}
