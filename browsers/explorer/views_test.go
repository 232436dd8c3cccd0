package explorer_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
)

// A view is a path in the explorer, with some of its contents.
type view struct {
	name, at string
	texts    []string
	parts    []string // selectors of required elements
}

// views returns the views of a site with two accounts, the first of which follows the second.
func views(config site.Config, who, other, list string, more map[string][]string) []view {
	rows := []string{"[data-index]"}
	if !config.EFP() {
		rows = nil // the API does not list followers
	}
	who, other = url.PathEscape(who), url.PathEscape(other)
	all := []view{
		{name: "home", at: "#/", parts: []string{"input[type=search], [role=combobox]", "main a[href^='#/']"}},
		{name: "search", at: "#/search?q=" + other, parts: []string{"[role=option], main a[href^='#/']"}},
		{name: "profile", at: "#/" + who, parts: []string{"a[href$='/following']", "a[href$='/followers']"}},
		{name: "following", at: "#/a/" + who + "/following", parts: []string{"[data-index]"}},
		{name: "followers", at: "#/a/" + who + "/followers", parts: rows},
		{name: "common", at: "#/a/" + who + "/common/" + other},
		{name: "graph", at: "#/a/" + who + "/graph", parts: []string{"main canvas"}},
		{name: "list", at: "#/l/" + list},
		{name: "board", at: "#/boards/followers", parts: []string{"[data-index]"}},
		{name: "board-following", at: "#/boards/following", parts: []string{"[data-index]"}},
		{name: "network", at: "#/network", parts: []string{"main canvas, main svg"}},
		{name: "reports", at: "#/reports", parts: []string{"main a[href*='_reports/2026-11-01']"}},
		{name: "nothing", at: "#/network/of/nothing"},
	}
	for i := range all {
		all[i].texts = more[all[i].name]
	}
	return all
}

// reports is an index of published reports, which a bucket holds next to the site.
const reports = `{"reports":[` +
	`{"date":"2026-11-01","from":"2026-10-31T00:00:00.000Z","to":"2026-11-01T00:00:00.000Z","follows":41,"unfollows":7,"new_lists":2,"gone_lists":0},` +
	`{"date":"2026-10-31","from":"2026-10-30T00:00:00.000Z","to":"2026-10-31T00:00:00.000Z","follows":23,"unfollows":12,"new_lists":0,"gone_lists":1},` +
	`{"date":"2026-10-30","from":"2026-10-29T00:00:00.000Z","to":"2026-10-30T00:00:00.000Z","follows":64,"unfollows":3,"new_lists":5,"gone_lists":0}]}`

func withReports(s memsite.Site) memsite.Site {
	s[site.ReportsKey] = reports
	return s
}

var demoTexts = map[string][]string{
	"home":            {"miralund.eth"},
	"search":          {"tobi-okafor.eth"},
	"profile":         {"Mira Lund", "sourdough by night"},
	"following":       {"lena-bikes.eth"},
	"graph":           {"miralund.eth"},
	"list":            {"miralund.eth"},
	"network":         {"47", "305"},
	"board":           {"miralund.eth", "inésprado.eth"},
	"board-following": {"everyonesfriend.eth"},
}

// demoViews returns the views of the demo under the full API.
func demoViews() []view {
	return views(site.Config{API: site.APIEFP}, "miralund.eth", "tobi-okafor.eth", "4", demoTexts)
}

// Every view of every kind of site works at three sizes, without errors, without barriers, and
// within the window.
func TestViews(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	spec, efp := site.Config{}, site.Config{API: site.APIEFP}
	for _, test := range []struct {
		name  string
		site  memsite.Site
		views []view
	}{
		{"demo", demo(t), demoViews()},
		{"demo of the specification", generate(t, fixtures.Demo(), spec), views(spec, "miralund.eth", "tobi-okafor.eth", "4", demoTexts)},
		{"conformance", generate(t, part(t, fixtures.Conformance()), spec), views(spec, "alice.eth", "bob.eth", "1", nil)},
		{"conformance of the whole API", generate(t, part(t, fixtures.ConformanceEFP()), efp), views(efp, "alice.eth", "bob.eth", "1", nil)},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := serve(t, withReports(test.site), "/")
			p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
			dark := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now, Dark: true})
			for _, v := range test.views {
				t.Run(v.name, func(t *testing.T) {
					p.For(t)
					dark.For(t)
					p.Resize(browser.Phone)
					p.Go(h.at(v.at))
					shown(t, p)
					for _, text := range v.texts {
						if !strings.Contains(p.Text("main"), text) {
							t.Errorf("got the text %.2000q, want %q in it", p.Text("main"), text)
						}
					}
					for _, part := range v.parts {
						if p.Count(part) == 0 {
							t.Errorf("got no %s, want one", part)
						}
					}
					title := browser.Eval[string](p, "document.title")
					if p.Count("h1") != 1 || p.Text("h1") == "" || title == "" {
						t.Errorf("got %d headings, %q, and the title %q; want one of each", p.Count("h1"), p.Text("h1"), title)
					}
					barriers(t, p)
					for _, size := range []browser.Size{browser.Phone, browser.Tablet, browser.Desktop} {
						p.Resize(size)
						fits(t, p)
					}
					dark.Go(h.at(v.at))
					shown(t, dark)
					barriers(t, dark)
				})
			}
		})
	}
}

