package explorer_test

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
)

// asOf is the time of all snapshots with a history in these tests.
var asOf = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// A deed is an operation of a list before asOf.
type deed struct {
	ago         time.Duration
	list, about string
	code        op.Code
	tag         string
}

const (
	mira    = "0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd" // miralund.eth, list 4
	tobi    = "0xefe670ab712731d564711f2e3096e5186fced3a7" // tobi-okafor.eth, list 7
	hanneke = "0x7b3632a747db89ecd4f830f6e120c96784a163df" // hanneke.eth, list 9
	nobody  = "0x000000000000000000000000000000000000dead"
)

const aDay = 24 * time.Hour

// lately returns a history that produces the records of the demo.
func lately() []deed {
	return []deed{
		{40 * aDay, "4", hanneke, op.Follow, ""},
		{10 * aDay, "7", nobody, op.Follow, ""},
		{9*aDay + time.Hour, "4", nobody, op.Follow, ""},
		{9 * aDay, "7", mira, op.Follow, ""},
		{3*aDay + time.Second, "4", tobi, op.Follow, ""},
		{3 * aDay, "4", tobi, op.Tag, "top8"},
		{3 * aDay, "4", tobi, op.Tag, "efp"},
		{36 * time.Hour, "4", nobody, op.Unfollow, ""},
		{35 * time.Hour, "4", tobi, op.Untag, rightToLeft},
		{3 * time.Hour, "9", mira, op.Tag, markup},
		{5 * time.Minute, "7", nobody, op.Unfollow, ""},
	}
}

// withOps returns a snapshot with a history.
func withOps(t *testing.T, snapshot fs.FS, deeds []deed) fs.FS {
	t.Helper()
	files := copied(t, snapshot)
	var rows strings.Builder
	for i, d := range deeds {
		about, err := site.ParseAddress(d.about)
		if err != nil {
			t.Fatal(err)
		}
		text := append(append([]byte{1, byte(d.code), 1, 1}, about[:]...), d.tag...)
		fmt.Fprintf(&rows, `{"token_id":%q,"time":%q,"chain_id":8453,"block":%d,"log_index":1,"op":"0x%s"}`+"\n", d.list, asOf.Add(-d.ago).Format("2006-01-02T15:04:05.000Z"), 1000+i, hex.EncodeToString(text))
	}
	files["ops.ndjson"] = &fstest.MapFile{Data: []byte(rows.String()), Mode: 0o644}
	return files
}

// withHistory returns the site of a snapshot with a history.
func withHistory(t *testing.T, snapshot fs.FS, deeds []deed) memsite.Site {
	t.Helper()
	return generate(t, withOps(t, snapshot, deeds), site.Config{API: site.APIEFP, HistoryWindow: site.Window(site.DefaultHistoryWindow)})
}

// lines returns the entries on a page, without their times.
const lines = "[...document.querySelectorAll('main .act')].map((e) => [...e.querySelectorAll(':scope > :not(time)')].map((part) => part.querySelector('bdi')?.innerText ?? part.innerText).join(' '))"

func equalTexts(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n%q, want\n%q", what, got, want)
	}
}

