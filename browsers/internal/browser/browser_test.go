package browser_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

// serve serves pages by their paths; any other path does not exist.
func serve(t *testing.T, pages map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const (
	start = "<!doctype html><html lang=en><title>A page</title><link rel=icon href=data:,><main><h1>A page</h1>"
	// policy allows what the pages below have, but no other scripts.
	policy = `<meta http-equiv=content-security-policy content="script-src 'unsafe-inline'; img-src 'self' data: https:">`
)

// Every problem in a page is a fault, and a page without problems has no faults.
func TestFaults(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	for name, test := range map[string]struct{ page, fault string }{
		"nothing":   {"<p>fine<script>console.log('fine')</script><img alt='' src=https://pictures.example/a.png>", ""},
		"exception": {"<script>null.length</script>", "exception: Uncaught TypeError"},
		"rejection": {"<script>Promise.reject(new Error('nobody hears'))</script>", "nobody hears"},
		"console":   {"<script>console.error('sad', 1)</script>", "console.error: \"sad\" 1"},
		"missing":   {"<img alt='' src=none.png>", "status 404"},
		"refused":   {"<script>fetch('http://127.0.0.1:1/').catch(() => 0)</script>", "request failed"},
		"policy":    {policy + "<script src=https://scripts.example/a.js></script>", "script-src"},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.Open(t, serve(t, map[string]string{"/": start + test.page}), browser.View{Size: browser.Phone})
			p.Settle()
			faults := strings.Join(p.Faults(), "\n")
			if (faults == "") != (test.fault == "") || !strings.Contains(faults, test.fault) {
				t.Errorf("got the faults %q, want %q", faults, test.fault)
			}
			p.Forgive("") // this test is about them
		})
	}
}

// Other hosts are played, and their requests recorded.
func TestElsewhere(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	site := serve(t, map[string]string{"/": start + `<img alt='' src=https://one.example/a.png><img alt='' src=http://two.example/b.png>`})
	p := b.Open(t, site, browser.View{Size: browser.Phone})
	p.Wait("[...document.images].every((image) => image.naturalWidth === 96)")
	got := b.Requests()
	slices.Sort(got)
	if want := []string{"http://two.example/b.png", "https://one.example/a.png"}; !slices.Equal(got, want) {
		t.Errorf("requests elsewhere: got %v, want %v", got, want)
	}
	if got, want := p.Hosts(), []string{strings.TrimPrefix(site, "http://"), "one.example", "two.example"}; !slices.Equal(got, want) {
		t.Errorf("hosts: got %v, want %v", got, want)
	}
}

// A page has the requested size, color scheme, clock and network speed. Fonts are always the same.
func TestView(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	site := serve(t, map[string]string{"/": start + "<p id=p style='font: 20px Verdana, system-ui'>WWWiii", "/large": strings.Repeat("x", 1_250_000)})
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	p := b.Open(t, site, browser.View{Size: browser.Tablet, Dark: true, Now: now, Before: "globalThis.before = 'here'"})
	got := browser.Eval[string](p, `[innerWidth, innerHeight, matchMedia('(prefers-color-scheme: dark)').matches,
		matchMedia('(prefers-reduced-motion)').matches, new Date().toISOString().slice(0, 16), before].join(' ')`)
	if want := "820 1180 true true 2026-03-04T05:06 here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	width := func(font string) float64 {
		return browser.Eval[float64](p, fmt.Sprintf(`(() => {
			const context = document.createElement('canvas').getContext('2d');
			context.font = '20px ' + %q;
			return context.measureText('WWWiii').width;
		})()`, font))
	}
	if got, want := width("system-ui"), width("DejaVu Sans"); got != want || want == width("DejaVu Serif") {
		t.Errorf("fonts: got a width of %v for system-ui, want %v, that of DejaVu Sans, and another one than DejaVu Serif's", got, want)
	}
	load := func() float64 {
		return browser.Eval[float64](p, "(async () => { const begun = performance.now(); await (await fetch('/large', { cache: 'no-store' })).text(); return performance.now() - begun })()")
	}
	if took := load(); took > 850 {
		t.Errorf("1.25 MB from this machine: took %v ms, want at most 850", took)
	}
	p.Throttle(browser.Slow)
	if took := load(); took < 900 || took > 2000 {
		t.Errorf("1.25 MB at 10 Mbit/s: took %v ms, want about 1,040", took)
	}
	p.Throttle(browser.Network{Late: map[string]time.Duration{"http://*:*/large": 300 * time.Millisecond}})
	if took := load(); took < 300 || took > 900 {
		t.Errorf("1.25 MB that come late: took %v ms, want about 320", took)
	}
}

