package edge_test

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/explorer"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
)

const (
	browserAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	tablePath     = "/_data/follows.parquet"
)

// anyDigest is like a SHA-256.
var anyDigest = strings.Repeat("0a", 32)

// storedFiles are reports and kept inputs.
var storedFiles = map[site.Key]string{
	site.ReportsKey: `["2026-01-31"]`, site.ReportKey("2026-01-31", "html"): "<!doctype html><title>x</title>",
	site.ReportKey("2026-01-31", "json"):        `{"x":1}`,
	kept.PieceKey(site.Sum256([]byte("piece"))): strings.Repeat("\x00\xffpiece", 150_000), kept.IndexKey(site.Sum256([]byte("root"))): `{"format":1,"tables":{}}`,
}

// pagesConfig is a site with the explorer and pages.
var pagesConfig = site.Config{API: site.APIEFP, Explorer: true, Pages: true, PagesMin: 1, PublicURL: "https://graph.example"}

// storedSite generates a site of the conformance cases, and adds storedFiles, and a large table if config has tables.
func storedSite(t testing.TB, config site.Config) (path string) {
	t.Helper()
	cases := afero.FromIOFS{FS: fixtures.Conformance()}
	if config.EFP() {
		cases = afero.FromIOFS{FS: fixtures.ConformanceEFP()}
	}
	path = filepath.Join(t.TempDir(), "site")
	if _, err := generator.ToPath(context.Background(), afero.NewBasePathFs(cases, "snapshot"), path, generator.Options{NoSync: true, Config: config}); err != nil {
		t.Fatal(err)
	}
	files := maps.Clone(storedFiles)
	if config.Data {
		files[site.Key(tablePath[1:])] = strings.Repeat("0123456789", 20_000)
	}
	for key, body := range files {
		file := filepath.Join(path, string(key))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Dir(file), filepath.Base(file), body)
	}
	return path
}

// explorerPaths returns the paths of all pages and files of the explorer.
func explorerPaths() []string {
	paths := []string{site.IndexKey.URLPath(), site.TopKey.URLPath(), site.NetworkKey.URLPath()}
	for _, f := range explorer.Files(site.Config{Explorer: true}) {
		paths = append(paths, site.ExplorerKey(f.Name).URLPath())
	}
	return paths
}

