package explorer_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

// withPages returns a site of the demo with pages, to be served at the top of a host, and a hostile account.
func withPages(t *testing.T) *host {
	files := copied(t, fixtures.Demo())
	accounts := files["accounts.ndjson"]
	accounts.Data = append(accounts.Data, `{"address":"0x00000000000000000000000000000000000000ee","ens":{"name":"<b>x","avatar":"javascript:alert(1)","records":{"description":"<script>alert(1)</script>","url":"javascript:alert(1)"}}}`+"\n"...)
	return serve(t, generate(t, files, site.Config{
		API: site.APIEFP, Pages: true, PublicURL: "https://graph.example", HistoryWindow: site.Window(site.DefaultHistoryWindow),
	}), "/")
}

// TestPages: pages obey their own policy, work without scripts, and lead to the same account in the
// explorer and to other pages.
func TestPages(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	h := withPages(t)
	p := b.Open(t, h.URL+"u/lowtide-studio.eth/index.html", browser.View{})
	if got := p.Text("h1"); got != "lowtide-studio.eth" {
		t.Errorf("heading: got %q", got)
	}
	if got := browser.Eval[string](p, `getComputedStyle(document.querySelector('main ul')).listStyleType`); got != "none" {
		t.Errorf("list style: got %q, want that of the style sheet", got)
	}
	if barriers := p.Barriers(); len(barriers) > 0 {
		t.Errorf("barriers: %v", barriers)
	}
	p.Click("main li a")
	p.Wait(`location.pathname.startsWith('/u/') && location.pathname !== '/u/lowtide-studio.eth/index.html' && document.querySelector('h1')`)
	p.Go(h.URL + "u/0x00000000000000000000000000000000000000ee/index.html")
	if got := p.Text("h1") + "|" + p.Text(".bio"); got != "<b>x|<script>alert(1)</script>" || p.Count("main b") != 2 || p.Count("main script") != 0 {
		t.Errorf("a hostile page: got %q, %d and %d elements", got, p.Count("main b"), p.Count("main script"))
	}
	p.Go(h.URL + "u/lowtide-studio.eth/index.html")
	p.Click("a.open")
	p.Wait(`location.pathname === '/_explore/index.html' && location.hash === '#/a/lowtide-studio.eth'`)
	p.WaitForText("lowtide-studio.eth")
}

// TestSharePage: if an account has a page, the dialog, its QR code and the canonical link lead to
// it, so that other sites preview it. The dialog offers the badge, card and feed that the site has.
func TestSharePage(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := withPages(t)
	const canonical, code = `document.querySelector('link[rel=canonical]')?.href ?? ''`, `[...document.querySelectorAll('dialog .address code')].map((e) => e.textContent)`
	for _, size := range []browser.Size{browser.Phone, browser.Desktop} {
		p := b.Open(t, h.at("#/a/lowtide-studio.eth"), browser.View{Size: size, Dark: size == browser.Phone, Now: now})
		shown(t, p)
		page := h.URL + "u/lowtide-studio.eth/index.html"
		p.Wait(canonical + ` === '` + page + `'`)
		p.Click(".share")
		p.WaitFor("dialog[open] canvas")
		barriers(t, p)
		fits(t, p)
		codes := browser.Eval[[]string](p, code)
		if len(codes) != 4 || codes[0] != page {
			t.Fatalf("got %q, want the address %s and three codes", codes, page)
		}
		browser.Eval[any](p, `import('../_client/qr.js').then(({ picture }) => { globalThis.wanted = picture('`+page+`'); }) && undefined`)
		p.Wait("globalThis.wanted")
		if !browser.Eval[bool](p, "wanted.includes(document.querySelector('dialog .qr path').getAttribute('d'))") {
			t.Error("the QR code is not that of the page")
		}
		for i, keys := range [][]site.Key{{"u/lowtide-studio.eth/index.html", "_badge/lowtide-studio.eth.svg", "_badge/dark/lowtide-studio.eth.svg"}, {"embed.js"}} {
			for _, key := range keys {
				if !strings.Contains(codes[i+1], `"`+h.URL+string(key)+`"`) || h.site[key] == "" {
					t.Errorf("got %s, want the object %s", codes[i+1], key)
				}
			}
		}
		if got := codes[3]; !strings.HasPrefix(got, h.URL+"api/v1/users/0x") || !strings.HasSuffix(got, "/notifications.atom") {
			t.Errorf("feed: got %s", got)
		}
		p.Close()
	}
	// An account without a name has no page.
	p := b.Open(t, h.at("#/a/0x83d869953c769613a750dd71c461853f5ee82a60"), browser.View{Now: now})
	shown(t, p)
	p.Click(".share")
	p.WaitFor("dialog[open] canvas")
	codes, want := browser.Eval[[]string](p, code), h.at("#/a/0x83d869953c769613a750dd71c461853f5ee82a60")
	if len(codes) != 3 || codes[0] != want || browser.Eval[string](p, canonical) != "" {
		t.Errorf("without a page: got %q and the canonical link %q, want %s, a card and a feed", codes, browser.Eval[string](p, canonical), want)
	}
}

