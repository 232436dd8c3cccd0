package edge_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/explorer"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
)

// exploredSite makes a site with the explorer, and reports next to it.
func exploredSite(t testing.TB, api string) (path string) {
	t.Helper()
	cases := map[string]afero.FromIOFS{site.APISpec: {FS: fixtures.Conformance()}, site.APIEFP: {FS: fixtures.ConformanceEFP()}}
	path = filepath.Join(t.TempDir(), "site")
	o := generator.Options{NoSync: true, Config: site.Config{API: api, Explorer: true}}
	if _, err := generator.ToPath(context.Background(), afero.NewBasePathFs(cases[api], "snapshot"), path, o); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(path, "_reports"), 0o755); err != nil {
		t.Fatal(err)
	}
	for key, body := range reports {
		write(t, path, string(key), body)
	}
	return path
}

var reports = map[site.Key]string{
	site.ReportsKey: `["2026-01-31"]`, site.ReportKey("2026-01-31", site.ReportPage): "<!doctype html><title>x</title>",
	site.ReportKey("2026-01-31", site.ReportData): `{"x":1}`,
}

// Every edge serves the explorer and reports as they are stored, even without a fallback. A missing
// file is a 404 of the API.
func TestExplorerThroughEdges(t *testing.T) {
	paths := []string{
		site.IndexKey.URLPath(), site.TopKey.URLPath(), site.NetworkKey.URLPath(), site.TopKey.URLPath() + "?x=1", "/_explore/%69ndex.html",
		"/", "/_explore", "/_explore/", "/_explore/index", "/_explore/none-AB2DEF7H.js", "/_explore/none.css", "/_explore/../_lock", "/_explore/..%2f_lock",
		"/_explore/top/", "/_reports/", "/_reports/2026-02-01.html", "/_reports/x.json", "/_reports/..%2f_lock", "/index.html/", "/index.htm",
	}
	for _, f := range explorer.Files(site.Config{Explorer: true}) {
		paths = append(paths, site.ExplorerKey(f.Name).URLPath())
	}
	for key := range reports {
		paths = append(paths, key.URLPath())
	}
	for _, api := range []string{site.APISpec, site.APIEFP} {
		t.Run(api, func(t *testing.T) {
			path := exploredSite(t, api)
			forEdges(t, func(t *testing.T, s subject) {
				for _, alone := range []bool{false, true} {
					o := newOriginsOf(t, path, "")
					fallbackURL := o.fallback.URL
					if alone {
						fallbackURL = ""
					}
					base := s.start(t, o.bucket.URL+"/bucket", fallbackURL)
					for _, path := range paths {
						if !s.receives(path) || alone && s.degrades && strings.Contains(path, "%") {
							continue // Caddy alone does not decode these
						}
						for _, method := range []string{http.MethodGet, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete} {
							if method == http.MethodDelete && s.absentAs != nil && api == site.APIEFP {
								continue // its table does not distinguish all paths without an object
							}
							sameAnswer(t, method+" "+path, ask(t, method, base, path), o.direct(t, method, path), s.unseen...)
						}
					}
					if n := o.bucket.requests.Load(); n == 0 {
						t.Error("requests to the bucket: got none")
					}
				}
			})
		})
	}
}

// The same from a real bucket that publish made: with the headers that it has stored, by the policy of init.
func TestExplorerOverMinIO(t *testing.T) {
	path := exploredSite(t, site.APISpec)
	bucketURL := overMinIO(t, path)
	for _, s := range subjects {
		t.Run(s.kind, func(t *testing.T) {
			o := newOriginsOf(t, path, "")
			base := s.start(t, bucketURL, o.fallback.URL)
			paths := []string{site.IndexKey.URLPath(), site.TopKey.URLPath(), site.NetworkKey.URLPath()}
			for _, f := range explorer.Files(site.Config{Explorer: true}) {
				paths = append(paths, site.ExplorerKey(f.Name).URLPath())
			}
			for _, path := range paths {
				sameAnswer(t, path, ask(t, http.MethodGet, base, path), o.direct(t, http.MethodGet, path), s.unseen...)
			}
			if n := o.fallback.requests.Load(); n > int64(len(paths)) && s.kind == "nginx" {
				t.Errorf("requests to the fallback: got %d, want none", n-int64(len(paths)))
			}
		})
	}
}
