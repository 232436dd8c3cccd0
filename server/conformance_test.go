package server_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// TestConformance asks every request of the conformance set over HTTP, of a site
// in memory, on disk, read back from a tar file, and in buckets.
func TestConformance(t *testing.T) {
	t.Parallel()
	cases := readCases(t)
	check := func(t *testing.T, store server.Store) {
		t.Helper()
		base := serve(t, store)
		for _, c := range cases {
			checkCase(t, base, c)
		}
	}
	snapshot := conformanceSnapshot()
	for name, store := range conformanceStores(t, snapshot) {
		t.Run(name, func(t *testing.T) { check(t, store) })
	}
	files := generated(t, snapshot, site.Config{})
	t.Run("bucket", func(t *testing.T) {
		onBuckets(t, func(t *testing.T, open func() bucket) {
			published(t, files, open())
			check(t, open())
		})
	})
}

func conformanceSnapshot() afero.Fs {
	return afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.Conformance()}, "snapshot")
}

func readCases(t *testing.T) []fixtures.Case {
	t.Helper()
	cases, err := fixtures.Cases()
	if err != nil || len(cases) != 303 {
		t.Fatalf("conformance cases: got %d, %v, want 303", len(cases), err)
	}
	return cases
}

// conformanceStores returns the conformance site in every kind of place that generate
// writes to.
func conformanceStores(t *testing.T, snapshot afero.Fs) map[string]server.Store {
	t.Helper()
	ctx := context.Background()
	stores := map[string]server.Store{"memory": storage.NewFolder(generated(t, snapshot, site.Config{}))}
	for name, file := range map[string]string{"folder": "site", "tar": "site.tar"} {
		path := filepath.Join(t.TempDir(), file)
		if _, err := generator.ToPath(ctx, snapshot, path, generator.Options{NoSync: true}); err != nil {
			t.Fatal(err)
		}
		stores[name] = open(t, path)
		if name == "folder" {
			stores["file://"] = storage.OpenLocal(path)
		}
	}
	return stores
}

func open(t *testing.T, path string) server.Store {
	t.Helper()
	store, err := storage.OpenSite(t.Context(), path, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// serve serves a site as the commands do.
func serve(t *testing.T, store server.Store) (base string) {
	t.Helper()
	return listen(t, newHandler(t, store, server.Options{}))
}

// direct follows no redirect.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func checkCase(t *testing.T, base string, c fixtures.Case) {
	t.Helper()
	response, err := direct.Get(base + c.Path)
	if err != nil {
		t.Errorf("%s: got %v, want an answer", c.Path, err)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%s: got %v, want a body", c.Path, err)
		return
	}
	if response.StatusCode != c.Status {
		t.Errorf("%s: got status %d, want %d", c.Path, response.StatusCode, c.Status)
		return
	}
	if c.Status == http.StatusFound {
		if got := response.Header.Get("Location"); got != c.Location || len(body) > 0 {
			t.Errorf("%s: got location %q and %d bytes, want %q and none", c.Path, got, len(body), c.Location)
		}
		return
	}
	if c.Status == http.StatusOK {
		if string(body) != c.Body {
			t.Errorf("%s:\n got %.300s\nwant %.300s", c.Path, body, c.Body)
		}
		return
	}
	checkProblem(t, c.Path, response, body)
}

// checkProblem checks an error's body: RFC 9457, and the member that clients read.
func checkProblem(t *testing.T, path string, response *http.Response, body []byte) {
	t.Helper()
	var p struct {
		Type, Title, Detail, Response string
		Status                        int
	}
	if err := json.Unmarshal(body, &p); err != nil {
		t.Errorf("%s: got %v, want JSON", path, err)
	}
	if p.Type != "about:blank" || p.Title != http.StatusText(response.StatusCode) || p.Status != response.StatusCode ||
		p.Detail == "" || p.Detail != p.Response {
		t.Errorf("%s: got %s, want a problem of that status", path, body)
	}
	if got := response.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("%s: got content type %q, want application/problem+json", path, got)
	}
}
