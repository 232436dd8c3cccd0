package edge_test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
)

// anyDigest is like a SHA-256.
var anyDigest = strings.Repeat("0a", 32)

// TestKeptInputs: every edge serves the inputs of a site byte for byte, with the headers of the
// bucket. Reproducing a site needs them, without a listing.
func TestKeptInputs(t *testing.T) {
	path, err := testSite()
	if err != nil {
		t.Fatal(err)
	}
	with := filepath.Join(t.TempDir(), "site")
	if err := os.CopyFS(with, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 3<<20)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range piece {
		piece[i] = byte(random.Uint32())
	}
	keys := map[site.Key][]byte{kept.PieceKey(site.Sum256(piece)): piece, kept.IndexKey(site.Sum256([]byte("root"))): []byte(`{"format":1,"tables":{}}`)}
	for key, body := range keys {
		file := filepath.Join(with, string(key))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	forEdges(t, func(t *testing.T, s subject) {
		for _, fallback := range []bool{true, false} {
			o := newOriginsOf(t, with, "")
			url := ""
			if fallback {
				url = o.fallback.URL
			}
			base := s.start(t, o.bucket.URL+"/bucket", url)
			for key, body := range keys {
				path := "/" + string(key)
				got := ask(t, http.MethodGet, base, path)
				if got.status != http.StatusOK || got.body != string(body) {
					t.Errorf("%s: got status %d and %d bytes, want the %d bytes of the bucket", path, got.status, len(got.body), len(body))
				}
				route, _ := o.config.RouteOf(key)
				if is := got.header.Get("Cache-Control"); is != route.CacheControl || strings.Contains(is, "immutable") == kept.IsIndex(key) {
					t.Errorf("%s: got Cache-Control %q, want %q", path, is, route.CacheControl)
				}
				for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST"} {
					sameAnswer(t, method+" "+path, ask(t, method, base, path), o.direct(t, method, path), s.unseen...)
				}
				sameConditions(t, s, o, base, path)
			}
			for _, path := range []string{"/_snapshot/" + anyDigest, "/_snapshot/index/" + anyDigest, "/_snapshot/", "/_snapshot/index/" + anyDigest[1:]} {
				sameAnswer(t, path, ask(t, http.MethodGet, base, path), o.direct(t, http.MethodGet, path), s.unseen...)
			}
		}
	})
}
