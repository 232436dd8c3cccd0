package explorer_test

import (
	"fmt"
	"testing"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// The graph does not block scrolling: one finger and the wheel scroll the page; two fingers and
// Ctrl zoom the graph.
func TestGraphLetsPagesScroll(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/a/miralund.eth/graph"), browser.View{Size: browser.Phone, Now: now, Before: `Object.defineProperty(navigator, 'maxTouchPoints', { value: 5 });`})
	shown(t, p)
	p.Wait("performance.getEntriesByName('followpress:graph').length > 0") // measured once the layout has come to rest
	x, y := p.Middle("main canvas")
	zoom := func() []float64 {
		return browser.Eval[[]float64](p, `(({ k, x, y }) => [k, x, y])(document.querySelector('main canvas').__zoom)`)
	}
	still := zoom()
	same := func(what string, want bool) {
		t.Helper()
		now := zoom()
		if is := now[0] == still[0] && now[1] == still[1] && now[2] == still[2]; is != want {
			t.Errorf("%s: got the graph at %v after %v, want it to stay there: %t", what, now, still, want)
		}
		still = now
	}

	before := browser.Eval[float64](p, "scrollY")
	p.Wheel(x, y, 120)
	p.Wait(fmt.Sprintf("scrollY > %g", before))
	same("the wheel", true)
	p.Wait("document.querySelector('.hint').innerText.includes('Ctrl')")
	barriers(t, p)

	const gesture = `((type, points, more) => {
		const canvas = document.querySelector('main canvas');
		const box = canvas.getBoundingClientRect();
		const at = ([x, y], identifier) => new Touch({ identifier, target: canvas, clientX: box.left + x, clientY: box.top + y });
		const touches = points.map(at);
		const event = new TouchEvent(type, { touches, targetTouches: touches, changedTouches: touches, bubbles: true, cancelable: true, view: window });
		canvas.dispatchEvent(event);
		return event.defaultPrevented;
	})`
	touch := func(kind, points string) bool { return browser.Eval[bool](p, gesture+"('"+kind+"', "+points+")") }
	touch("touchstart", "[[100, 100]]")
	if touch("touchmove", "[[100, 160]]") {
		t.Error("one finger: the page does not scroll")
	}
	same("one finger", true)
	p.Wait("document.querySelector('.hint').innerText.includes('two fingers')")
	touch("touchstart", "[[100, 100], [200, 100]]")
	if !touch("touchmove", "[[60, 100], [240, 100]]") {
		t.Error("two fingers: the page moves too")
	}
	same("two fingers", false)
	if got := browser.Eval[string](p, "getComputedStyle(document.querySelector('main canvas')).touchAction"); got != "pan-y" {
		t.Errorf("got touch-action %s, want pan-y", got)
	}

	const wheel = `(() => {
		const event = new WheelEvent('wheel', { deltaY: -100, ctrlKey: true, bubbles: true, cancelable: true, view: window });
		document.querySelector('main canvas').dispatchEvent(event);
		return event.defaultPrevented;
	})()`
	if !browser.Eval[bool](p, wheel) {
		t.Error("the wheel with Ctrl: the page zooms too")
	}
	same("the wheel with Ctrl", false)
}

// The graph explains its colors, and the names in the legend link to accounts.
func TestGraphHasALegend(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	for _, size := range []browser.Size{browser.Phone, browser.Tablet, browser.Desktop} {
		p := b.Open(t, h.at("#/a/miralund.eth/graph"), browser.View{Size: size, Now: now})
		shown(t, p)
		p.WaitFor(".legend button .dot")
		p.Click(".legend button")
		p.Wait("document.querySelector('.legend [aria-pressed=true]').innerText.includes(document.querySelector('#chosen strong').innerText)")
		browser.Eval[any](p, "void scrollTo(0, 0)")
		fits(t, p)
		barriers(t, p)
	}
}