// Every view of operations works at three sizes, in light and dark, without errors, without
// barriers, and within the window.
func TestHistoryViews(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, withReports(withHistory(t, fixtures.Demo(), lately())), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	dark := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now, Dark: true})
	for _, v := range []view{
		{"home", "#/", []string{"Latest activity", "Ages as of Nov 1, 2026, 12:00 AM UTC", "5 minutes ago", "3 hours ago", "35 hours ago", "3 days ago"}, []string{".act time[datetime='2026-10-31T23:55:00.000Z']"}},
		{"activity", "#/a/miralund.eth/activity", []string{"From Sep 20, 2026, 9:00 AM UTC to Nov 1, 2026, 12:00 AM UTC", "7 of 7", "Oct 30, 2026", "Oct 29, 2026", "Sep 22, 2026", "hanneke.eth"}, []string{"section[aria-labelledby] .act a[href^='#/a/']"}},
		{"activity of others", "#/a/miralund.eth/activity?of=others", []string{"2 of 2", "tobi-okafor.eth", "9:00 PM"}, nil},
		{"no entry of a kind", "#/a/miralund.eth/activity?of=others&only=untag", []string{"No matching activity", "0 of 0 matches, 2 in total"}, nil},
		{"following then", "#/a/miralund.eth/then?day=2026-10-24", []string{"from Sep 20, 2026 to Nov 1, 2026", "removed Oct 30, 2026"}, []string{"input[type=date][min='2026-09-20'][max='2026-11-01']", "[data-index]"}},
		{"followers then", "#/a/miralund.eth/then?day=2026-10-22&of=followers", []string{"Added since\n1"}, []string{"[data-index]"}},
		{"who came", "#/a/miralund.eth/then?day=2026-10-24&show=came", []string{"added Oct 28, 2026", "tobi-okafor.eth"}, []string{"[data-index]"}},
		{"nobody left", "#/a/miralund.eth/then?of=followers&day=2026-10-31&show=left", []string{"No one removed since."}, nil},
		{"a day before", "#/a/miralund.eth/then?day=2026-09-01", []string{"only goes back to Sep 20, 2026", "No report covers that time"}, nil},
		{"network", "#/network", []string{"5 new follows and 2 unfollows by primary lists since Sep 22, 2026"}, []string{".plot canvas", "select"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			p.For(t)
			dark.For(t)
			p.Resize(browser.Phone)
			p.Go(h.at(v.at))
			shown(t, p)
			text := p.Text("main")
			for _, want := range v.texts {
				if !strings.Contains(text, want) {
					t.Errorf("got the text %.3000q, want %q in it", text, want)
				}
			}
			for _, part := range v.parts {
				if p.Count(part) == 0 {
					t.Errorf("got no %s, want one", part)
				}
			}
			barriers(t, p)
			for _, size := range []browser.Size{{Width: 320, Height: 640}, browser.Phone, browser.Tablet, browser.Desktop} {
				p.Resize(size)
				fits(t, p)
			}
			dark.Go(h.at(v.at))
			shown(t, dark)
			barriers(t, dark)
		})
	}
	p.For(t)
	if pwned := browser.Eval[bool](p, "'pwned' in globalThis"); pwned {
		t.Error("a tag has run")
	}
}

