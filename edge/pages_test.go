package edge_test

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
)

const browserAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// Every edge serves pages of accounts, with their shorter paths, badges and sitemaps, as they are
// stored, even without a fallback. A missing page is a 404 of the API, and a page for browsers.
func TestPagesThroughEdges(t *testing.T) {
	paths := []string{
		"/u/alice.eth/index.html", "/u/alice.eth", "/u/alice.eth/", "/u/alice.eth?x=1", "/u/alice.eth/?x=1", "/u/%61lice.eth", "/u/alice%2Eeth/", "/u/Alice.eth", "/u/ALICE.eth/",
		"/u/0x0101010101010101010101010101010101010101", "/u/0x0101010101010101010101010101010101010101/index.html", "/u/nobody.eth", "/u/nobody.eth/", "/u/nobody.eth/index.html",
		"/u", "/u/", "/u//", "/u/alice.eth//", "/u/alice.eth/x", "/u/_x", "/u/..%2f_lock", "/u/../_lock", "/u/" + strings.Repeat("x", 100), "/u/" + strings.Repeat("x", 101) + "/",
		"/u/caf%C3%A9.eth", "/u/%FF", "/u/_page.css", "/u/_page.css/", "/sitemap.xml", "/robots.txt", "/embed.js", "/_badge/alice.eth.svg", "/_badge/dark/alice.eth.svg", "/_badge/nobody.svg", "/_card/alice.eth.png", "/_card/nobody.png",
		"/_badge/alice.eth", "/sitemap.xml?x", "/_badge/",
	}
	path := pagesSite(t)
	parts, err := filepath.Glob(filepath.Join(path, "u", "_sitemap-*"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("sitemaps: got %q, %v", parts, err)
	}
	paths = append(paths, "/u/"+filepath.Base(parts[0]))
	forEdges(t, func(t *testing.T, s subject) {
		for _, alone := range []bool{false, true} {
			o := newOriginsOf(t, path, "")
			if status := o.direct(t, http.MethodGet, "/u/alice.eth").status; status != http.StatusOK {
				t.Fatalf("the page of alice.eth: got %d", status)
			}
			fallbackURL := o.fallback.URL
			if alone {
				fallbackURL = ""
			}
			base := s.start(t, o.bucket.URL+"/bucket", fallbackURL)
			for _, path := range paths {
				if !s.receives(path) || alone && s.degrades && strings.Contains(path, "%") {
					continue // Caddy alone does not decode these
				}
				for _, method := range []string{http.MethodGet, http.MethodGet, http.MethodHead, http.MethodOptions} {
					sameAnswer(t, method+" "+path, ask(t, method, base, path), o.direct(t, method, path), s.unseen...)
				}
			}
			if !alone || s.absentAs == nil { // otherwise one body for everything missing
				checkMissing(t, s, base, o.fallback)
			}
			if n := o.bucket.requests.Load(); n == 0 {
				t.Error("requests to the bucket: got none")
			}
		}
	})
}

// pagesSite returns the path of the conformance site with the explorer and pages.
func pagesSite(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "site")
	o := generator.Options{NoSync: true, Config: site.Config{API: site.APIEFP, Explorer: true, Pages: true, PagesMin: 1, PublicURL: "https://graph.example"}}
	if _, err := generator.ToPath(context.Background(), afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.ConformanceEFP()}, "snapshot"), path, o); err != nil {
		t.Fatal(err)
	}
	return path
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
	path := pagesSite(t)
	forEdges(t, func(t *testing.T, s subject) {
		o := newOriginsOf(t, path, "")
		live := o.liveOf(t)
		checkMissing(t, s, s.start(t, o.bucket.URL+"/bucket", o.fallback.URL, before(live)), live)
	})
}
