package explorer_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	json "github.com/goccy/go-json"
	"golang.org/x/text/unicode/norm"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
)

// searched is an account that a search may match.
type searched struct {
	address, name string
	followers     int
}

// rankedAccounts returns all accounts with a rank, as the site has them.
func rankedAccounts(t *testing.T, s memsite.Site) (all []searched) {
	t.Helper()
	for n := 0; ; n++ {
		var shard struct {
			Total   int
			Entries [][]any
		}
		if err := json.Unmarshal([]byte(s[site.Key(fmt.Sprintf("_search/ranked/%d", n))]), &shard); err != nil {
			t.Fatal(err)
		}
		for _, row := range shard.Entries {
			all = append(all, searched{row[0].(string), row[1].(string), int(row[5].([]any)[2].(float64))})
		}
		if len(all) == shard.Total {
			return all
		}
	}
}

// folded returns a text in the form that docs/explorer.md defines for comparing names: composed, in
// lower case, letter by letter.
func folded(text string) string {
	return norm.NFC.String(strings.Map(unicode.ToLower, norm.NFC.String(text)))
}

// found returns the matches in the order that docs/explorer.md promises: exact, prefixes, prefixes
// of words, the rest, each by followers.
func found(all []searched, typed string) []searched {
	term := folded(typed)
	class := func(text string) int {
		best := 4
		for at := range text {
			if !strings.HasPrefix(text[at:], term) {
				continue
			}
			before, _ := utf8.DecodeLastRuneInString(text[:at])
			switch {
			case text == term:
				return 0
			case at == 0:
				best = 1
			case before < 0x10000 && !unicode.In(before, unicode.L, unicode.N, unicode.M):
				best = min(best, 2)
			default:
				best = min(best, 3)
			}
		}
		return best
	}
	classOf := func(a searched) int {
		c := class(folded(a.name))
		if !strings.Contains(term, ".") && folded(a.name) == term+".eth" {
			c = 0
		}
		if utf8.RuneCountInString(term) >= 3 {
			c = min(c, class(a.address))
		}
		return c
	}
	hits := slices.DeleteFunc(slices.Clone(all), func(a searched) bool { return classOf(a) == 4 })
	slices.SortFunc(hits, func(a, b searched) int {
		return cmp.Or(cmp.Compare(classOf(a), classOf(b)), cmp.Compare(b.followers, a.followers), cmp.Compare(a.address, b.address))
	})
	return hits
}

func addresses(hits []searched, most int) []string {
	var all []string
	for _, hit := range hits[:min(most, len(hits))] {
		all = append(all, hit.address)
	}
	return all
}

