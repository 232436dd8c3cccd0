package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/client"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
)

// BenchmarkChecked measures the time of one answer in Chromium over a slow network, from openSite
// on, with and without keys. The browser has cached only the library. The object has 4 KiB, and its
// manifest shard lists 1,000 objects.
func BenchmarkChecked(b *testing.B) {
	servers.Wanted(b)
	objects := map[site.Key]string{}
	for i := range 16_000 {
		objects[site.Key(fmt.Sprintf("api/v1/lists/%d/records", i))] = fmt.Sprintf(`{"records":[],"list":%d,"text":%q}`, i, strings.Repeat("x", 4<<10))
	}
	s := testkey.New(b, "site.example")
	stored := s.Sign(b, memsite.New(b, site.Root{
		Format: site.Format, AsOf: "2026-11-24T00:00:00Z", BucketDigits: 1, ShardDigits: 1, Config: site.Config{BasePath: "api/v1"},
	}, objects), 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/site/", func(w http.ResponseWriter, r *http.Request) {
		body, ok := stored[site.Key(strings.TrimPrefix(r.URL.Path, "/site/"))]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, body)
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,">`)
	})
	for _, f := range client.Files() {
		mux.HandleFunc("/_client/"+f.Name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write(f.Body)
		})
	}
	page := httptest.NewServer(mux)
	b.Cleanup(page.Close)
	p := browser.Start(b, browser.Options{Alone: true}).Open(b, page.URL+"/", browser.View{Size: browser.Desktop})
	p.Forgive("/_manifest/delta/")
	p.Throttle(browser.Slow)
	ask := func(keys string) float64 {
		return browser.Eval[float64](p, fmt.Sprintf(`(async () => {
			const { openSite } = await import('/_client/followpress.js');
			await import('/_client/proof.js');
			localStorage.clear();
			const fetching = (url, init) => fetch(url, { ...init, cache: 'no-store' });
			const begun = performance.now();
			const site = openSite(location.origin + '/site/', { fetch: fetching, keys: %s });
			const { status } = await site.answer('GET', '/api/v1/lists/7/records');
			return status === 200 ? performance.now() - begun : -1;
		})()`, keys))
	}
	took := map[string][]float64{}
	for b.Loop() {
		for range 9 {
			for name, keys := range map[string]string{"without": "undefined", "with": fmt.Sprintf("[%q]", s.Public)} {
				ms := ask(keys)
				if ms < 0 {
					b.Fatalf("%s keys: got no answer", name)
				}
				took[name] = append(took[name], ms)
			}
		}
	}
	for name, all := range took {
		slices.Sort(all)
		b.Logf("%s keys: %.0f ms (%.0f to %.0f)", name, all[len(all)/2], all[0], all[len(all)-1])
		b.ReportMetric(all[len(all)/2], "ms-"+name)
	}
}
