package explorer_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/explorer"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
)

// noticing records what the reader of a slow page sees: the loading message, and layout shifts.
const noticing = `
	globalThis.noticed = { loading: false, shift: 0, worst: '' };
	new MutationObserver(() => { noticed.loading ||= !!document.querySelector('.loading, [aria-busy=true]'); })
		.observe(document, { childList: true, subtree: true });
	new PerformanceObserver((list) => {
		for (const entry of list.getEntries()) {
			if (!entry.hadRecentInput) {
				noticed.shift += entry.value;
				noticed.worst += entry.value.toFixed(3) + ' ' + entry.sources.map((s) => s.node?.outerHTML?.slice(0, 80)).join(' | ') + '\n';
			}
		}
	}).observe({ type: 'layout-shift', buffered: true });
`

// On a slow network each view shows that it loads, then its contents, with a layout shift below
// 0.1, the limit of Core Web Vitals for "good".
func TestSlowNetwork(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, withReports(demo(t)), "/")
	for i, v := range demoViews() {
		size := []browser.Size{browser.Phone, browser.Desktop}[i%2]
		t.Run(v.name+" "+size.String(), func(t *testing.T) {
			p := b.OpenSlow(t, h.at(v.at), browser.View{Size: size, Now: now, Before: noticing}, browser.Slow)
			shown(t, p)
			noticed := browser.Eval[struct {
				Loading bool
				Shift   float64
				Worst   string
			}](p, "noticed")
			if !noticed.Loading && v.name != "nothing" {
				t.Error("got no loading message")
			}
			if noticed.Shift > 0.1 {
				t.Errorf("its layout shifted by %.3f, want at most 0.1:\n%s", noticed.Shift, noticed.Worst)
			}
		})
	}
}

// controlled waits until the service worker controls the page.
func controlled(p *browser.Page) {
	p.Wait("navigator.serviceWorker.controller")
}

// says waits until a view has a text and is shown. The graph is shown before it has read the connections.
func says(t *testing.T, p *browser.Page, text string) {
	t.Helper()
	p.Wait(fmt.Sprintf("document.querySelector('main')?.innerText.includes(%q)", text))
	shown(t, p)
}

// Visited views work without a network, also in a new tab of the same browser. Others show that
// they cannot be read, and a retry.
func TestOffline(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, withReports(demo(t)), "/a/b/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	controlled(p)
	seen := map[string]string{
		"#/": "miralund.eth", "#/miralund.eth": "sourdough by night", "#/a/miralund.eth/following": "lena-bikes.eth",
		"#/boards/followers": "inésprado.eth", "#/network": "305", "#/a/miralund.eth/graph": "118 follows",
	}
	for place, text := range seen {
		p.Go(h.at(place))
		says(t, p, text)
	}

	h.leave(true)
	h.asked()
	p.Forgive("net::ERR_", "request failed", "status 503", "status 504", "Failed to fetch", "Failed to load resource")
	for place, text := range seen {
		p.Go("about:blank")
		p.Go(h.at(place))
		says(t, p, text)
	}
	p.Go(h.at("#/narciso.eth"))
	p.WaitFor(".failed button")

	h.leave(false)
	p.Click(".failed button")
	shown(t, p)
	if !strings.Contains(p.Text("main"), "narciso.eth") {
		t.Errorf("tried again with a network: got %.500q, want narciso.eth", p.Text("main"))
	}
}