// Activity keeps the site's order, grouped by day in the reader's language. Filters are buttons
// with their own URLs.
func TestActivity(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, withHistory(t, fixtures.Demo(), lately()), "/")
	p := b.Open(t, h.at("#/a/miralund.eth"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	p.Click("main .tabs a[href$='/activity']")
	p.Wait("document.querySelectorAll('main .act').length === 7")
	all := []string{
		"untagged tobi-okafor.eth مرحبا�txt.exe� עולם", "unfollowed 0x0000…dead", "tagged tobi-okafor.eth efp", "tagged tobi-okafor.eth top8",
		"followed tobi-okafor.eth", "followed 0x0000…dead", "followed hanneke.eth",
	}
	equalTexts(t, "by the account", browser.Eval[[]string](p, lines), all)
	days := browser.Eval[[]string](p, "[...document.querySelectorAll('main .day')].map((e) => e.innerText + ' ' + e.parentElement.querySelectorAll('.act').length)")
	equalTexts(t, "days", days, []string{"Oct 30, 2026 2", "Oct 29, 2026 2", "Oct 28, 2026 1", "Oct 22, 2026 1", "Sep 22, 2026 1"})

	// With the keyboard only: the second filter, then another one.
	browser.Eval[any](p, "document.querySelectorAll('main .filters button')[1].focus()")
	p.Press(" ")
	p.Wait("location.hash.endsWith('activity?only=unfollow') && document.activeElement.getAttribute('aria-pressed') === 'true'")
	equalTexts(t, "unfollows", browser.Eval[[]string](p, lines), []string{all[1]})
	p.Press(browser.Tab)
	p.Press(browser.Enter)
	p.Wait("document.querySelectorAll('main .act').length === 3")
	if got := p.Text("main p[role=status]"); got != "3 of 3 matches, 7 in total" {
		t.Errorf("filtered: got %q", got)
	}
	p.Click("main nav.tabs a[href*='of=others']")
	p.Wait("document.querySelector('main .act')?.innerText.includes('hanneke.eth')")
	if want := "#/a/" + mira + "/activity?of=others&only=unfollow%2Ctag"; !strings.HasSuffix(p.URL(), want) {
		t.Errorf("the other side: got %s, want %s", p.URL(), want)
	}

	// An account without news, and one without a list: a missing object is not a failure.
	p.Forgive("404")
	p.Go(h.at("#/a/" + nobody + "/activity"))
	shown(t, p)
	if got := p.Text("main"); !strings.Contains(got, "This account has no primary list.") {
		t.Errorf("without a list: got %q", got)
	}
	p.Go(h.at("#/a/everyonesfriend.eth/activity"))
	shown(t, p)
	if got := p.Text("main"); !strings.Contains(got, "No activity in this period.") {
		t.Errorf("without news: got %q", got)
	}
	p.Go(h.at("#/a/nobody-has-this-name.eth/activity"))
	shown(t, p)
	if got := p.Text("h1"); got != "Account not found" {
		t.Errorf("an unknown account: got the heading %q", got)
	}
}

// A site without history shows no activity tabs, and requests no activity.
func TestNoHistory(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	for _, at := range []string{"#/a/miralund.eth", "#/network", "#/a/miralund.eth/activity", "#/a/miralund.eth/then"} {
		p.Go(h.at(at))
		shown(t, p)
		if got := p.Count("main .tabs a[href$='/activity'], main .tabs a[href$='/then']"); got > 0 {
			t.Errorf("%s: got %d activity tabs, want none", at, got)
		}
		if strings.Contains(at, "/a/miralund.eth/") && !strings.Contains(p.Text("main"), "This site has no activity data.") {
			t.Errorf("%s: got %q, want a notice that the site has no history", at, p.Text("main"))
		}
	}
	for _, path := range h.asked() {
		if strings.Contains(path, "_search/activity") || strings.Contains(path, "_search/notifications") || strings.HasSuffix(path, "_explore/recent") || strings.HasSuffix(path, "_explore/growth") {
			t.Errorf("got a request for %s, want none", path)
		}
	}
}

// The URL contains the chosen day. The counts shown match what happened since.
func TestAsOf(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, withReports(withHistory(t, fixtures.Demo(), lately())), "/")
	p := b.Open(t, h.at("#/a/miralund.eth"), browser.View{Size: browser.Tablet, Now: now})
	shown(t, p)
	held := strings.Count(string(mustRead(t, fixtures.Demo(), "records.ndjson")), `"token_id":"4"`)
	p.Click("main .tabs a[href$='/then']")
	const figures = "[...document.querySelectorAll('main .figures dd')].map((e) => e.innerText).join(' ')"
	const input = "main input[type=date]"
	choose := func(date string) {
		t.Helper()
		browser.Eval[any](p, fmt.Sprintf("(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event('change', { bubbles: true })); })()", input, date))
	}
	for _, test := range []struct {
		day, want string
	}{
		{"2026-10-25", fmt.Sprintf("%d %d 1 1", held, held)},   // the default day is a week before the snapshot: tobi came, no account left
		{"2026-11-01", fmt.Sprintf("%d %d 0 0", held, held)},   // the day of the snapshot itself
		{"2026-10-28", fmt.Sprintf("%d %d 0 1", held+1, held)}, // the day after tobi came
		{"2026-10-27", fmt.Sprintf("%d %d 1 1", held, held)},
		{"2026-10-21", fmt.Sprintf("%d %d 1 0", held-1, held)}, // before the first follow
		{"2026-09-21", fmt.Sprintf("%d %d 2 0", held-2, held)},
	} {
		if test.day != "2026-10-25" {
			choose(test.day)
			p.Wait(fmt.Sprintf("location.hash.includes('day=%s')", test.day))
		}
		p.Wait("document.querySelector('main .figures') && !document.querySelector('main .loading')")
		p.Settle()
		if got := browser.Eval[string](p, figures); got != test.want {
			t.Errorf("at the end of %s: got %s, want %s", test.day, got, test.want)
		}
		if got := browser.Eval[string](p, "document.querySelector('"+input+"').value"); got != test.day {
			t.Errorf("got the day %s, want %s", got, test.day)
		}
	}
	before := p.URL()
	for _, date := range []string{"2026-09-19", "2026-11-02", "0020-10-25", ""} {
		choose(date)
		p.Settle()
		if p.URL() != before {
			t.Errorf("chose %s, which is beyond the period: got %s, want to stay at %s", date, p.URL(), before)
		}
	}
	barriers(t, p)

	// A link to a day before the window leads to the report of that day.
	s := withHistory(t, fixtures.Demo(), lately())
	s[site.ReportsKey] = strings.ReplaceAll(reports, "2026-11-01T", "2026-09-02T")
	h.deploy(s)
	p.Go(h.at("#/a/miralund.eth/then?day=2026-09-02"))
	shown(t, p)
	if got := browser.Eval[string](p, "document.querySelector('main .empty a')?.getAttribute('href')"); !strings.HasSuffix(got, "/_reports/2026-11-01.html") {
		t.Errorf("a day before the period: got a link to %q, want its report", got)
	}
	p.Go(h.at("#/a/miralund.eth/then"))
	shown(t, p)
	p.Click("main details summary")
	p.Wait("document.querySelector('main details a')")
	links := browser.Eval[[]string](p, "[...document.querySelectorAll('main details a')].map((e) => e.innerText)")
	equalTexts(t, "reports of earlier days", links, []string{"What changed across the site from Oct 31, 2026 to Sep 2, 2026"})
}