// TestFollowCard: the element shows an account on a page of another origin. It works under a policy
// without inline styles, and the page's rules for all elements do not change it. It follows its
// attribute, shows hostile names as text, shows errors, and fetches shared data once.
func TestFollowCard(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	h := withPages(t)
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(bucket.Close)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rules.css" {
			w.Header().Set("Content-Type", "text/css")
			_, _ = io.WriteString(w, `*, *::before { all: unset; display: none !important; color: red !important; font: 40px serif !important; letter-spacing: 9px !important;
				direction: rtl !important; text-transform: uppercase !important; margin: 50px !important; content: 'x' !important; opacity: .1 !important; animation: none 9s !important }`)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; img-src data:; style-src 'self'; script-src %s; connect-src %[1]s", bucket.URL))
		_, _ = io.WriteString(w, `<!doctype html><html lang="en"><title>x</title><link rel="icon" href="data:,"><link rel="stylesheet" disabled href="/rules.css"><script type="module" src="`+bucket.URL+`/embed.js"></script>`+
			`<follow-card name="lowtide-studio.eth"></follow-card><follow-card name="0x00000000000000000000000000000000000000EE"></follow-card><follow-card></follow-card><follow-card name="Lowtide-studio.eth"></follow-card>`)
	}))
	t.Cleanup(page.Close)
	p := b.Open(t, page.URL, browser.View{})
	const text = `[...document.querySelectorAll('follow-card')].map((c) => c.shadowRoot?.querySelector('a')?.textContent ?? '')`
	p.Wait(text + `.every(Boolean)`)
	cards := browser.Eval[[]string](p, text)
	if !strings.HasPrefix(cards[0], "lowtide-studio.eth") || !strings.Contains(cards[0], "followers · ") || !strings.HasSuffix(cards[0], "graph.example") {
		t.Errorf("got %q", cards[0])
	}
	if !strings.HasPrefix(cards[1], "<b>x0 followers") || browser.Eval[int](p, `document.querySelectorAll('follow-card')[1].shadowRoot.querySelectorAll('b').length`) != 1 {
		t.Errorf("a hostile name: got %q", cards[1])
	}
	if !strings.HasPrefix(cards[2], "No name set") {
		t.Errorf("without a name: got %q", cards[2])
	}
	links := browser.Eval[[]string](p, `[...document.querySelectorAll('follow-card')].map((c) => c.shadowRoot.querySelector('a').getAttribute('href') ?? '')`)
	if want := []string{bucket.URL + "/u/lowtide-studio.eth/index.html", bucket.URL + "/_explore/index.html#/a/0x00000000000000000000000000000000000000ee", "", bucket.URL + "/u/lowtide-studio.eth/index.html"}; strings.Join(links, " ") != strings.Join(want, " ") {
		t.Errorf("links: got %q, want %q", links, want)
	}
	if got := slices.DeleteFunc(h.asked(), func(path string) bool { return !strings.HasPrefix(path, "/api/v1/users/lowtide-studio.eth/") }); len(got) != 2 {
		t.Errorf("two cards of an account: got the requests %q, want one of each of two objects", got)
	}
	const look = `[...document.querySelectorAll('follow-card')].map((card) => [card, ...card.shadowRoot.querySelectorAll('*')].map((e) =>
		JSON.stringify([e.getBoundingClientRect().width, e.getBoundingClientRect().height, ...[...getComputedStyle(e)].filter((name) => !name.startsWith('--')).map((name) => name + ':' + getComputedStyle(e)[name]),
			getComputedStyle(e, '::before').content])).join('\n'))`
	before := browser.Eval[[]string](p, look)
	browser.Eval[bool](p, `(document.querySelector('link[disabled]').disabled = false) || true`)
	p.Wait(`getComputedStyle(document.body).display === 'none'`)
	browser.Eval[bool](p, `document.documentElement.style.setProperty('display', 'block', 'important') || document.body.style.setProperty('display', 'block', 'important') || true`)
	for i, after := range browser.Eval[[]string](p, look) {
		if after != before[i] {
			t.Errorf("card %d under rules of the page for all elements: got %s\nwant %s", i, after, before[i])
		}
	}
	browser.Eval[bool](p, `document.querySelector('follow-card').setAttribute('name', 'bruno-frames.eth') ?? true`)
	p.Wait(text + `[0].startsWith('bruno-frames.eth')`)
}

