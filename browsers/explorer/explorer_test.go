package explorer_test

import (
	"context"
	"flag"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

var update = flag.Bool("update", false, "write the screenshots in testdata/screens and docs/screens again where they differ")

// now is the time at which tests open pages: a day after the demo was taken.
var now = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// generate renders the site of a snapshot with the explorer, which links to reports.
func generate(t *testing.T, snapshot fs.FS, config site.Config) memsite.Site {
	t.Helper()
	config.Reports = true
	return generateOnly(t, snapshot, config)
}

// generateOnly renders the site of a snapshot with the explorer.
func generateOnly(t *testing.T, snapshot fs.FS, config site.Config) memsite.Site {
	t.Helper()
	config.Explorer = true
	files, _, err := generator.ToMemory(context.Background(), afero.FromIOFS{FS: snapshot}, generator.Options{Config: config, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := memsite.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// copied returns the tables of a snapshot, to be changed.
func copied(t *testing.T, snapshot fs.FS) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(snapshot, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(snapshot, name)
		files[name] = &fstest.MapFile{Data: body, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// part returns the snapshot of a conformance suite.
func part(t *testing.T, suite fs.FS) fs.FS {
	t.Helper()
	snapshot, err := fs.Sub(suite, "snapshot")
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func demo(t *testing.T) memsite.Site {
	return generate(t, fixtures.Demo(), site.Config{API: site.APIEFP})
}

// A host serves a site below a prefix as buckets do: objects with their published types, and
// nothing else. Its methods may be called while it serves.
type host struct {
	URL    string // URL of the site, ending in a slash
	prefix string

	mu       sync.Mutex
	site     memsite.Site
	gone     bool
	requests []string // requested paths
}

// serve starts a host. The prefix begins and ends with a slash.
func serve(t *testing.T, s memsite.Site, prefix string) *host {
	t.Helper()
	h := &host{prefix: prefix, site: s}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.URL = server.URL + prefix
	return h
}

// at returns the address of a view: "#/network" or "#/alice.eth".
func (h *host) at(view string) string { return h.URL + string(site.ExplorerKey("index.html")) + view }

// ServeHTTP answers from the site, or breaks the connection off while the host is gone.
func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests = append(h.requests, r.URL.Path)
	key, below := strings.CutPrefix(r.URL.Path, h.prefix)
	body, ok := h.site[site.Key(key)]
	gone := h.gone
	h.mu.Unlock()
	switch {
	case gone:
		panic(http.ErrAbortHandler)
	case !below || !ok:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", contentType(key))
		w.Header().Set("Cache-Control", cacheControl(key))
		_, _ = io.WriteString(w, body) // the page may be gone
	}
}

// deploy publishes another site.
func (h *host) deploy(s memsite.Site) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.site = s
}

// leave makes the host unreachable, or reachable again.
func (h *host) leave(gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = gone
}

// asked returns the paths requested since the last call.
func (h *host) asked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.requests
	h.requests = nil
	return all
}

func contentType(key string) string {
	switch path.Ext(key) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript"
	case ".css":
		return "text/css"
	}
	return "application/json"
}

// hashed matches names that contain a hash of the content.
var hashed = regexp.MustCompile(`-[A-Z0-9]{8}\.(js|css)$`)

// cacheControl makes browsers revalidate all objects except immutable ones, so that no test waits
// for a cache.
func cacheControl(key string) string {
	if hashed.MatchString(key) {
		return "public, max-age=31536000, immutable"
	}
	return "no-cache"
}

// shown waits until a view shows its subject and all requests have ended.
func shown(t *testing.T, p *browser.Page) {
	t.Helper()
	there(t, p)
	p.Settle()
	there(t, p)
}

// there waits until a view shows its subject. It fails the test if the view shows a failure.
func there(t *testing.T, p *browser.Page) {
	t.Helper()
	p.Wait(browser.Complete)
	if failed := p.Text(".failed"); failed != "" {
		t.Errorf("%s: got the failure %q", p.URL(), failed)
	}
}

// fits checks that no part of a view is outside the window.
func fits(t *testing.T, p *browser.Page) {
	t.Helper()
	if wide := browser.Eval[[]string](p, browser.TooWide); len(wide) > 0 {
		t.Errorf("%s: wider than the window: %q", p.URL(), wide)
	}
}

// barriers fails the test if axe-core finds an accessibility problem.
func barriers(t *testing.T, p *browser.Page) {
	t.Helper()
	for _, b := range p.Barriers() {
		t.Errorf("%s: barrier %s (%s): %q", p.URL(), b.Rule, b.Help, b.Elements)
	}
}