// Barriers finds problems even if the policy of the page allows no other scripts.
func TestBarriers(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	site := serve(t, map[string]string{"/": policy + start + "<img src=data:,><p style='color:#ccc;background:#fff'>pale", "/good": policy + start + "<p>dark"})
	p := b.Open(t, site, browser.View{Size: browser.Phone})
	p.Forgive("data:,")
	var rules []string
	for _, barrier := range p.Barriers() {
		rules = append(rules, barrier.Rule)
	}
	if want := []string{"color-contrast", "image-alt"}; !slices.Equal(rules, want) {
		t.Errorf("got the barriers %v, want %v", rules, want)
	}
	if good := b.Open(t, site+"/good", browser.View{Size: browser.Phone}).Barriers(); len(good) > 0 {
		t.Errorf("got the barriers %v, want none", good)
	}
}

// Keys act as in a window: they type characters unless the page prevents it; Tab and Enter work.
func TestKeys(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	p := b.Open(t, serve(t, map[string]string{"/": start + `<input id=a aria-label=a><input id=b aria-label=b><a href=#there id=c>c</a>
		<script>addEventListener('keydown', (e) => { if (e.key === '/') { e.preventDefault(); a.focus(); } })</script>`}), browser.View{Size: browser.Phone})
	p.Press("/x/Yé")
	p.Press(browser.Tab + "b")
	p.PressBack(browser.Tab)
	p.Press("z")
	if got, want := browser.Eval[string](p, "a.value + ' ' + b.value"), "z b"; got != want {
		t.Errorf("typed: got %q, want %q", got, want)
	}
	p.Press(browser.Tab + browser.Tab + browser.Enter)
	p.Wait("location.hash === '#there'")
}

// Frames reports a slow frame.
func TestFrames(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	p := b.Open(t, serve(t, map[string]string{"/": start}), browser.View{Size: browser.Phone})
	frames := p.Frames(func() {
		time.Sleep(300 * time.Millisecond)
		browser.Eval[any](p, "(() => { for (const end = performance.now() + 200; performance.now() < end; ); })()")
		time.Sleep(300 * time.Millisecond)
	})
	if longest := slices.Max(frames); longest < 180 || longest > 400 || len(frames) < 20 {
		t.Errorf("got %d frames, the longest of %v ms; want at least 20, and one of about 200 ms", len(frames), longest)
	}
}

// A trace has the tasks of a page with their durations.
func TestTrace(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	p := browser.Start(t, browser.Options{}).Open(t, serve(t, map[string]string{"/": start}), browser.View{Size: browser.Phone})
	spans := p.Trace(func() {
		browser.Eval[any](p, "void (() => { for (const end = performance.now() + 110; performance.now() < end; ) { document.body.offsetHeight } })()")
	})
	if !slices.ContainsFunc(spans, func(s browser.Span) bool {
		return s.Of == "CrRendererMain" && s.Took >= 100_000 && s.Busy > 0 && s.Busy <= s.Took+1000
	}) {
		t.Errorf("got %d spans, want a task of the page of at least 100 ms", len(spans))
	}
}

// A failure reaches the program, and its cleanups run.
func TestRun(t *testing.T) {
	cleaned := false
	err := browser.Run(t.Context(), "some", func(r browser.T) {
		r.Cleanup(func() { cleaned = true })
		r.Errorf("first")
		r.Fatalf("second")
		r.Errorf("never")
	})
	if err == nil || err.Error() != "first\nsecond" || !cleaned {
		t.Errorf("got the error %v, cleaned up: %v; want first and second, and true", err, cleaned)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := browser.Run(ctx, "some", func(r browser.T) { cancel(); r.Helper(); r.Errorf("never") }); err == nil || err.Error() != context.Canceled.Error() {
		t.Errorf("after the end of its context: got %v, want that", err)
	}
}