// The next visit shows a new deployment of the explorer and of the data, and nothing of the old
// one.
func TestNewDeployment(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	old := demo(t)
	h := serve(t, old, "/")
	p := b.Open(t, h.at("#/miralund.eth"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	controlled(p)
	p.Go(h.at("#/"))
	shown(t, p)

	h.deploy(changed(old, "Mira Lund", "Mira Changed"))
	p.Go("about:blank")
	p.Go(h.at("#/miralund.eth"))
	p.WaitForText("Mira Changed") // new data appear at once
	// The new worker replaces the old one and the app, and keeps only the new files.
	p.Wait("caches.keys().then((names) => Promise.all(names.map(async (name) => (await (await caches.open(name)).keys())))).then((all) => all.flat().some(({ url }) => url.includes('NEWAPP42')))")
	p.Wait("navigator.serviceWorker.getRegistration().then((r) => !r.installing && !r.waiting)")
	p.Settle()
	p.Reload()
	shown(t, p)
	if p.Count("script[src*='NEWAPP42']") == 0 {
		t.Errorf("after the new deployment: got the scripts %q, want the new one", browser.Eval[[]string](p, "[...document.scripts].map((s) => s.src)"))
	}
	p.Wait(fmt.Sprintf("(async () => !(await Promise.all((await caches.keys()).map(async (name) => (await (await caches.open(name)).keys())))).flat().some(({ url }) => url.endsWith(%q)))()", mainScript(old)))
	h.leave(true)
	p.Forgive("net::ERR_", "request failed", "status 503", "status 504", "Failed to fetch", "Failed to load resource")
	p.Reload()
	p.WaitForText("Mira Changed")
}

// After a site is published without the explorer, browsers delete its files on their next visit.
func TestNoExplorer(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	s := demo(t)
	h := serve(t, s, "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	controlled(p)
	p.Settle()

	without := memsite.Site{}
	for key, body := range s {
		if !strings.HasPrefix(string(key), "_explore/") {
			without[key] = body
		}
	}
	h.deploy(without)
	p.Forgive("status of 404", "404")
	for range 2 { // the first may be answered from the cache
		p.Go("about:blank")
		p.Go(h.at("#/"))
		p.Settle()
	}
	p.Wait("(async () => !(await navigator.serviceWorker.getRegistrations()).length && !(await caches.keys()).length)()")
}

// A malformed object ends the view that shows it. Other views work.
func TestOddObject(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	s := demo(t)
	s[site.NetworkKey] = "{}"
	h := serve(t, s, "/")
	p := b.Open(t, h.at("#/network"), browser.View{Size: browser.Phone, Now: now})
	p.Forgive("TypeError")
	p.WaitFor(".failed button")
	p.Click("a[href='#/boards/followers']")
	shown(t, p)
	if p.Count("[data-index]") == 0 {
		t.Errorf("after a view that failed: got %.300q, want the leaderboard", p.Text("main"))
	}
}

// changed returns a site with another text, and an explorer with another name of its main script.
func changed(s memsite.Site, old, replaced string) memsite.Site {
	out := memsite.Site{}
	script := mainScript(s)
	for key, body := range s {
		key = site.Key(strings.ReplaceAll(string(key), script, "explorer-NEWAPP42.js"))
		out[key] = strings.ReplaceAll(strings.ReplaceAll(body, script, "explorer-NEWAPP42.js"), old, replaced)
	}
	return out
}

// mainScript returns the name of the script that the page begins with.
func mainScript(s memsite.Site) string {
	return regexp.MustCompile(`src="([^"]+)"`).FindStringSubmatch(s[site.ExplorerKey(explorer.Page)])[1]
}

// The explorer requests nothing above its site, at any path, also on static file servers that
// redirect index.html to its folder.
func TestAnywhere(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	s := withReports(demo(t))
	tour := func(t *testing.T, p *browser.Page, at func(string) string) {
		for _, v := range demoViews() {
			p.Go(at(v.at))
			shown(t, p)
			for _, text := range v.texts {
				if !strings.Contains(p.Text("main"), text) {
					t.Errorf("%s: got %.300q, want %q in it", v.at, p.Text("main"), text)
				}
			}
		}
	}
	t.Run("below a prefix", func(t *testing.T) {
		h := serve(t, s, "/a/b/c/")
		tour(t, b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now}), h.at)
		for _, path := range h.asked() {
			if !strings.HasPrefix(path, "/a/b/c/") {
				t.Errorf("got a request for %s, want none above /a/b/c/", path)
			}
		}
	})
	t.Run("static files", func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "site")
		s.Write(t, folder)
		files := httptest.NewServer(http.FileServer(http.Dir(folder)))
		t.Cleanup(files.Close)
		at := func(view string) string { return files.URL + "/_explore/" + view }
		p := b.Open(t, files.URL+"/", browser.View{Size: browser.Phone, Now: now})
		p.Wait("location.pathname.startsWith('/_explore/')")
		shown(t, p)
		tour(t, p, at)
		controlled(p)
		p.Go("about:blank")
		p.Go(at("index.html#/network"))
		shown(t, p)
	})
	t.Run("the fallback", func(t *testing.T) {
		handler, err := server.New(t.Context(), s, server.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		h := httptest.NewServer(handler)
		t.Cleanup(h.Close)
		at := func(view string) string { return h.URL + "/_explore/index.html" + view }
		p := b.Open(t, at("#/"), browser.View{Size: browser.Phone, Now: now})
		shown(t, p)
		tour(t, p, at)
	})
}
