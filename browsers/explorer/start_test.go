package explorer_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
)

// suggestedHere is an expression for the suggested addresses in order, with their texts.
const suggestedHere = `[...document.querySelectorAll('.suggested li')].map((li) => decodeURIComponent(li.querySelector('a').getAttribute('href').slice(4)) + ' ' + li.querySelector('.known').innerText.split('\n').at(-1).trim())`

// feedHere lists the entries of the feed: actor and target.
const feedHere = `[...document.querySelectorAll('.feed .act')].map((e) => [...e.querySelectorAll('a')].map((a) => decodeURIComponent(a.getAttribute('href').slice(4))).join(' '))`

// suggested computes suggestions naively, as docs/explorer.md describes them.
func suggested(t *testing.T, snapshot fs.FS, me string) (all []string) {
	t.Helper()
	said, followers := said(t, snapshot), map[string]int{}
	for _, whom := range said {
		for other, what := range whom {
			if what == "follows" {
				followers[other]++
			}
		}
	}
	byFollowers := func(a, b string) int { return cmp.Or(followers[b]-followers[a], strings.Compare(a, b)) }
	isNew := func(other string) bool {
		said := said.mark(me, other)
		return said == "" || said == "Follows you"
	}
	var friends []string
	for other, what := range said[me] {
		if what == "follows" && other != me {
			friends = append(friends, other)
		}
	}
	slices.SortFunc(friends, byFollowers)
	by, left := map[string]int{}, 11
	for _, friend := range friends {
		if left < 2 {
			break
		}
		left--
		if len(said[friend]) > 0 {
			left--
		}
		for other, what := range said[friend] {
			if what == "follows" {
				by[other]++
			}
		}
	}
	text := func(other string) string {
		if by[other] == 0 {
			return other + " Recommended by this site"
		}
		if by[other] == 1 {
			return other + " Followed by 1 account you follow"
		}
		return fmt.Sprintf("%s Followed by %d accounts you follow", other, by[other])
	}
	var first []string
	if _, err := fs.Stat(snapshot, "recommended.ndjson"); err == nil {
		each(t, snapshot, "recommended.ndjson", func(row map[string]any) {
			if other := fmt.Sprint(row["address"]); len(first) < 4 && isNew(other) {
				first = append(first, other)
			}
		})
	}
	others := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(by[b]-by[a], byFollowers(a, b)) })
	for _, other := range append(slices.Clone(first), others...) {
		if len(all) < 10 && isNew(other) && !slices.Contains(all, text(other)) {
			all = append(all, text(other))
		}
	}
	return all
}

// done returns the operations of the accounts that an account follows, newest first, from their
// objects.
func done(t *testing.T, s memsite.Site, snapshot fs.FS, me string) (all []string) {
	t.Helper()
	type entry struct {
		time float64
		text string
	}
	var entries []entry
	for list, who := range primaries(t, snapshot) {
		body := s[site.ActivityKey(list, 0)]
		if said(t, snapshot)[me][who] != "follows" || body == "" {
			continue
		}
		var shard struct{ Entries [][]any }
		if err := json.Unmarshal([]byte(body), &shard); err != nil {
			t.Fatal(err)
		}
		for _, e := range shard.Entries {
			entries = append(entries, entry{e[0].(float64), who + " " + fmt.Sprint(e[1])})
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(b.time, a.time) })
	for _, e := range entries {
		all = append(all, e.text)
	}
	return all
}

// ofSuggestions returns the requests made only by suggestions, for a reader with the given list.
func ofSuggestions(paths []string, list string) (of []string) {
	for _, path := range paths {
		for _, start := range []string{"/_search/recommended/", "/_search/users/", "/_search/tokens/", "/_search/lists/"} {
			if strings.HasPrefix(path, start) && !strings.HasPrefix(path, "/_search/lists/"+list+"/") {
				of = append(of, path)
			}
		}
	}
	return of
}