// first returns the text in which the page counts hits.
func first(shown, total int, atLeast string) string {
	if shown < total {
		return fmt.Sprintf("First %d of %s%s", shown, strings.ToLower(atLeast), thousands(total))
	}
	return strings.TrimSuffix(fmt.Sprintf("%s%s results", atLeast, thousands(total)), map[bool]string{true: "s"}[total == 1])
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

const (
	rowsFound = "[...document.querySelectorAll('main .ranking a.person')].map((a) => a.hash.replace('#/a/', ''))"
	linesOf   = "[...document.querySelectorAll('%s')].slice(0, 8).map((e) => e.querySelector('.names').innerHTML)"
)

// Results are counted and in the documented order, with few requests; all results appear on
// request. Boxes that choose an account agree with the page.
func TestSearchOrder(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	s := large(t)
	all := rankedAccounts(t, s)
	followed := slices.SortedFunc(slices.Values(all), func(a, b searched) int { // least followers first
		return cmp.Or(cmp.Compare(a.followers, b.followers), cmp.Compare(b.address, a.address))
	})
	last := followed[slices.IndexFunc(followed, func(a searched) bool { return a.name != "" && a.name == folded(a.name) })]
	followed = followed[len(followed)-2000:]
	slices.Reverse(followed)
	h := serve(t, s, "/")
	for i, typed := range []string{"a", "bo", "refuka", "DRI", "harbour", "KABEZU Shop", "bofu\u0301", "🌊", "0xa", "ace", "refuka.eth", last.name} {
		t.Run(typed, func(t *testing.T) {
			p := b.Open(t, "about:blank", browser.View{Size: browser.Phone, Now: now})
			h.asked()
			p.Go(h.at("#/search?q=" + url.QueryEscape(typed)))
			shown(t, p)
			p.Wait("document.querySelector('main [role=status]')")
			fits(t, p)
			asked := slices.DeleteFunc(h.asked(), func(path string) bool {
				return strings.Contains(path, "_explore/") && path != "/"+string(site.TopKey)
			})
			if len(asked) > 6 {
				t.Errorf("got %d requests, want 6 at most: %v", len(asked), asked)
			}

			known := slices.Clone(followed)
			for _, a := range all {
				if (a.name == folded(typed) || a.name == folded(typed)+".eth") && !slices.Contains(known, a) {
					known = append(known, a) // the page looks it up
				}
			}
			check := func(hits []searched, rows int, atLeast string) {
				t.Helper()
				want := first(min(rows, len(hits)), len(hits), atLeast)
				if len(hits) == 0 {
					want = fmt.Sprintf("No results for “%s”", typed)
				}
				if got := p.Text("main [role=status]"); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if got, want := browser.Eval[[]string](p, rowsFound), addresses(hits, rows); !slices.Equal(got, want) {
					t.Errorf("got %d rows %.300v, want %d: %.300v", len(got), got, len(want), want)
				}
			}
			check(found(known, typed), 100, "At least ")

			rows := browser.Eval[[]string](p, fmt.Sprintf(linesOf, "main .ranking li"))
			p.Click(".bar input[role=combobox]")
			p.Wait("document.querySelector('#found [role=option] .all')")
			if got := browser.Eval[[]string](p, fmt.Sprintf(linesOf, "#found [role=option]:not(:has(.all))")); !slices.Equal(got, rows) {
				t.Errorf("the search box: got %q, want %q as on the page", got, rows)
			}
			p.Press(browser.Escape)

			p.Click("main .row button") // search all accounts
			p.Wait("!document.querySelector('main .row button')")
			hits := found(all, typed)
			check(hits, 100, "")
			for _, mark := range browser.Eval[[]string](p, "[...document.querySelectorAll('main .ranking li')].map((li) => li.querySelector('mark')?.innerText ?? '')") {
				if !strings.Contains(folded(mark), folded(typed)) {
					t.Errorf("got %q marked, want %q", mark, typed)
				}
			}
			if wanted := hits[0].followers; wanted > 1 && !strings.Contains(p.Text("main .ranking li"), thousands(wanted)+" followers") {
				t.Errorf("the first row: got %q, want its %d followers", p.Text("main .ranking li"), wanted)
			}
			if len(hits) > 100 {
				p.Click("main .ranking + button") // show more
				p.Wait("document.querySelectorAll('main .ranking li').length > 100")
				check(hits, 200, "")
			}
			if i > 2 {
				return
			}
			barriers(t, p)
			p.Go(h.at("#/boards/followers"))
			shown(t, p)
			p.Click("main input[role=combobox]")
			p.Press(typed)
			p.Wait("document.querySelector('#places [role=option]')")
			p.Settle()
			if got := browser.Eval[[]string](p, fmt.Sprintf(linesOf, "#places [role=option]")); !slices.Equal(got, rows) {
				t.Errorf("the box of the leaderboard: got %q, want %q as in a search", got, rows)
			}
		})
	}
}

// Highlighted parts of hostile names consist of whole letters, and stay text.
func TestSearchMarks(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, generate(t, hostile(t), site.Config{API: site.APIEFP}), "/")
	for typed, want := range map[string]string{
		"<img": "<img", "><script>": "><script>", "zalgo": "zalgo", "SIBLE": "", "م": "م", "__proto": "__proto", "ABCDEF0003": "abcdef0003", "'\"": "'\"",
	} {
		t.Run(typed, func(t *testing.T) {
			p := b.Open(t, h.at("#/search?q="+url.QueryEscape(typed)), browser.View{Size: browser.Phone, Now: now, Before: tripwires})
			shown(t, p)
			fits(t, p)
			p.Click(".bar input[role=combobox]")
			p.Wait("document.querySelector('#found [role=option] .all')")
			for _, fault := range browser.Eval[[]string](p, inspect) {
				t.Error(fault)
			}
			marks := browser.Eval[[]string](p, "[...document.querySelectorAll('mark')].map((mark) => mark.innerHTML)")
			escaped := strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(want)
			if want == "" && len(marks) > 0 || want != "" && (len(marks) < 2 || slices.ContainsFunc(marks, func(mark string) bool { return mark != escaped })) {
				t.Errorf("got %q marked, want %q on the page and in the box", marks, escaped)
			}
			barriers(t, p)
		})
	}
}

