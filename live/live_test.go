package live_test

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/storage"
)

// generated returns the site of a snapshot as generate writes it.
func generated(t testing.TB, snapshot afero.Fs, o live.Options) server.Store {
	t.Helper()
	files, _, err := generator.ToMemory(t.Context(), snapshot, generator.Options{Config: o.Generator.Config})
	if err != nil {
		t.Fatal(err)
	}
	return storage.NewFolder(files)
}

// Without a graph, every answer is a 503 with Retry-After.
func TestWithoutAGraph(t *testing.T) {
	t.Parallel()
	l := run(t, options(site.APISpec))
	for _, target := range []string{"/api/v1/stats", "/_site", "/nothing", live.EventsPath} {
		w := get(l, target, "X-After", "8453:7")
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: got %d %v, want a 503 that any page may read", target, w.Code, w.Header())
		}
	}
	if err := l.Ready(); !errors.Is(err, live.ErrNoGraph) {
		t.Errorf("Ready: got %v, want %v", err, live.ErrNoGraph)
	}
	if w := get(l, live.StatusPath); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), live.ErrNoGraph.Error()) {
		t.Errorf("the status: got %d %s, want the reason", w.Code, w.Body)
	}
}

// The bound covers the measured memory and the default caches of 40 MiB, and is at most twice as much.
func TestNeedsBytes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		api               string
		accounts, records int
		measured          int64 // MiB
	}{
		{site.APISpec, 75_879, 511_334, 164},
		{site.APIEFP, 75_879, 511_334, 185},
		{site.APISpec, 80_000, 997_537, 194},
		{site.APIEFP, 80_000, 997_537, 240},
	} {
		got := live.NeedsBytes(site.Counts{Accounts: test.accounts, Records: test.records}, 0, site.Config{API: test.api}) >> 20
		if least := test.measured + 40; got < least || got > 2*least {
			t.Errorf("%s, %d accounts, %d records: got %d MiB, want some more than the %d measured", test.api, test.accounts, test.records, got, least)
		}
	}
	const operations = 10_000_000
	if got := (live.NeedsBytes(site.Counts{}, operations, site.Config{}) - live.NeedsBytes(site.Counts{}, 0, site.Config{})) / operations; got < 2*32 || got > 4*32 {
		t.Errorf("an operation: got %d bytes, want those of two graphs, and some to spare", got)
	}
}

// TestConformance asks every request of both conformance suites.
func TestConformance(t *testing.T) {
	t.Parallel()
	for api, suite := range map[string]struct {
		files fs.FS
		cases func() ([]fixtures.Case, error)
	}{
		site.APISpec: {fixtures.Conformance(), fixtures.Cases},
		site.APIEFP:  {fixtures.ConformanceEFP(), fixtures.CasesEFP},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			cases, err := suite.cases()
			if err != nil || len(cases) < 300 {
				t.Fatalf("cases: got %d, %v, want some hundreds", len(cases), err)
			}
			l := run(t, options(api))
			l.serve(t, atBlock(10, afero.NewBasePathFs(afero.FromIOFS{FS: suite.files}, "snapshot")), live.NewGraph)
			server := httptest.NewServer(l)
			defer server.Close()
			for _, c := range cases {
				checkCase(t, server.URL, c)
			}
		})
	}
}

func checkCase(t *testing.T, url string, c fixtures.Case) {
	t.Helper()
	request, err := http.NewRequest(c.Method, url+c.Path, strings.NewReader(c.Sent))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request) // follows no redirect
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != c.Status || c.Status == http.StatusOK && string(body) != c.Body {
		t.Errorf("%s %s: got %d %.300s, %v\nwant %d %.300s", c.Method, c.Path, response.StatusCode, body, err, c.Status, c.Body)
	}
	if got := response.Header.Get("X-Heads"); got != "8453:10" {
		t.Errorf("%s %s: X-Heads: got %q, want 8453:10", c.Method, c.Path, got)
	}
}

const forLive = "public, max-age=2, stale-while-revalidate=10, stale-if-error=86400"

// The explorer of a live site has no keys, because answers from memory are unsigned.
func TestNoExplorerKeys(t *testing.T) {
	t.Parallel()
	l := run(t, live.Options{Generator: generator.Options{Config: site.Config{Explorer: true, ExplorerKeys: "follow.example+1a2b3c4d+AbCd"}}})
	l.serve(t, source.Round{Snapshot: demo(), Heads: []source.Head{{Chain: base, Block: 20, Time: time.Now().UnixMilli(), Finalized: 15}}}, live.NewGraph)
	for _, path := range []string{"/_explore/index.html", "/_site"} {
		if got := get(l, path); got.Code != http.StatusOK || strings.Contains(got.Body.String(), "1a2b3c4d") {
			t.Errorf("%s: got %d %.500s, want no key in it", path, got.Code, got.Body)
		}
	}
}

