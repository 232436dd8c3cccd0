package explorer_test

import (
	"fmt"
	"testing"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/browsers/internal/firefox"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// Firefox shows every view as Chromium does, at three sizes and without errors. Search works there
// without a mouse.
func TestFirefox(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := firefox.Start(t)
	h := serve(t, withReports(demo(t)), "/")
	for _, v := range demoViews() {
		t.Run(v.name, func(t *testing.T) {
			b.For(t)
			b.Resize(browser.Phone)
			b.Go(h.at(v.at))
			b.Wait(browser.Complete)
			if failed := b.Text(".failed"); failed != "" {
				t.Errorf("got the failure %q", failed)
			}
			for _, text := range v.texts {
				b.Wait(fmt.Sprintf("document.querySelector('main').innerText.includes(%q)", text))
			}
			for _, part := range v.parts {
				b.Wait(fmt.Sprintf("document.querySelector(%q)", part))
			}
			for _, size := range []browser.Size{browser.Phone, browser.Tablet, browser.Desktop} {
				b.Resize(size)
				if wide := firefox.Eval[[]string](b, browser.TooWide); len(wide) > 0 {
					t.Errorf("%s: wider than the window: %q", size, wide)
				}
			}
		})
	}
	b.Go(h.at("#/"))
	b.Wait(browser.Complete)
	b.Press("/mira")
	b.Wait("document.querySelector('[role=option]')")
	b.Press(firefox.ArrowDown + firefox.Enter)
	b.Wait("document.title.includes('miralund.eth') && " + browser.Complete)
}
