package explorer_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

// A leaderboard starts near the top of a phone screen, and shows its columns if there is room.
func TestBoardsUseTheirRoom(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	columns := "[...document.querySelectorAll('[role=columnheader]')].filter((e) => e.checkVisibility()).length"
	for size, want := range map[browser.Size]int{browser.Phone: 3, browser.Tablet: 7, browser.Desktop: 7} {
		for _, board := range []string{"followers", "following", "mutuals", "top8", "blocked"} {
			p := b.Open(t, h.at("#/boards/"+board), browser.View{Size: size, Now: now})
			shown(t, p)
			if got := browser.Eval[int](p, columns); got != want {
				t.Errorf("%s at %v: got %d columns, want %d", board, size, got, want)
			}
			top := browser.Eval[float64](p, "document.querySelector('[data-index]').getBoundingClientRect().top")
			if size == browser.Phone && top > float64(size.Height)/3 {
				t.Errorf("%s at %v: the first row begins at %v, want the first third", board, size, top)
			}
			p.WaitFor("[data-index='0'] .under")
			if text := p.Text("[data-index='0'] .under"); !strings.HasPrefix(text, "0x") {
				t.Errorf("%s at %v: got %q below the name, want its address", board, size, text)
			}
			fits(t, p)
			p.Close()
		}
	}
	p := b.Open(t, h.at("#/boards/followers"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	tabs := func() string { return p.Text("main nav.tabs") }
	if strings.Contains(tabs(), "Mute") || strings.Contains(p.Text("main"), "Fewest") {
		t.Errorf("got the tabs %q, want mutes behind More, and no tab for the smallest boards", tabs())
	}
	p.Click("main nav.tabs button")
	p.Click("a[href='#/boards/muted']")
	shown(t, p)
	if !strings.Contains(tabs(), "Muted") || p.Text("h1") != "Most muted" {
		t.Errorf("after More and Muted: got %q and the tabs %q", p.Text("h1"), tabs())
	}
	barriers(t, p)
}

// Finding a place works like the account search: while typing, by a name without .eth, by an
// address, and by keyboard alone.
func TestFindPlace(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/boards/followers"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	const box = ".boards input[role=combobox]"
	find := func(text string) {
		browser.Eval[any](p, "void (document.querySelector('"+box+"').focus(), document.querySelector('"+box+"').select())")
		p.Press(text)
	}
	const at = "document.activeElement.closest('[data-index]')?.innerText ?? ''"
	for _, text := range []string{"saltbread", "saltbread.eth", "0xc9dd503627d79fca814fd5be233dfa1f4e39931c"} {
		find(text)
		p.Press(browser.Enter)
		p.Wait(at + ".includes('saltbread.eth')")
		if got := browser.Eval[string](p, "document.activeElement.closest('[data-index]').dataset.index"); got != "20" {
			t.Errorf("%s: got row %s, want 20", text, got)
		}
	}
	find("tob")
	p.Wait("document.querySelector('#places [role=option]')?.innerText.includes('tobi-okafor.eth')")
	barriers(t, p)
	p.Press(browser.ArrowDown)
	p.Press(browser.Enter)
	p.Wait(at + ".includes('tobi-okafor.eth')")

	find("nobody-has-this")
	p.Press(browser.Enter)
	p.WaitForText("nobody-has-this is not on this leaderboard")
	fits(t, p)

	p.Go(h.at("#/boards/followers?place=12"))
	p.Wait("document.activeElement.closest('[data-index]')?.dataset.index === '11'")
}

// At every size, rows show how many accounts follow an account and since when, and use the
// available width.
func TestRowsUseTheirRoom(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	for _, size := range []browser.Size{browser.Phone, browser.Tablet, browser.Desktop} {
		p := b.Open(t, h.at("#/a/miralund.eth/followers"), browser.View{Size: size, Now: now})
		shown(t, p)
		row := p.Text("[data-index='0']")
		for _, text := range []string{"airdrop-desk.eth", "2 followers", "Feb 25, 2026", "Blocked"} {
			if !strings.Contains(row, text) {
				t.Errorf("%v: got the row %q, want %q in it", size, row, text)
			}
		}
		whole := browser.Eval[bool](p, "document.querySelector('[data-index=\"0\"] .whole').checkVisibility()")
		if whole != (size == browser.Desktop) {
			t.Errorf("%v: the whole address is shown: %t", size, whole)
		}
		// Only texts without a length limit may be cut off.
		if cut := browser.Eval[[]string](p, `[...document.querySelectorAll('.under, .numbers')].filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText)`); len(cut) > 0 {
			t.Errorf("%v: cut off: %q", size, cut)
		}
		p.Close()
	}
}

// Row elements are reused during scrolling. Layout moves none of them, and the focus stays.
func TestRowsAreUsedAgain(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	s := large(t)
	h := serve(t, s, "/")
	p := b.Open(t, h.at("#/boards/followers"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	p.Wheel(720, 600, 1500) // there are fewer rows at the top
	p.Wait("document.querySelectorAll('[data-index]').length > 30")
	browser.Eval[any](p, `void (globalThis.before = new Set(document.querySelectorAll('[data-index]')))`)
	for range 5 {
		p.Wheel(720, 600, 300)
		p.Settle()
	}
	rows := p.Count("[data-index]")
	if kept := browser.Eval[int](p, "[...document.querySelectorAll('[data-index]')].filter((row) => before.has(row)).length"); kept < rows*3/4 {
		t.Errorf("after 1,500 pixels: %d of %d rows are elements that were there, want three quarters at least", kept, rows)
	}
	misplaced := `[...document.querySelectorAll('[data-index]')].filter((row) => row.style.top || !row.style.transform ||
		Math.abs(row.getBoundingClientRect().top - document.querySelector('.rows').getBoundingClientRect().top - 56 * row.dataset.index) > 1).length`
	if n := browser.Eval[int](p, misplaced); n > 0 {
		t.Errorf("%d rows are not where their places are by a transform", n)
	}
	order := "[...document.querySelectorAll('[data-index]')].map((row) => Number(row.dataset.index))"
	if got := browser.Eval[[]int](p, order); !slices.IsSorted(got) {
		t.Errorf("got the rows in the order %v: the Tab key would jump", got)
	}
	browser.Eval[any](p, "void document.querySelectorAll('[data-index] a')[2].focus()")
	who := browser.Eval[string](p, "document.activeElement.href")
	p.Wheel(720, 600, 4000)
	p.Settle()
	if now := browser.Eval[string](p, "document.activeElement.href ?? ''"); now != who {
		t.Errorf("after scrolling on: got the focus on %q, want it to stay on %q", now, who)
	}
}

// The account to compare with is found as in the search box.
func TestCompareWith(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/a/miralund.eth/common"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	browser.Eval[any](p, "void document.querySelector('main input[role=combobox]').focus()")
	p.Press("tob")
	p.Wait("document.querySelector('#others [role=option]')?.innerText.includes('tobi-okafor.eth')")
	barriers(t, p)
	p.Press(browser.ArrowDown)
	p.Press(browser.Enter)
	p.WaitForText("Followed by both")
	p.Click("a[href$='common?with=another']")
	p.Wait("document.querySelector('main input[role=combobox]')")
	browser.Eval[any](p, "void document.querySelector('main input[role=combobox]').focus()")
	p.Press("saltbread") // without .eth
	p.Press(browser.Enter)
	p.WaitForText("saltbread.eth")
	p.WaitForText("Followed by both")
	p.Go(h.at("#/a/miralund.eth/common"))
	shown(t, p)
	browser.Eval[any](p, "void document.querySelector('main input[role=combobox]').focus()")
	p.Press("nobody-has-this")
	p.Press(browser.Enter)
	p.WaitForText("No account matches “nobody-has-this")
	barriers(t, p)
}

// Points and tags of the network link to accounts, and each chart has a text alternative.
func TestNetworkLeadsOn(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/network"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	p.WaitForText("12 accounts have at least 10 followers")
	p.Click(".chart details summary")
	p.Click(".chart details a[href='#/boards/followers?place=1']") // 17 to 32 followers
	p.Wait("document.activeElement.closest('[data-index]')?.innerText.includes('miralund.eth')")
	p.Back()
	shown(t, p)
	x, y := p.Middle(".chart .u-over")
	p.Mouse(x, y, false)
	p.Hold(x, y)
	p.Release(x, y)
	p.Wait("/boards.followers.place=/.test(location.hash)")
	shown(t, p)
	p.Back()
	shown(t, p)
	p.Click(".tag-bars a[href='#/network?tag=efp']")
	p.WaitFor(".tagged .ranking a[href*='/followers?tags=efp']")
	barriers(t, p)
	fits(t, p)
	p.Click(".tagged a[href*='/followers?tags=efp']")
	p.WaitForText("Clear filters")
	if board := "a[href='#/boards/blocked']"; func() bool { p.Go(h.at("#/network")); shown(t, p); return p.Count(".tag-bars "+board) != 1 }() {
		t.Errorf("got no %s in the tags, want that of the tag block", board)
	}

	spec := serve(t, generate(t, fixtures.Demo(), site.Config{}), "/")
	p.Go(spec.at("#/network"))
	shown(t, p)
	const files = "a[href$='/_data/datapackage.json']"
	if n := p.Count(".tag-bars a, .chart details a, " + files); n != 0 {
		t.Errorf("a site of the API spec: got %d links to missing objects, want none", n)
	}
	p.Go(serve(t, generate(t, fixtures.Demo(), site.Config{Data: true}), "/").at("#/network"))
	shown(t, p)
	if got := browser.Eval[string](p, "fetch(document.querySelector(\""+files+"\").href).then((response) => response.json()).then(({ profile }) => profile)"); got != "data-package" {
		t.Errorf("the graph as files: got the profile %q, want data-package", got)
	}
	p.Go(spec.at("#/network"))
	shown(t, p)
	p.Go(spec.at("#/miralund.eth"))
	shown(t, p)
	if n := p.Count(".head .tabs a[href$='/followers']"); n != 0 {
		t.Error("a site of the API spec: got a tab of followers, want none")
	}
}

// The navigation has reports if the site lists them. Otherwise the explorer does not request them.
func TestNavigationHasNoReportsWhereThereAreNone(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	without := demo(t)
	without[site.ExplorerPageKey] = strings.Replace(without[site.ExplorerPageKey], `<meta name="followpress-reports" content="beside">`, "", 1)
	h := serve(t, without, "/")
	p := b.Open(t, h.at("#/reports"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	const entry = "header nav a[href='#/reports']"
	if p.Count(entry) != 0 {
		t.Error("got an entry for reports of a site without any")
	}
	for _, path := range h.asked() {
		if strings.Contains(path, "_reports") {
			t.Errorf("requested %s, which is not there", path)
		}
	}
	if p.Count("main code, main pre") != 0 {
		t.Error("got a command in a view of a site without reports")
	}
	h.deploy(withReports(demo(t)))
	p.Go("about:blank")
	p.Go(h.at("#/"))
	shown(t, p)
	p.Click(entry)
	shown(t, p)
	// The chart uses the dates of the reports, not those of the data.
	p.WaitFor(".plot .u-over")
	x, y := p.Middle(".plot .u-over")
	p.Mouse(x, y, false)
	p.Wait("document.querySelector('.u-series .u-value').innerText === 'Oct 31, 2026'")
}

// Each view has its own title, so that tabs, histories and bookmarks tell them apart.
func TestTitles(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, withReports(demo(t)), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	p.Forgive(absent...)
	seen := map[string]string{}
	for _, at := range []string{
		"#/", "#/search?q=ti", "#/miralund.eth", "#/a/miralund.eth/following", "#/a/miralund.eth/followers", "#/a/miralund.eth/common",
		"#/a/miralund.eth/common/tobi-okafor.eth", "#/a/miralund.eth/common/inésprado.eth",
		"#/a/miralund.eth/graph", "#/tobi-okafor.eth", "#/l/4", "#/boards/followers", "#/boards/mutes", "#/network", "#/reports", "#/proof", "#/nothing",
	} {
		p.Go(h.at(at))
		shown(t, p)
		title := browser.Eval[string](p, "document.title")
		if other, ok := seen[title]; ok || !strings.Contains(title, "followpress") {
			t.Errorf("%s: got the title %q, which is that of %q, want a different one", at, title, other)
		}
		seen[title] = at
	}
}

// Addresses work in the spellings that chats, mails and pages produce.
func TestCopiedAddresses(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	controlled(p)
	for _, at := range []string{
		"#/a/saltbread.eth.", "#/saltbread.eth).", "#/a/saltbread.eth/following?sort=earliest&amp;q=e>", "#%2Fa%2Fsaltbread.eth", "#/a/saltbread.eth**",
		"%23/a/saltbread.eth", // URL that the service worker makes, from the second visit on
	} {
		p.Go("about:blank")
		p.Go(h.at(at))
		p.WaitForText("saltbread.eth")
		shown(t, p)
		if got := p.Text("h1"); got != "saltbread.eth" {
			t.Errorf("%s: got %q, want the account", at, got)
		}
	}
}

// Readers without scripts, or with a slow network, see a description of the site and links.
func TestShell(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	for _, config := range []site.Config{
		{API: site.APIEFP, Title: "Who <follows> whom"},
		{API: site.APIEFP, Pages: true, PublicURL: "https://graph.example"},
	} {
		h := serve(t, generate(t, fixtures.Demo(), config), "/")
		p := b.Open(t, h.at("#/miralund.eth"), browser.View{Size: browser.Phone, Now: now, NoScripts: true})
		p.Forgive("csp") // preloaded scripts that the policy blocks
		p.WaitForText("needs JavaScript")
		heading, header := config.Title, config.Title
		if config.Title == "" {
			heading, header = "Explore the follow graph", "followpress"
		}
		if p.Text("h1") != heading || p.Text("header") != header || strings.Contains(p.Text("main"), "Loading") {
			t.Errorf("got the heading %q, the header %q and %q, want %q and %q", p.Text("h1"), p.Text("header"), p.Text("main"), heading, header)
		}
		for _, link := range browser.Eval[[]string](p, "[...document.querySelectorAll('main a')].map((a) => a.href)") {
			at, err := url.Parse(link)
			if err != nil {
				t.Fatal(err)
			}
			if _, there := h.site[site.Key(strings.TrimPrefix(at.Path, "/"))]; strings.HasPrefix(link, h.URL) && !there {
				t.Errorf("without scripts: %s is not there", link)
			}
		}
		if sitemap := p.Count("a[href$='sitemap.xml']") == 1; sitemap != config.Pages {
			t.Errorf("got a link to the sitemap: %t, want %t", sitemap, config.Pages)
		}
		fits(t, p)
		p.Close()
	}
	// The page describes itself before its script loads.
	h := serve(t, demo(t), "/")
	network := browser.Slow
	network.Late = map[string]time.Duration{"http://*:*/_explore/explorer-*.js": 3 * time.Second}
	p := b.OpenSlow(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now}, network)
	p.Wait("document.querySelector('main .loading') || document.querySelector('main h1')")
	if text := fmt.Sprint(p.Text("header"), p.Text("main")); !strings.Contains(text, "followpress") {
		t.Errorf("while the script loads: got %q, want the name of the page", text)
	}
	shown(t, p)
}