func mustRead(t *testing.T, files fs.FS, name string) []byte {
	t.Helper()
	body, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Objects of an account with much activity are read on demand, within limits.
func TestMuchActivity(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	const lists = 10_400
	deeds := make([]deed, lists)
	for i := range deeds {
		deeds[i] = deed{time.Duration(lists-i) * 5 * time.Minute, fmt.Sprint(i + 1), followed, op.Follow, ""}
	}
	files := afero.NewIOFS(following(lists))
	snapshot := fstest.MapFS{}
	for _, name := range []string{"lists.ndjson", "accounts.ndjson", "records.ndjson", "events.ndjson", "badges.ndjson"} {
		snapshot[name] = &fstest.MapFile{Data: mustRead(t, files, name), Mode: 0o644}
	}
	snapshot["meta.json"] = &fstest.MapFile{Data: []byte(`{"format":1,"as_of":"2026-11-01T00:00:00Z"}`), Mode: 0o644}
	h := serve(t, withHistory(t, snapshot, deeds), "/")
	p := b.Open(t, h.at("#/a/"+followed+"/activity?of=others"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	shards := func() (count int) {
		for _, path := range h.asked() {
			if strings.Contains(path, "_search/notifications/") {
				count++
			}
		}
		return count
	}
	if got := shards(); got != 1 || p.Count("main .act") != 100 {
		t.Errorf("at first: got %d objects and %d entries, want 1 and 100", got, p.Count("main .act"))
	}
	for range 9 {
		before := p.Count("main .act")
		p.Click("main .older")
		p.Wait(fmt.Sprintf("document.querySelectorAll('main .act').length === %d", before+100))
	}
	if got := shards(); got != 0 || p.Text("main p[role=status]") != "1,000 of 1,000 matches in the newest 1,000 of 10,400" {
		t.Errorf("after 1,000: got %d objects more, and %q", got, p.Text("main p[role=status]"))
	}
	p.Click("main .older")
	p.Wait("document.querySelectorAll('main .act').length === 1100")
	if got := shards(); got != 1 {
		t.Errorf("after 1,100: got %d objects more, want 1", got)
	}
	// For missing data, each click reads one object.
	p.Click("main .filters button:nth-child(2)")
	p.Wait("document.querySelectorAll('main .act').length === 0")
	p.Click("main .older")
	p.Wait("document.querySelector('main p[role=status]').innerText.includes('newest 3,000 of')")
	if got := shards(); got != 1 {
		t.Errorf("missing data: got %d objects, want 1", got)
	}

	p.Go(h.at("#/a/" + followed + "/then?of=followers&day=2026-09-26"))
	shown(t, p)
	// Entry 10,000 is 50,000 minutes old: of September 27.
	if got := shards(); got > 10 || !strings.Contains(p.Text("main .notice"), "the newest 9,") || !strings.Contains(p.Text("main .notice"), "the end of Sep 27, 2026") {
		t.Errorf("a month ago: got %d objects, and %q, want 10 at most, and how far they go back", got, p.Text("main .notice"))
	}
	if got := p.Text("main"); !strings.Contains(got, "More than 10,000 accounts") {
		t.Errorf("a month ago: got %q, want that not all are listed", got)
	}
	p.Go(h.at("#/a/" + followed + "/then?of=followers&day=2026-10-30&show=came"))
	shown(t, p)
	if got := shards(); got != 1 || p.Count("main .notice") > 0 || !strings.Contains(p.Text("main .figures"), "288") {
		t.Errorf("the day before: got %d objects, %q, and %q, want 1, and who came on one day", got, p.Text("main .notice"), p.Text("main .figures"))
	}
	barriers(t, p)
}

// A publish in progress never makes a view mix objects of two sites.
func TestActivityOfTwoSites(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	s := withHistory(t, fixtures.Demo(), lately())
	half := memsite.Site{}
	for key, body := range s {
		half[key] = body
	}
	half[site.ActivityKey("4", 0)] = strings.Replace(s[site.ActivityKey("4", 0)], `"total":7`, `"total":1007`, 1)
	h := serve(t, half, "/")
	p := b.Open(t, h.at("#/a/miralund.eth/activity"), browser.View{Size: browser.Desktop, Now: now})
	p.Forgive("404")
	p.Wait("document.querySelectorAll('main .act').length === 7")
	h.asked()
	p.Click("main .older")
	p.Wait("performance.getEntriesByType('resource').some(({ name }) => name.includes('/older/4/1'))")
	h.deploy(s)
	p.Wait("document.querySelector('main p[role=status]')?.innerText === '7 of 7' && !document.querySelector('.failed')")

	// The lists belong to another site than the activity.
	missing := slices.DeleteFunc(lately(), func(d deed) bool { return d.about == nobody && d.code == op.Unfollow && d.list == "4" })
	h.deploy(withHistory(t, fixtures.Demo(), missing))
	p.Go(h.at("#/a/miralund.eth/then?day=2026-10-20"))
	p.Wait("document.querySelector('main .notice')?.innerText.includes('updated while this page loaded')")
	barriers(t, p)
}

// A live site updates its history: the activity already loaded, the account as of a day, and the
// start.
func TestLiveHistory(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	happened := func(lists int) afero.Fs {
		deeds := make([]deed, lists)
		for i := range deeds {
			deeds[i] = deed{30*time.Hour - time.Duration(i)*time.Second, fmt.Sprint(i + 1), followed, op.Follow, ""}
		}
		return afero.FromIOFS{FS: withOps(t, afero.NewIOFS(following(lists)), deeds)}
	}
	h := serveLive(t, happened(150))
	p := b.Open(t, h.at("#/a/"+followed+"/activity?of=others"), browser.View{Size: browser.Desktop})
	connected(t, p)
	p.Click("main .older")
	p.Wait("document.querySelectorAll('main .act').length === 150")
	const newest = "document.querySelector('main .act a')?.getAttribute('href')"
	h.round(t, happened(152), followed, owner(151), owner(152), "151", "152")
	p.Wait(fmt.Sprintf("%s === '#/a/%s'", newest, owner(152)))
	if got := p.Text("main p[role=status]"); got != "152 of 152" {
		t.Errorf("after a round: got %q, want the old rows and the new one", got)
	}

	const figures = "[...document.querySelectorAll('main .figures dd')].map((e) => e.innerText).join(' ')"
	browser.Eval[any](p, fmt.Sprintf("location.hash = '#/a/%s/then?of=followers&day=2026-10-25'", followed))
	p.Wait(figures + " === '0 152 152 0'")
	h.round(t, happened(153), followed, owner(153), "153")
	p.Wait(figures + " === '0 153 153 0'")

	browser.Eval[any](p, "location.hash = '#/'")
	p.Wait(fmt.Sprintf("%s === '#/a/%s'", newest, owner(153)))
	h.round(t, happened(154), followed, owner(154), "154")
	p.Wait(fmt.Sprintf("%s === '#/a/%s'", newest, owner(154)))
	if got := browser.Eval[int](p, "document.querySelectorAll('.failed').length"); got > 0 {
		t.Errorf("got %d failures, want none", got)
	}
}

// An account on a date equals a naive replay of a random history, for both sides, through all tags,
// removals and repeated adds.
func TestAsOfRandomHistories(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	const accounts, owners = 9, 6 // list i is the primary list of account i; list owners+i is another one of its lists
	address := func(i int) string { return fmt.Sprintf("0x%040x", 0x5000+i) }
	type record struct {
		list  int
		about string
	}
	random := rand.New(rand.NewPCG(25, 1))
	held := map[record][]string{}
	was := map[string]map[record]bool{} // at the end of each day
	added := map[record]time.Time{}
	var deeds []deed
	end := asOf.Add(-time.Millisecond)
	for at := asOf.Add(-40 * aDay); at.Before(end); at = at.Add(time.Duration(random.Int64N(int64(4 * time.Hour)))) {
		key := record{1 + random.IntN(2*owners), address(random.IntN(accounts))}
		d := deed{ago: asOf.Sub(at), list: fmt.Sprint(key.list), about: key.about}
		tags, is := held[key]
		switch tag := []string{"top8", "block", "mute"}[random.IntN(3)]; {
		case !is:
			d.code = op.Follow
			held[key], added[key] = []string{}, at
		case random.IntN(2) == 0:
			d.code = op.Unfollow
			delete(held, key)
		case slices.Contains(tags, tag):
			d.code, d.tag = op.Untag, tag
			held[key] = slices.DeleteFunc(slices.Clone(tags), func(one string) bool { return one == tag })
		default:
			d.code, d.tag = op.Tag, tag
			held[key] = append(slices.Clone(tags), tag)
		}
		deeds = append(deeds, d)
		now := map[record]bool{}
		for key := range held {
			now[key] = true
		}
		for day := at; day.Before(asOf.Add(aDay)); day = day.Add(aDay) {
			was[day.Format(time.DateOnly)] = now
		}
	}
	var lists, people, records strings.Builder
	for i := 1; i <= 2*owners; i++ {
		fmt.Fprintf(&lists, "{\"token_id\":\"%d\",\"owner\":%q}\n", i, address((i-1)%owners))
	}
	for i := range owners {
		fmt.Fprintf(&people, "{\"address\":%q,\"primary_list\":\"%d\"}\n", address(i), i+1)
	}
	for _, key := range slices.SortedFunc(maps.Keys(held), func(a, b record) int { return cmp.Or(a.list-b.list, added[a].Compare(added[b])) }) {
		tags, err := json.Marshal(held[key])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&records, "{\"token_id\":\"%d\",\"version\":1,\"record_type\":\"address\",\"data\":%q,\"tags\":%s,\"added\":%q}\n", key.list, key.about, tags, added[key].Format("2006-01-02T15:04:05.000Z"))
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{"meta.json": `{"format":1,"as_of":"2026-11-01T00:00:00Z"}`, "lists.ndjson": lists.String(), "accounts.ndjson": people.String(), "records.ndjson": records.String(), "events.ndjson": "", "badges.ndjson": ""} {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	b := browser.Start(t, browser.Options{})
	h := serve(t, withHistory(t, files, deeds), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	p.Forgive("404") // an account without a list has no activity
	const rows = "[...document.querySelectorAll('main [data-index] a.person')].map((e) => e.getAttribute('href').slice(4)).sort()"
	all := 0
	for _, who := range []int{0, 3, accounts - 1} {
		for _, kind := range []string{"following", "followers"} {
			for _, day := range []string{"2026-10-31", "2026-10-30", "2026-10-17", "2026-09-25"} {
				want := []string{}
				for key := range was[day] {
					if key.list > owners {
						continue
					}
					if kind == "following" && key.list == who+1 {
						want = append(want, key.about)
					} else if kind == "followers" && key.about == address(who) {
						want = append(want, address(key.list-1))
					}
				}
				slices.Sort(want)
				all += len(want)
				p.Go(h.at(fmt.Sprintf("#/a/%s/then?day=%s&of=%s", address(who), day, kind)))
				shown(t, p)
				equalTexts(t, fmt.Sprintf("%s of account %d at the end of %s", kind, who, day), browser.Eval[[]string](p, rows), want)
				if p.Count("main .notice") > 0 {
					t.Errorf("%s of account %d at the end of %s: got the notice %q", kind, who, day, p.Text("main .notice"))
				}
			}
		}
	}
	if all < 30 {
		t.Errorf("got %d accounts in all, want a history with more", all)
	}
}