// Every edge serves the explorer, pages of accounts with their shorter paths, badges, sitemaps, reports and kept inputs as they
// are stored, even without a fallback. A missing file is a 404 of the API, and a page for browsers where pages are.
func TestStoredFiles(t *testing.T) {
	explored := append(explorerPaths(), site.TopKey.URLPath()+"?x=1", "/_explore/%69ndex.html",
		"/", "/_explore", "/_explore/", "/_explore/index", "/_explore/none-AB2DEF7H.js", "/_explore/none.css", "/_explore/../_lock", "/_explore/..%2f_lock",
		"/_explore/top/", "/_reports/", "/_reports/2026-02-01.html", "/_reports/x.json", "/_reports/..%2f_lock", "/index.html/", "/index.htm",
		"/_snapshot/"+anyDigest, "/_snapshot/index/"+anyDigest, "/_snapshot/", "/_snapshot/index/"+anyDigest[1:])
	for key := range storedFiles {
		explored = append(explored, key.URLPath())
	}
	paged := []string{
		"/u/alice.eth/index.html", "/u/alice.eth", "/u/alice.eth/", "/u/alice.eth?x=1", "/u/alice.eth/?x=1", "/u/%61lice.eth", "/u/alice%2Eeth/", "/u/Alice.eth", "/u/ALICE.eth/",
		"/u/0x0101010101010101010101010101010101010101", "/u/0x0101010101010101010101010101010101010101/index.html", "/u/nobody.eth", "/u/nobody.eth/", "/u/nobody.eth/index.html",
		"/u", "/u/", "/u//", "/u/alice.eth//", "/u/alice.eth/x", "/u/_x", "/u/..%2f_lock", "/u/../_lock", "/u/" + strings.Repeat("x", 100), "/u/" + strings.Repeat("x", 101) + "/",
		"/u/caf%C3%A9.eth", "/u/%FF", "/u/_page.css", "/u/_page.css/", "/sitemap.xml", "/robots.txt", "/embed.js", "/_badge/alice.eth.svg", "/_badge/dark/alice.eth.svg", "/_badge/nobody.svg", "/_card/alice.eth.png", "/_card/nobody.png",
		"/_badge/alice.eth", "/sitemap.xml?x", "/_badge/",
	}
	for name, c := range map[string]struct {
		config site.Config
		paths  []string
	}{
		"explorer": {site.Config{Explorer: true}, explored},
		"pages":    {pagesConfig, slices.Concat(explored, paged)},
	} {
		t.Run(name, func(t *testing.T) {
			path := storedSite(t, c.config)
			parts, err := filepath.Glob(filepath.Join(path, "u", "_sitemap-*"))
			if err != nil || c.config.Pages != (len(parts) > 0) {
				t.Fatalf("sitemaps: got %q, %v", parts, err)
			}
			for _, part := range parts {
				c.paths = append(c.paths, "/u/"+filepath.Base(part))
			}
			forEdges(t, func(t *testing.T, s subject) {
				for _, alone := range []bool{false, true} {
					o, base := startStored(t, s, path, alone)
					for _, path := range c.paths {
						if !s.receives(path) || alone && s.degrades && strings.Contains(path, "%") {
							continue // Caddy alone does not decode these
						}
						for _, method := range []string{http.MethodGet, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete} {
							if method == http.MethodDelete && (s.absentAs != nil && c.config.EFP() || s.degrades && strings.HasPrefix(path, "/u/")) {
								continue // their tables do not distinguish all paths without an object
							}
							sameAnswer(t, method+" "+path, ask(t, method, base, path), o.direct(t, method, path), s.unseen...)
						}
					}
					for key := range storedFiles {
						sameConditions(t, s, o, base, key.URLPath())
					}
					if c.config.Pages && (!alone || s.absentAs == nil) { // CloudFront alone has one body for everything missing
						checkMissing(t, s, base, o.fallback)
					}
					if n := o.bucket.requests.Load(); n == 0 {
						t.Error("requests to the bucket: got none")
					}
				}
			})
		})
	}
}

// startStored starts an edge in front of a site, with or without a fallback.
func startStored(t *testing.T, s subject, path string, alone bool) (o *origins, base string) {
	t.Helper()
	o = newOriginsOf(t, path, "")
	fallbackURL := o.fallback.URL
	if alone {
		fallbackURL = ""
	}
	return o, s.start(t, o.bucket.URL+"/bucket", fallbackURL)
}

// checkMissing compares an edge with an origin: only browsers, and only below u/ and _explore/, get
// a 404 page, also right after another client asked for the same path.
func checkMissing(t *testing.T, s subject, base string, from *origin) {
	t.Helper()
	for _, path := range []string{"/u/nobody.eth", "/u/nobody.eth/index.html", "/u/", "/u/a/b/c", "/_explore/none.css", "/_explore/nothing", "/u/alice.eth", "/_explore/top", "/nothing", "/api/v1/lists/999/details"} {
		for _, accept := range []string{"*/*", browserAccept, "application/json", browserAccept} {
			want := ask(t, http.MethodGet, from.URL, path, "Accept", accept)
			if isPage := strings.Contains(want.header.Get("Content-Type"), "html"); isPage != (path == "/u/alice.eth" || accept == browserAccept && strings.HasPrefix(path, "/u/") || accept == browserAccept && strings.HasPrefix(path, "/_explore/n")) {
				t.Fatalf("%s, Accept: %s: got %d %s", path, accept, want.status, want.header.Get("Content-Type"))
			}
			except := s.unseen
			if want.header.Get("X-Heads") != "" && want.header.Get("Cache-Control") != site.NoStore {
				except = append(slices.Clone(except), "Cache-Control") // if live is late, the bucket answers
			}
			sameAnswer(t, path+", Accept: "+accept, ask(t, http.MethodGet, base, path, "Accept", accept), want, except...)
		}
	}
}

