package explorer_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// focus describes the focused element, and whether it is visible.
const focus = `(() => {
	const e = document.activeElement;
	const style = getComputedStyle(e);
	const box = e.getBoundingClientRect();
	const parent = e.closest('label, [role=combobox], .search, .field') ?? e;
	const ring = (s) => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== 'none';
	return {
		is: e.tagName.toLowerCase() + ' ' + (e.getAttribute('aria-label') ?? e.innerText ?? '').slice(0, 40).trim(),
		tag: e.tagName, seen: ring(style) || ring(getComputedStyle(parent)),
		inWindow: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth && box.width > 0,
	};
})()`

type focused struct {
	Is, Tag        string
	Seen, InWindow bool
}

// A reader without a mouse finds an account, and goes back.
func TestSearchByKeys(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	const input = "input[role=combobox], [role=combobox] input, input[type=search]"
	if browser.Eval[focused](p, focus).Tag != "INPUT" {
		p.Press("/")
	}
	p.Wait("document.activeElement.tagName === 'INPUT'")
	p.Press("tob")
	p.Wait("document.querySelector('[role=option]')?.innerText.includes('tobi-okafor.eth')")
	p.Press(browser.ArrowDown)
	p.Wait("document.querySelector('[role=option][aria-selected=true]')")
	active := browser.Eval[string](p, "document.getElementById(document.querySelector('"+input+"').getAttribute('aria-activedescendant'))?.innerText ?? ''")
	if !strings.Contains(active, "tobi-okafor.eth") {
		t.Errorf("the active option: got %q, want tobi-okafor.eth", active)
	}
	barriers(t, p)
	p.Press(browser.Enter)
	p.WaitForText("Tobi Okafor")
	shown(t, p)
	if got, _ := url.PathUnescape(p.URL()); !strings.Contains(got, "0xefe670ab712731d564711f2e3096e5186fced3a7") && !strings.Contains(got, "tobi-okafor.eth") {
		t.Errorf("after Enter: got %s, want the profile of tobi-okafor.eth", got)
	}
	if at := browser.Eval[focused](p, focus); at.Tag != "H1" && at.Tag != "MAIN" {
		t.Errorf("after Enter: got the focus on %q, want it on the heading", at.Is)
	}
	p.Back()
	p.Wait("!location.hash.includes('tobi') && !location.hash.includes('0xefe6')")
	shown(t, p)

	// Without matches, Escape closes the list.
	if browser.Eval[focused](p, focus).Tag != "INPUT" {
		p.Press("/")
	}
	browser.Eval[any](p, "void document.querySelector('"+input+"').select()")
	p.Press("zzzzqq")
	p.Wait("document.querySelectorAll('[role=option]').length === 1") // a link to all accounts
	p.Settle()
	p.Press(browser.Escape)
	p.Wait("!document.querySelector('[role=listbox]:not([hidden])')?.checkVisibility()")
}

// The Tab key reaches every control once, and the focus is always visible.
func TestTabOrder(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, withReports(demo(t)), "/")
	for i, v := range demoViews() {
		size := []browser.Size{browser.Desktop, browser.Phone}[i%2]
		t.Run(v.name+" "+size.String(), func(t *testing.T) {
			p := b.Open(t, h.at(v.at), browser.View{Size: size, Now: now})
			shown(t, p)
			var order []string
			for range 25 {
				p.Press(browser.Tab)
				at := browser.Eval[focused](p, focus)
				if at.Tag == "BODY" || at.Tag == "HTML" {
					break // the end of the page
				}
				order = append(order, at.Is)
				if !at.Seen || !at.InWindow {
					t.Errorf("the focus on %q: seen %v, in the window %v; want both", at.Is, at.Seen, at.InWindow)
				}
			}
			if len(order) < 4 || !slices.ContainsFunc(order, func(is string) bool { return strings.HasPrefix(is, "input") }) {
				t.Errorf("got the tab order %q, want more elements, among them the search box", order)
			}
		})
	}
}

// The keyboard reaches all rows, including rows not in the document yet.
func TestRowsByKeys(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/boards/followers"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	browser.Eval[any](p, "void document.querySelector('[data-index] a, [data-index]').focus()")
	index := "Number(document.activeElement.closest('[data-index]')?.dataset.index ?? -1)"
	if got := browser.Eval[int](p, index); got != 0 {
		t.Fatalf("got the focus on row %d, want row 0", got)
	}
	for want := range 12 {
		p.Press(browser.ArrowDown)
		p.Wait(fmt.Sprintf("%s === %d", index, want+1))
	}
	p.Press(browser.End)
	p.Wait(index + " > 20")
	p.Press(browser.Home)
	p.Wait(index + " === 0")
	p.Press(browser.Enter)
	p.Wait("!location.hash.includes('boards')")
	shown(t, p)
}
