package live_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

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