// Missing pages in front of live are those of live, for browsers and for other clients.
func TestMissingPagesOfLive(t *testing.T) {
	path := storedSite(t, pagesConfig)
	forEdges(t, func(t *testing.T, s subject) {
		o := newOriginsOf(t, path, "")
		live := o.liveOf(t)
		checkMissing(t, s, s.start(t, o.bucket.URL+"/bucket", o.fallback.URL, before(live)), live)
	})
}

// TestTables: on every edge, ranges of tables equal the handler's, first from the
// bucket and then from caches. Nothing compresses tables, and other objects are answered whole.
func TestTables(t *testing.T) {
	path := storedSite(t, site.Config{API: site.APIEFP, Explorer: true, Data: true})
	const table = tablePath
	forEdges(t, func(t *testing.T, s subject) {
		for _, alone := range []bool{false, true} {
			o, base := startStored(t, s, path, alone)
			etag := o.direct(t, http.MethodHead, table).header.Get("Etag")
			for _, tc := range []struct {
				path    string
				headers []string
			}{
				{table, []string{"Range", "bytes=0-3"}}, {table, nil}, {table, []string{"Range", "bytes=0-0"}}, {table, []string{"Range", "bytes=7-150002"}}, {table, []string{"Range", "bytes=199990-"}},
				{table, []string{"Range", "bytes=-8"}}, {table, []string{"Range", "bytes=199999-999999999"}}, {table, []string{"Range", "bytes=200000-"}}, {table, []string{"Range", "bytes=0-3,8-9"}},
				{table, []string{"Range", "bytes=0-3", "If-Range", etag}}, {table, []string{"Range", "bytes=0-3", "If-Range", `"x"`}}, {table, []string{"Range", "bytes=0-3", "Accept-Encoding", "gzip, br, zstd"}},
				{table, []string{"Range", "bytes=0-3", "If-None-Match", etag}}, {table, []string{"Accept-Encoding", "gzip, br, zstd"}}, {table + "?x=1", []string{"Range", "bytes=0-3"}},
				{"/_data/ops.parquet", []string{"Range", "bytes=0-3"}}, {"/_data/datapackage.json", []string{"Range", "bytes=0-3"}}, {"/_explore/top", []string{"Range", "bytes=0-3"}},
				{"/api/v1/leaderboard/followers", []string{"Range", "bytes=0-3"}}, {"/api/v1/leaderboard/followers", []string{"Range", "bytes=999999-"}},
			} {
				what := tc.path + " " + strings.Join(tc.headers, " ")
				got, want := ask(t, http.MethodGet, base, tc.path, tc.headers...), ask(t, http.MethodGet, o.fallback.URL, tc.path, tc.headers...)
				if want.status == http.StatusRequestedRangeNotSatisfiable { // each has another text
					got.body, want.body = "", ""
					for _, name := range []string{"Content-Type", "Cache-Control", "Etag"} {
						got.header.Del(name)
						want.header.Del(name)
					}
				}
				if want.status == http.StatusNotModified {
					got.header.Del("Content-Type")
				}
				sameAnswer(t, what, got, want, s.unseen...)
				for _, name := range []string{"Content-Range", "Accept-Ranges", "Content-Encoding"} {
					is, should := got.header.Get(name), want.header.Get(name)
					if strings.HasPrefix(tc.path, table) && is != should && (name != "Accept-Ranges" || want.status == http.StatusOK) {
						t.Errorf("%s: %s: got %q, want %q", what, name, is, should)
					}
				}
			}
			if got, want := ask(t, http.MethodHead, base, table), o.direct(t, http.MethodHead, table); got.status != want.status || got.header.Get("Accept-Ranges") != "bytes" || got.header.Get("Content-Length") != want.header.Get("Content-Length") {
				t.Errorf("HEAD: got %d, %v, want %v", got.status, got.header, want.header)
			}
		}
	}, "cloudfront") // see TestCloudFrontFunction: its cache, which serves the ranges, is imitated
}