// TestBrand: the page shows the title, logo, color and home page of its operator, in light and
// dark, and requests no other host except the logo's. The explorer's own name appears only in the
// credit at the foot.
func TestBrand(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	h := serve(t, generate(t, fixtures.Demo(), site.Config{
		API: site.APIEFP, Title: "Who follows whom", Logo: "https://brand.example/logo.png", Colour: "#7a1fa2", Home: "https://home.example/start",
	}), "/")
	for _, v := range []struct {
		view   browser.View
		accent string
	}{{browser.View{Size: browser.Desktop}, "rgb(122, 31, 162)"}, {browser.View{Size: browser.Phone, Dark: true}, ""}} {
		p := b.Open(t, h.at("#/miralund.eth"), v.view)
		shown(t, p)
		if got := p.Text(".brand"); got != "Who follows whom" {
			t.Errorf("brand: got %q", got)
		}
		if got := browser.Eval[string](p, "document.querySelector('.brand').href"); got != "https://home.example/start" {
			t.Errorf("home: got %q", got)
		}
		p.Wait("document.querySelector('.brand img').naturalWidth > 0")
		if got := browser.Eval[string](p, "getComputedStyle(document.documentElement).accentColor"); v.accent != "" && got != v.accent {
			t.Errorf("colour: got %s, want %s", got, v.accent)
		}
		if got := browser.Eval[string](p, "document.title"); !strings.HasSuffix(got, "· Who follows whom") {
			t.Errorf("title: got %q", got)
		}
		if got := browser.Eval[string](p, "document.body.innerText.replace(document.querySelector('footer').innerText, '')"); strings.Contains(strings.ToLower(got), "followpress") {
			t.Errorf("got our name on the page: %.1000q", got)
		}
		barriers(t, p)
		fits(t, p)
	}
	if got := b.Requests(); len(got) == 0 || slices.ContainsFunc(got, func(url string) bool { return url != "https://brand.example/logo.png" }) {
		t.Errorf("requests of other hosts: got %q, want the logo only", got)
	}
}

// A site offers only its own features. This one has no badges, no pages, no operations and no reports:
// nothing leads to them, and nothing requests them.
func TestNothingMissingIsOffered(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	snapshot := copied(t, fixtures.Demo())
	snapshot["events.ndjson"], snapshot["badges.ndjson"] = &fstest.MapFile{}, &fstest.MapFile{}
	for _, config := range []site.Config{{API: site.APIEFP}, {}} {
		h := serve(t, generateOnly(t, snapshot, config), "/")
		for _, before := range []string{"", being(h.URL, mira)} {
			p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: before})
			for _, v := range demoViews() {
				if v.name == "reports" {
					continue
				}
				p.Go(h.at(v.at))
				shown(t, p)
				if v.name == "profile" {
					p.Click(".share")
					p.WaitFor("dialog[open] canvas")
					p.Settle()
					if codes := browser.Eval[[]string](p, `[...document.querySelectorAll('dialog .address code')].map((e) => e.textContent)`); len(codes) != 1 {
						t.Errorf("share: got %q, want the address only", codes)
					}
				}
				for what, selector := range map[string]string{
					"reports": "a[href='#/reports']", "badges": ".badge", "activity": "a[href$='/activity'], a[href$='/then'], .feed", "a page": "link[rel=canonical], a[href*='/u/']",
				} {
					if p.Count(selector) > 0 {
						t.Errorf("%q %s: got %s, which the site lacks", config.API, v.at, what)
					}
				}
				for _, to := range browser.Eval[[]string](p, "[...document.querySelectorAll('a[href]')].filter((a) => a.origin === location.origin && !a.hash).map((a) => decodeURIComponent(a.pathname).slice(1))") {
					if _, there := h.site[site.Key(to)]; !there {
						t.Errorf("%q %s: got a link to %s, which the site lacks", config.API, v.at, to)
					}
				}
				p.Press(browser.Escape)
			}
			p.Close()
		}
	}
}