// Every account and list of the conformance snapshots, which cover all odd cases, has its views.
func TestEveryProfile(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	for _, config := range []site.Config{{}, {API: site.APIEFP, Names: site.NamesLookup}} {
		t.Run("api "+config.API, func(t *testing.T) {
			suite := fixtures.ConformanceEFP()
			if !config.EFP() {
				suite = fixtures.Conformance()
			}
			s := generate(t, part(t, suite), config)
			h := serve(t, withReports(s), "/")
			p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now})
			for _, place := range everyPlace(t, s) {
				p.Go(h.at(place))
				there(t, p)
			}
			p.Settle()
		})
	}
}

// everyPlace returns the profiles of all accounts with followers, other views for some of them, and
// all lists.
func everyPlace(t *testing.T, s memsite.Site) (places []string) {
	t.Helper()
	var top struct{ Accounts [][]any }
	if err := json.Unmarshal([]byte(s[site.TopKey]), &top); err != nil {
		t.Fatal(err)
	}
	for i, row := range top.Accounts[:min(50, len(top.Accounts))] {
		address, name := fmt.Sprint(row[0]), fmt.Sprint(row[1])
		if name != "" && i%3 == 0 {
			places = append(places, "#/a/"+url.PathEscape(name))
		} else {
			places = append(places, "#/"+address)
		}
		if i%8 == 0 {
			places = append(places, "#/a/"+address+"/following", "#/a/"+address+"/followers", "#/a/"+address+"/graph")
		}
	}
	lists := map[string]bool{}
	for key := range s {
		if rest, ok := strings.CutPrefix(string(key), "api/v1/lists/"); ok {
			token, _, _ := strings.Cut(rest, "/")
			lists[token] = true
		}
	}
	for token := range lists {
		places = append(places, "#/l/"+token)
	}
	slices.Sort(places)
	if len(places) < 40 {
		t.Fatalf("got %d places, want at least 40", len(places))
	}
	return places
}

// allowOthers stores the reader's consent to pictures of other hosts.
const allowOthers = `localStorage.setItem('followpress', '{"others":true}');`

// Views match their screenshots. Each is compared at one size at least, the first ones at all
// sizes.
func TestScreenshots(t *testing.T) {
	servers.Nightly(t)
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, withReports(demo(t)), "/")
	happened := serve(t, withHistory(t, fixtures.Demo(), lately()), "/")
	k := newKey(t, "follow.example", 1)
	signed := serve(t, k.Sign(t, naming(t, site.APIEFP, k.Public), 7), "/")
	for _, shot := range []struct {
		name, at string
		size     browser.Size
		dark     bool
		docs     bool // whether docs/explorer.md shows it
	}{
		{"home", "#/", browser.Phone, false, false},
		{"home", "#/", browser.Desktop, true, true},
		{"search", "#/search?q=ti", browser.Phone, false, false},
		{"search", "#/search?q=ti", browser.Tablet, false, false},
		{"profile", "#/miralund.eth", browser.Phone, true, false},
		{"profile", "#/miralund.eth", browser.Tablet, false, false},
		{"profile", "#/miralund.eth", browser.Desktop, false, true},
		{"following", "#/a/miralund.eth/following", browser.Tablet, false, false},
		{"followers", "#/a/miralund.eth/followers", browser.Phone, false, false},
		{"common", "#/a/miralund.eth/common/tobi-okafor.eth", browser.Desktop, false, false},
		{"graph", "#/a/miralund.eth/graph", browser.Desktop, true, true},
		{"graph", "#/a/miralund.eth/graph", browser.Phone, false, false},
		{"list", "#/l/4", browser.Phone, false, false},
		{"board", "#/boards/followers", browser.Phone, false, false},
		{"board", "#/boards/followers", browser.Desktop, false, true},
		{"network", "#/network", browser.Desktop, false, true},
		{"network", "#/network", browser.Phone, true, false},
		{"reports", "#/reports", browser.Desktop, false, true},
		{"activity", "#/a/miralund.eth/activity", browser.Desktop, false, true},
		{"activity", "#/a/miralund.eth/activity?of=others", browser.Phone, true, false},
		{"then", "#/a/miralund.eth/then?day=2026-10-24", browser.Desktop, false, true},
		{"yours", "#/", browser.Desktop, false, true},
		{"yours", "#/", browser.Phone, true, false},
		{"known", "#/a/hanneke.eth/known", browser.Phone, false, false},
		{"proof", "#/proof", browser.Phone, false, false},
		{"proof", "#/proof", browser.Desktop, true, true},
	} {
		name := fmt.Sprintf("%s-%s", shot.name, shot.size)
		if shot.dark {
			name += "-dark"
		}
		t.Run(name, func(t *testing.T) {
			h := h
			before := allowOthers
			switch shot.name {
			case "activity", "then", "yours":
				h = happened
			}
			if shot.name == "yours" || shot.name == "known" {
				before += being(h.URL, mira, tobi) + fmt.Sprintf(`localStorage.setItem('followpress viewed %s', '[[%q,"hanneke.eth",""],[%q,"tobi-okafor.eth",""]]');`, h.URL, hanneke, tobi)
			}
			if shot.name == "proof" {
				h = signed
			}
			p := b.Open(t, h.at(shot.at), browser.View{Size: shot.size, Dark: shot.dark, Now: now, Before: before})
			p.Forgive(absent...)
			shown(t, p)
			if shot.name == "proof" {
				sealed(t, p, "Signed by follow.example")
				// Hide values that differ between runs or versions of the explorer.
				browser.Eval[any](p, `document.querySelectorAll('main code').forEach((code) => {
					code.textContent = code.textContent.replace(/\b[0-9a-f]{64}/, '0'.repeat(64)).replace(location.host, 'follow.example');
				})`)
			}
			folder := "testdata/screens"
			if shot.docs {
				folder = "../../docs/screens"
			}
			p.Golden(folder, name, *update)
		})
	}
}
