package eventlog

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/followpress/followpress/source/bundle"
	"github.com/followpress/followpress/storage"
)

// TestCodings: a server that compresses what it may gives the object as it is; one that compresses whatever it is asked
// for is named, since its answer is not what the index has a digest of.
func TestCodings(t *testing.T) {
	const object = "an object of a log"
	for name, tc := range map[string]struct {
		always bool
		want   string
	}{
		"if it may": {},
		"always":    {always: true, want: `Content-Encoding "gzip"`},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !tc.always && r.Header.Get("Accept-Encoding") == "identity" {
					_, _ = io.WriteString(w, object)
					return
				}
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				_, _ = io.WriteString(z, object)
				_ = z.Close()
			}))
			t.Cleanup(server.Close)
			fetch, closeFetch, err := Open(t.Context(), server.URL, storage.S3Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = closeFetch() }()
			body, err := fetch(t.Context(), bundle.IndexName, bundle.MaxIndex)
			switch {
			case tc.want == "" && (err != nil || string(body) != object):
				t.Errorf("got %q, %v, want the object", body, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %q, %v, want an error with %s", body, err, tc.want)
			}
		})
	}
}

// TestStatusText: what a server writes beside its status, as to a terminal, is in no error.
func TestStatusText(t *testing.T) {
	for _, code := range []string{"403", "404"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 "+code+" \x1b[2Jgone\r\nContent-Length: 0\r\n\r\n")
			_ = c.Close()
		}))
		fetch, closeFetch, err := Open(t.Context(), server.URL, storage.S3Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = fetch(t.Context(), bundle.IndexName, bundle.MaxIndex)
		if err == nil || !strings.Contains(err.Error(), "status "+code) || strings.Contains(err.Error(), "gone") {
			t.Errorf("got %q, want status %s and no text of the server", err, code)
		}
		_ = closeFetch()
		server.Close()
	}
}