// Each answer names its graph, and how long caches may keep it. Everything else equals the answers
// of serve.
func TestHeaders(t *testing.T) {
	t.Parallel()
	l := run(t, live.Options{Generator: generator.Options{Config: site.Config{API: site.APIEFP, Explorer: true}}})
	now := time.Now()
	l.serve(t, source.Round{Snapshot: demo(), Heads: []source.Head{
		{Chain: base, Block: 20, Time: now.UnixMilli(), Finalized: 15}, {Chain: 10, Block: 30, Time: now.Add(-time.Minute).UnixMilli(), Finalized: 25},
	}}, live.NewGraph)
	asset := ""
	for _, word := range strings.FieldsFunc(get(l, "/_explore/index.html").Body.String(), func(r rune) bool { return strings.ContainsRune(`"'<>= `, r) }) {
		if strings.HasSuffix(word, ".js") {
			asset = word[strings.LastIndexByte(word, '/')+1:]
		}
	}
	for target, want := range map[string]struct {
		status       int
		cacheControl string
	}{
		"/api/v1/leaderboard/followers":                 {200, forLive},
		"/api/v1/leaderboard/ranked?limit=3":            {200, forLive},
		"/api/v1/stats":                                 {200, forLive},
		"/api/v1/lists/999999/details":                  {404, "public, max-age=2"},
		"/api/v1/leaderboard/followers?limit=x":         {400, "public, max-age=2"},
		"/nothing":                                      {404, "public, max-age=2"},
		"/_manifest/00":                                 {404, "public, max-age=2"},
		"/_reports/index":                               {404, "public, max-age=2"},
		"/_site":                                        {200, "no-cache"},
		"/api/v1/users/vitalik.eth/details?cache=fresh": {404, "no-store"},
		"/_explore/" + asset:                            {200, "public, max-age=31536000, immutable"},
		"/_live/nothing":                                {404, "public, max-age=2"},
		live.StatusPath:                                 {200, "no-store"},
	} {
		w := get(l, target)
		h := w.Header()
		if w.Code != want.status || h.Get("Cache-Control") != want.cacheControl {
			t.Errorf("%s: got %d, Cache-Control %q, want %d, %q", target, w.Code, h.Get("Cache-Control"), want.status, want.cacheControl)
		}
		exposed := h.Get("Access-Control-Expose-Headers")
		for name, value := range map[string]string{
			"X-As-Of": now.Add(-time.Minute).UTC().Format(time.RFC3339), "X-Heads": "8453:20, 10:30", "X-Finalized": "8453:15, 10:25",
		} {
			if !strings.HasPrefix(target, "/_live/") && h.Get(name) != value || !strings.Contains(exposed, name) {
				t.Errorf("%s: %s: got %q, exposed %q, want %q", target, name, h.Get(name), exposed, value)
			}
		}
	}
	l.serve(t, source.Round{Heads: []source.Head{
		{Chain: base, Block: 21, Time: now.UnixMilli(), Finalized: 16}, {Chain: 10, Block: 31, Time: now.UnixMilli(), Finalized: 25},
	}}, live.NewHeads)
	w := get(l, "/api/v1/stats")
	if h := w.Header(); h.Get("X-As-Of") != now.UTC().Format(time.RFC3339) || h.Get("X-Heads") != "8453:21, 10:31" || h.Get("X-Finalized") != "8453:16, 10:25" {
		t.Errorf("after new heads: got %v", h)
	}
	again := get(l, "/api/v1/stats", "If-None-Match", w.Header().Get("Etag"))
	if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("Cache-Control") != forLive || again.Header().Get("X-Heads") == "" {
		t.Errorf("a conditional request: got %d %v, want a 304", again.Code, again.Header())
	}
	head := ask(l, http.MethodHead, "/api/v1/stats")
	if head.Code != http.StatusOK || head.Header().Get("Etag") != w.Header().Get("Etag") {
		t.Errorf("HEAD: got %d %v, want the headers of GET", head.Code, head.Header())
	}
	for _, target := range []string{"/api/v1/stats", live.EventsPath, live.StatusPath} {
		w := ask(l, http.MethodOptions, target, "Access-Control-Request-Headers", "x-after, prefer, last-event-id")
		if h := w.Header(); w.Code != http.StatusNoContent || h.Get("Access-Control-Allow-Headers") != "*" || h.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("OPTIONS %s: got %d %v, want to be allowed any header", target, w.Code, h)
		}
		if w := ask(l, http.MethodPut, target); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("PUT %s: got %d, want 405", target, w.Code)
		}
		if target == live.EventsPath {
			continue
		}
		if w := ask(l, http.MethodHead, target); w.Code != http.StatusOK {
			t.Errorf("HEAD %s: got %d, want 200", target, w.Code)
		}
	}
	if w := ask(l, http.MethodHead, live.EventsPath); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD of the events: got %d %v, want 200", w.Code, w.Header())
	}
}
