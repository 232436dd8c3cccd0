package checked_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// In a public bucket without listing, behind a server that does not state sizes, missing objects are forbidden, and
// objects of any size are accepted.
func TestPublicBucketThatStreams(t *testing.T) {
	p := testkey.New(t, origin)
	large := detailsOf(7)
	config, err := site.Config{BasePath: "api/v1"}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	body := string(bytes.Repeat([]byte("x"), 300_000))
	s := memsite.New(t, site.Root{Format: site.Format, AsOf: "2026-11-01T00:00:00Z", Config: config, BucketDigits: 1, ShardDigits: 1},
		map[site.Key]string{large: body, detailsOf(8): "8"})
	folder := newBucket(t, p.Sign(t, s, 1)).folder
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(r.URL.Path)))
		if err != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.(http.Flusher).Flush() // no Content-Length
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	for name, keys := range map[string]note.Keys{"with a key": p.Keys, "without": {}} {
		t.Run(name, func(t *testing.T) {
			web, err := storage.OpenPublished(t.Context(), server.URL, storage.S3Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer web.Close()
			opened, err := checked.Open(context.Background(), web, keys, checked.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range map[site.Key]string{large: body, detailsOf(8): "8"} {
				var admitted int64
				got, err := opened.GetAdmitted(context.Background(), key, func(_ context.Context, size int64) error {
					admitted += size
					return nil
				})
				if err != nil || string(got) != want || admitted != int64(len(want)) {
					t.Errorf("%s: got %d bytes, %v, and %d admitted; want %d", key, len(got), err, admitted, len(want))
				}
			}
		})
	}
}
