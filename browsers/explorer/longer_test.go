package explorer_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/explorer"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
)

// longer returns a site whose explorer has texts that are half as long again.
func longer(t *testing.T, s memsite.Site, config site.Config) memsite.Site {
	t.Helper()
	own, err := os.ReadFile("../../explorer/testdata/longer/own.ts")
	if err != nil {
		t.Fatal(err)
	}
	s = maps.Clone(s)
	config.Explorer = true
	for _, f := range explorer.Spoken(config, string(own)) {
		s[site.ExplorerKey(f.Name)] = string(f.Body)
	}
	return s
}

// crowded finds texts of the explorer that are cut off or overlap. Texts of users (bdi), addresses
// (code, .short) and the end of the question about pictures, on one line, may be cut.
const crowded = `(() => {
	const shown = [], found = [];
	const walker = document.createTreeWalker(document.querySelector('dialog:modal') ?? document.body, NodeFilter.SHOW_TEXT);
	for (let node = walker.nextNode(); node; node = walker.nextNode()) {
		const parent = node.parentElement;
		if (!node.data.trim() || parent.closest('.hidden, .skip, .avatar, noscript, script, style, option, [hidden], dialog:not([open])') || !parent.checkVisibility({ visibilityProperty: true, opacityProperty: true })) {
			continue;
		}
		const range = document.createRange();
		range.selectNodeContents(node);
		for (const rect of range.getClientRects()) {
			let [left, top, right, bottom] = [rect.left, rect.top, rect.right, rect.bottom];
			let fixed = false, scrolls = false, cut = '';
			for (let e = parent; e && e !== document.body; e = e.parentElement) {
				const style = getComputedStyle(e);
				fixed ||= style.position === 'fixed';
				const button = e.matches('button, .chip, .tabs a') && style.display !== 'inline';
				if (style.overflowX !== 'visible' || style.overflowY !== 'visible' || button) {
					const box = e.getBoundingClientRect();
					scrolls ||= [style.overflowX, style.overflowY].some((way) => way === 'auto' || way === 'scroll');
					if (!scrolls && !parent.closest('bdi, code, .short, .question p') && (right > box.right + 1 || left < box.left - 1 || bottom > box.bottom + 3 || top < box.top - 3)) {
						cut ||= e.outerHTML.slice(0, 80);
					}
					if (!button) {
						[left, top, right, bottom] = [Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom)];
					}
				}
			}
			if (right - left <= 2 || bottom - top <= 2) {
				continue; // without room for it, it is left out
			}
			if (cut) {
				found.push('cut off: ' + node.data.slice(0, 60) + ' in ' + cut);
			}
			if (!fixed) {
				shown.push({ node, left, top, right, bottom });
			}
		}
	}
	shown.sort((a, b) => a.top - b.top);
	shown.forEach((a, i) => {
		for (let k = i + 1; k < shown.length && shown[k].top < a.bottom; k++) {
			const b = shown[k];
			const high = Math.min(a.bottom, b.bottom) - b.top, wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
			if (a.node !== b.node && wide > 2 && high > 0.4 * Math.min(a.bottom - a.top, b.bottom - b.top)) {
				found.push('over each other: ' + a.node.data.slice(0, 60) + ' and ' + b.node.data.slice(0, 60));
			}
		}
	});
	return [...new Set(found)].slice(0, 8);
})()`

// Every view has room for texts half as long again: nothing is outside the window, cut off, or
// overlapping.
func TestLongerTexts(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	config := site.Config{API: site.APIEFP}
	k := newKey(t, "follow.example", 1)
	own := site.Config{API: site.APIEFP, ExplorerKeys: k.Public}
	h := serve(t, withReports(longer(t, withHistory(t, fixtures.Demo(), lately()), config)), "/")
	signed := serve(t, k.Sign(t, longer(t, naming(t, site.APIEFP, k.Public), own), 7), "/")
	all := demoViews()
	for _, at := range []string{
		"#/search?q=e", "#/search?q=nobody-has-this", "#/a/nobody-has-this", "#/a/miralund.eth/following?show=all&tags=free",
		"#/a/miralund.eth/common", "#/a/miralund.eth/activity", "#/a/miralund.eth/activity?of=others",
		"#/a/miralund.eth/then?day=2026-10-24", "#/a/miralund.eth/then?day=2026-09-02", "#/a/hanneke.eth/known", "#/boards/blocked", "#/boards/top8",
		"#/network?tag=free", "#/proof",
	} {
		all = append(all, view{name: strings.TrimPrefix(at, "#/"), at: at})
	}
	// Elements opened by a button, by place.
	opened := map[string]string{"profile": ".share", "following": ".asked .plain", "home": ".tools button"}
	for name, test := range map[string]struct {
		of     *host
		before string
		views  []view
	}{
		"anybody": {h, "", all},
		"a reader": {h, being(h.URL, mira, tobi), []view{
			{name: "home", at: "#/"}, {name: "my profile", at: "#/miralund.eth"}, {name: "profile", at: "#/hanneke.eth"},
			{name: "followers", at: "#/a/hanneke.eth/followers"}, {name: "known", at: "#/a/hanneke.eth/known"}, {name: "board", at: "#/boards/mutuals"},
		}},
		"signed": {signed, "", []view{{name: "home", at: "#/"}, {name: "proof", at: "#/proof"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.Open(t, test.of.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: test.before})
			p.Forgive(absent...)
			check := func(t *testing.T, what string) {
				t.Helper()
				for _, size := range []browser.Size{browser.Phone, browser.Desktop} {
					p.Resize(size)
					p.Settle() // charts are redrawn
					fits(t, p)
					for _, found := range browser.Eval[[]string](p, crowded) {
						t.Errorf("%s at %s: %s", what, size, found)
					}
				}
			}
			for _, v := range test.views {
				t.Run(v.name, func(t *testing.T) {
					p.For(t)
					p.Go(test.of.at(v.at))
					shown(t, p)
					check(t, v.at)
					if button := opened[v.name]; button != "" {
						p.Click(button)
						check(t, v.at+" with what "+button+" opens")
						p.Press(browser.Escape)
					}
				})
			}
		})
	}
}