// The start of a reader with an account leads with news; then come operations of followed accounts,
// and suggestions that equal a naive computation, in few requests.
func TestStartOfAReader(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	snapshot := withOps(t, fixtures.Demo(), lately())
	s := withHistory(t, fixtures.Demo(), lately())
	h := serve(t, s, "/")
	for _, me := range []string{mira, tobi, hanneke} {
		for _, size := range []browser.Size{{Width: 320, Height: 640}, browser.Phone, {Width: 820, Height: 1180}, browser.Desktop} {
			h.asked()
			p := b.Open(t, h.at("#/"), browser.View{Size: size, Now: now, Before: being(h.URL, me), Dark: size == browser.Phone})
			p.WaitFor(".suggested li, .suggested .empty")
			shown(t, p)
			fits(t, p)
			barriers(t, p)
			equalTexts(t, me+": suggestions", browser.Eval[[]string](p, suggestedHere), suggested(t, snapshot, me))
			equalTexts(t, me+": feed", browser.Eval[[]string](p, feedHere), done(t, s, snapshot, me))
			if order := browser.Eval[[]string](p, "[...document.querySelectorAll('main h2')].slice(0, 3).map((e) => e.id)"); !slices.Equal(order, []string{"new", "feed", "suggested"}) {
				t.Errorf("%s: got the sections %q, want news, feed and suggestions first", me, order)
			}
			// Two more requests read the reader's own account.
			if of := ofSuggestions(h.asked(), "4"); len(of) > 12+2 {
				t.Errorf("%s: got %d requests, want at most 12, and those for the account itself: %q", me, len(of), of)
			}
			p.Close()
		}
	}
}

// The start shows all available parts for an account that follows nobody, one that follows 13,000,
// a site without a history, and a site under the API spec.
func TestStartOfOddReaders(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	open := func(h *host, me string) *browser.Page {
		p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: being(h.URL, me)})
		p.Forgive("/_search/notifications/") // some have no notifications
		p.WaitFor(".suggested li, .suggested .empty")
		shown(t, p)
		fits(t, p)
		return p
	}
	t.Run("nobody is followed", func(t *testing.T) {
		p := open(serve(t, withHistory(t, fixtures.Demo(), lately()), "/"), alone(t))
		if feed := p.Text(".feed .empty"); feed != "You do not follow anyone yet." {
			t.Errorf("feed: got %q", feed)
		}
		if n := p.Count(".suggested li"); n != 4 {
			t.Errorf("suggestions: got %d, want the recommended ones", n)
		}
		p.Close()
	})
	t.Run("no history", func(t *testing.T) {
		p := open(serve(t, demo(t), "/"), mira)
		equalTexts(t, "suggestions", browser.Eval[[]string](p, suggestedHere), suggested(t, fixtures.Demo(), mira))
		if n := p.Count(".feed"); n > 0 {
			t.Errorf("a site without history: got a feed, want none")
		}
		p.Close()
	})
	t.Run("the specification", func(t *testing.T) {
		h := serve(t, generate(t, fixtures.Demo(), site.Config{}), "/")
		p := open(h, mira)
		if n := p.Count(".suggested li"); n == 0 {
			t.Error("got no suggestions")
		}
		if of := ofSuggestions(h.asked(), "4"); len(of) > 12+1 {
			t.Errorf("got %d requests: %q", len(of), of)
		}
		p.Close()
	})
	t.Run("13,000 are followed", func(t *testing.T) {
		snapshot, deeds := popular(13_000)
		h := serve(t, withHistory(t, snapshot, deeds), "/")
		p := open(h, numbered(1))
		equalTexts(t, "suggestions", browser.Eval[[]string](p, suggestedHere), suggested(t, snapshot, numbered(1)))
		asked := h.asked()
		if of := ofSuggestions(asked, "1"); len(of) > 12+2 {
			t.Errorf("got %d requests, want at most 12, and those for the account itself: %q", len(of), of)
		}
		activity := func(paths []string) (n int) {
			for _, path := range paths {
				if strings.HasPrefix(path, "/_search/activity/") {
					n++
				}
			}
			return n
		}
		if n := activity(asked); n != 12 {
			t.Errorf("feed: got %d lists read at first, want 12", n)
		}
		want := done(t, h.site, snapshot, numbered(1))
		equalTexts(t, "feed at first", browser.Eval[[]string](p, feedHere), want[:10])
		// After 24 more lists, what the other four did comes after these rows.
		for _, rows := range []int{36, 100, len(want)} {
			p.Click(".feed button")
			shown(t, p)
			if n := activity(h.asked()); n > 24 {
				t.Errorf("feed: got %d lists read for more rows, want at most 24", n)
			}
			equalTexts(t, fmt.Sprintf("feed of %d", rows), browser.Eval[[]string](p, feedHere), want[:rows])
		}
		if p.Count(".feed button") > 0 {
			t.Error("feed: got a button for more, want none at the end")
		}
		p.Close()
	})
}

