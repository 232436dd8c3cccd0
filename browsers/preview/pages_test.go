package preview

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/fstest"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// places are views of the explorer over the demo, which has data for all features.
var places = []string{
	"", "search?q=ti", "a/miralund.eth", "a/miralund.eth/following", "a/miralund.eth/followers", "a/miralund.eth/common", "a/miralund.eth/common/tobi-okafor.eth",
	"a/miralund.eth/graph", "a/miralund.eth/activity", "a/miralund.eth/activity?of=others", "a/miralund.eth/then", "a/miralund.eth/then?day=2025-01-01",
	"a/miralund.eth/known", "a/hanneke.eth", "0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd", "l/4", "boards/followers", "boards/muted", "network", "reports", "proof", "nothing",
}

// looksGood checks that all of a page fits narrow windows, and that axe-core finds nothing, with
// everything opened. Faults such as an error on the console fail the test too (browser.Page).
func looksGood(t *testing.T, p *browser.Page, but ...string) {
	t.Helper()
	p.Wait(browser.Complete)
	p.Settle()
	browser.Eval[any](p, "void document.querySelectorAll('main details, footer details').forEach((e) => (e.open = true))")
	p.Settle()
	p.Wait(browser.Complete)
	for _, size := range []browser.Size{browser.Narrow, browser.Phone} {
		p.Resize(size)
		p.Settle()
		if wide := browser.Eval[[]string](p, browser.TooWide); len(wide) > 0 {
			t.Errorf("%s: wider than a window of %s: %q", p.URL(), size, wide)
		}
	}
next:
	for _, b := range p.Barriers() {
		for _, rule := range but {
			if b.Rule == rule {
				continue next
			}
		}
		t.Errorf("%s: barrier %s (%s): %q", p.URL(), b.Rule, b.Help, b.Elements)
	}
}

// inBoth calls a function with the page in light and in dark.
func inBoth(t *testing.T, b *browser.Browser, at, before string, do func(*testing.T, *browser.Page)) {
	for name, dark := range map[string]bool{"light": false, "dark": true} {
		t.Run(name, func(t *testing.T) {
			p := b.Open(t, at, browser.View{Size: browser.Phone, Dark: dark, Before: before})
			do(t, p)
		})
	}
}

// No view of the demo logs an error, pans sideways on a small phone or has a barrier, for visitors
// with and without an account. The same holds for the other pages.
func TestDemo(t *testing.T) {
	base := start(t)
	b := browser.Start(t, browser.Options{Alone: true})
	explorer := base + "/_explore/index.html#/"
	const mira = "0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd"
	being := `location.protocol === 'http:' && localStorage.setItem('followpress mine ` + base + `/', '{"me":"` + mira + `","accounts":[["` + mira + `","miralund.eth",""]]}')`
	for name, before := range map[string]string{"visitor": "", "reader": being} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, b, explorer, before, func(t *testing.T, p *browser.Page) {
				for _, place := range places {
					p.Go(explorer + place)
					looksGood(t, p)
				}
			})
		})
	}
	for _, path := range []string{"/_preview", "/u/miralund.eth/index.html"} {
		t.Run(path, func(t *testing.T) {
			inBoth(t, b, base+path, "", func(t *testing.T, p *browser.Page) { looksGood(t, p) })
		})
	}
}

// Pages in files pass the same checks: reports, and the status of live, which reloads itself on
// purpose.
func TestWrittenPages(t *testing.T) {
	servers.Wanted(t)
	pages := fstest.MapFS{}
	for name, file := range map[string]string{
		"published.html": "report/testdata/published.html", "demo-efp.html": "report/testdata/demo-efp.html",
		"status.html": "cmd/internal/live/testdata/status.html", "status.css": "templates/status/style.css",
	} {
		body, err := fs.ReadFile(os.DirFS("../.."), file)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = &fstest.MapFile{Data: body}
	}
	server := httptest.NewServer(http.FileServerFS(pages))
	t.Cleanup(server.Close)
	b := browser.Start(t, browser.Options{Alone: true})
	for _, name := range []string{"published.html", "demo-efp.html", "status.html"} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, b, server.URL+"/"+name, "", func(t *testing.T, p *browser.Page) {
				p.Forgive("favicon.ico")
				looksGood(t, p, "meta-refresh")
				// Letters in charts are as large as elsewhere, and inside of the chart.
				small := browser.Eval[[]string](p, `[...document.querySelectorAll('figure text')].filter((e) => {
					const { left, right, height } = e.getBoundingClientRect();
					return height < 12 || left < 0 || right > innerWidth;
				}).map((e) => e.textContent)`)
				if len(small) > 0 {
					t.Errorf("letters of charts are small or cut on a phone: %q", small)
				}
			})
		})
	}
}