// An account is found by its whole name while the index of the most followed is still on its way.
func TestSearchBeforeIndex(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	s := demo(t)
	h := serve(t, s, "/")
	name := rankedAccounts(t, s)[0].name
	network := browser.Slow
	network.Late = map[string]time.Duration{"http://*:*/_explore/top": time.Hour}
	p := b.OpenSlow(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now}, network)
	p.WaitFor(".bar input[role=combobox], main input[role=combobox]")
	p.Click("main input[role=combobox]")
	for _, key := range name {
		p.Press(string(key))
	}
	p.Wait(fmt.Sprintf("[...document.querySelectorAll('#found [role=option]')].some((option) => !option.querySelector('.all') && option.textContent.includes(%q))", name))
}

// The search of a 404 page leads to that of the explorer. Any text is only a text there.
func TestSearchOfMissingPages(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	handler, err := server.New(t.Context(), generate(t, hostile(t), site.Config{API: site.APIEFP}), server.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(handler)
	t.Cleanup(h.Close)
	for _, path := range []string{"/u/nobody.eth", "/u/", "/_explore/nothing"} {
		p := b.Open(t, h.URL+path, browser.View{Size: browser.Narrow, Now: now})
		p.Forgive("404")
		fits(t, p)
		barriers(t, p)
		if browser.Eval[bool](p, "document.querySelector('form').checkValidity()") {
			t.Errorf("%s: an empty search can be sent", path)
		}
		p.Click("input")
		p.Press("VICTIM" + browser.Enter)
		p.Wait("location.pathname === '/_explore/index.html' && !location.search && location.hash === '#/search?q=VICTIM'")
		shown(t, p)
		if got := p.Text("main .ranking li"); !strings.Contains(got, "victim.eth") || p.Count("main .ranking mark") == 0 {
			t.Errorf("%s: got the first result %q, want victim.eth with a mark", path, got)
		}
		p.Close()
	}

	p := b.Open(t, h.URL+"/_explore/index.html", browser.View{Size: browser.Narrow, Now: now, Before: tripwires})
	asked := map[string]string{"?q=": "", "?q": "", "?q=+": " ", "?q=a&q=b": "a", "?q=%E0%A4%A": "\ufffd%A"}
	for _, text := range []string{markup, script, page, rightToLeft, invisible, piled, "%", "..", "#/proof", "&q=x", "__proto__", strings.Repeat("W", 5000), "a\nb\x00c"} {
		asked["?q="+url.QueryEscape(text)] = text
	}
	for query, want := range asked {
		p.Go(h.URL + "/_explore/index.html" + query)
		shown(t, p)
		fits(t, p)
		for _, fault := range browser.Eval[[]string](p, inspect) {
			t.Errorf("%.50s: %s", query, fault)
		}
		if got := browser.Eval[string](p, "new URLSearchParams(location.hash.split('?')[1] ?? '').get('q') ?? ''"); got != want {
			t.Errorf("%.50s: got a search for %q, want %q", query, got, want)
		}
		if isEmpty := strings.Contains(p.Text("main"), "Type a name"); isEmpty != (strings.TrimSpace(want) == "") {
			t.Errorf("%.50s: got %.200q", query, p.Text("main"))
		}
	}
	p.Go(h.URL + "/_explore/index.html?q=victim#/network")
	shown(t, p)
	if got := p.Text("h1"); got != "Network" {
		t.Errorf("a place and a search: got %q, want the place", got)
	}
}