// alone returns an account of the demo that follows nobody.
func alone(t *testing.T) string {
	t.Helper()
	all := said(t, fixtures.Demo())
	for other, what := range all[mira] {
		if what == "follows" && all[other] == nil {
			return other
		}
	}
	t.Fatal("everybody follows somebody")
	return ""
}

func numbered(i int) string { return fmt.Sprintf("0x%040x", i) }

// popular returns a snapshot in which account 1 follows the given number of accounts, 40 of which
// have lists and operations.
func popular(follows int) (fstest.MapFS, []deed) {
	var accounts, lists, records strings.Builder
	record := func(list, whom int) {
		fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":%q,"tags":[]}`+"\n", list, numbered(whom))
	}
	var deeds []deed
	for list := range 41 {
		fmt.Fprintf(&accounts, `{"address":%q,"primary_list":"%d"}`+"\n", numbered(list+1), list+1)
		fmt.Fprintf(&lists, `{"token_id":"%d","owner":%q}`+"\n", list+1, numbered(list+1))
		if list == 0 {
			continue
		}
		for other := range list { // the first ones have the most followers
			record(list+1, other+2)
		}
		for other := range 30 {
			record(list+1, 50_000+list%3+other)
		}
		for i := range 3 {
			deeds = append(deeds, deed{time.Duration(list+100*i) * time.Minute, fmt.Sprint(list + 1), numbered(50_000 + list%3 + i), op.Follow, ""})
		}
	}
	slices.SortFunc(deeds, func(a, b deed) int { return cmp.Compare(b.ago, a.ago) })
	for i := range follows {
		record(1, i+2)
	}
	return fstest.MapFS{
		"events.ndjson":   {},
		"badges.ndjson":   {},
		"meta.json":       {Data: []byte(`{"format":1,"as_of":"2026-11-01T00:00:00Z"}`)},
		"accounts.ndjson": {Data: []byte(accounts.String())},
		"lists.ndjson":    {Data: []byte(lists.String())},
		"records.ndjson":  {Data: []byte(records.String())},
	}, deeds
}

// The start shows the name of the network and the time of its data as text, before and after its
// script runs.
func TestStartNamesTheNetwork(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	const title, about = `<img src=x onerror=alert(1)>"'&`, `</title><script>alert(2)</script> & {{.}} "quoted"`
	h := serve(t, generate(t, fixtures.Demo(), site.Config{API: site.APIEFP, Title: title, About: about}), "/")
	for _, s := range []string{"<img src=x", "<script>alert"} {
		if strings.Contains(h.site[site.ExplorerPageKey], s) {
			t.Errorf("the page has %q, want it escaped", s)
		}
	}
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	fits(t, p)
	if got := p.Text("main h1"); got != title {
		t.Errorf("title: got %q, want %q", got, title)
	}
	if got := p.Text(".hero p"); got != about {
		t.Errorf("about: got %q, want %q", got, about)
	}
	p.WaitForText("As of Nov 1, 2026.")
	for _, path := range h.asked() {
		if path == "/_explore/top" {
			t.Error("the start asked for the accounts that searches need")
		}
	}
	// An older site lacks the start's object.
	delete(h.site, site.ExplorerKey("start"))
	older := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	older.Forgive("404")
	older.WaitFor(".ranking li")
}
