package explorer_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
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

// A relations holds the states between accounts, by their primary lists: "follows", "blocks" or
// "mutes".
type relations map[string]map[string]string

// said computes the relations from a snapshot in the most obvious way.
func said(t *testing.T, snapshot fs.FS) relations {
	t.Helper()
	owner, all := primaries(t, snapshot), relations{}
	each(t, snapshot, "records.ndjson", func(row map[string]any) {
		who := owner[fmt.Sprint(row["token_id"])]
		if who == "" || row["version"] != 1.0 || row["record_type"] != "address" {
			return
		}
		what := "follows"
		tags, _ := row["tags"].([]any)
		for _, tag := range tags {
			switch tag {
			case "block":
				what = "blocks"
			case "mute":
				if what != "blocks" {
					what = "mutes"
				}
			}
		}
		if all[who] == nil {
			all[who] = map[string]string{}
		}
		all[who][fmt.Sprint(row["data"])] = what
	})
	return all
}

// primaries returns the owners of primary lists, which list and account both confirm.
func primaries(t *testing.T, snapshot fs.FS) map[string]string {
	t.Helper()
	users, all := map[any]any{}, map[string]string{}
	each(t, snapshot, "lists.ndjson", func(row map[string]any) {
		users[row["token_id"]] = row["owner"]
		if user, ok := row["user"]; ok {
			users[row["token_id"]] = user
		}
	})
	each(t, snapshot, "accounts.ndjson", func(row map[string]any) {
		if list, ok := row["primary_list"].(string); ok && users[list] == row["address"] {
			all[list] = fmt.Sprint(row["address"])
		}
	})
	return all
}

func each(t *testing.T, snapshot fs.FS, name string, row func(map[string]any)) {
	t.Helper()
	body, err := fs.ReadFile(snapshot, name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(body) {
		var value map[string]any
		if err := json.Unmarshal(line, &value); err != nil {
			t.Fatal(err)
		}
		row(value)
	}
}

// mark returns the state shown in a row for a reader with an account; "" for none.
func (all relations) mark(me, other string) string {
	mine, theirs := all[me][other], all[other][me]
	switch {
	case me == other:
		return "You"
	case mine == "blocks":
		return "You block"
	case mine == "mutes":
		return "You mute"
	case theirs == "blocks":
		return "Blocks you"
	case theirs == "mutes":
		return "Mutes you"
	case mine == "follows" && theirs == "follows":
		return "Mutual with you"
	case mine == "follows":
		return "You follow"
	case theirs == "follows":
		return "Follows you"
	}
	return ""
}

// acquainted returns the accounts that me follows and that follow other.
func (all relations) acquainted(me, other string) (addresses []string) {
	for who, what := range all[me] {
		if what == "follows" && all[who][other] == "follows" {
			addresses = append(addresses, who)
		}
	}
	return addresses
}

// being returns a script that gives the reader accounts of a site, the first one active.
func being(url string, accounts ...string) string {
	var rows []string
	for _, address := range accounts {
		rows = append(rows, fmt.Sprintf(`[%q,"",""]`, address))
	}
	return fmt.Sprintf(`localStorage.getItem('followpress mine %[1]s') ?? localStorage.setItem('followpress mine %[1]s', '{"me":%[2]q,"accounts":[%[3]s]}');`, url, accounts[0], strings.Join(rows, ","))
}

// line is an expression for the line about the reader in the head of a profile, without buttons.
const line = "[...document.querySelectorAll('.of-mine > :not(button)')].map((e) => e.innerText).join('|')"

// known waits until the page has read everything about the reader's account.
func known(t *testing.T, p *browser.Page) {
	t.Helper()
	shown(t, p)
	p.Wait("!document.querySelector('.of-mine[aria-busy=true], .of-mine [aria-busy=true]')")
	p.Settle()
}

// A reader who has chosen an account sees its states everywhere: in heads of profiles, in lists and
// on leaderboards.
func TestMarks(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	all := said(t, fixtures.Demo())
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/miralund.eth"), browser.View{Size: browser.Desktop, Now: now})
	known(t, p)
	if got := browser.Eval[string](p, line); got != "Saved in this browser only" || p.Count(".tools .me") > 0 {
		t.Errorf("no account chosen: got %q and %d links to one, want an offer only", got, p.Count(".tools .me"))
	}
	p.Click(".of-mine button")
	p.WaitFor(".tools .me")
	if got := browser.Eval[string](p, line); got != "This is you" {
		t.Errorf("oneself: got %q, want %q", got, "This is you")
	}

	const marks = `Object.fromEntries([...document.querySelectorAll('main [data-index]')].map((row) =>
		[decodeURIComponent(row.querySelector('a').getAttribute('href').slice(4)), row.querySelector('.under > .mine')?.getAttribute('aria-label') ?? '']))`
	for _, place := range []string{"#/boards/followers", "#/boards/following", "#/a/" + hanneke + "/followers", "#/a/" + hanneke + "/following", "#/a/" + tobi + "/common/" + hanneke} {
		p.Go(h.at(place))
		known(t, p)
		got := browser.Eval[map[string]string](p, marks)
		if len(got) < 4 {
			t.Errorf("%s: got %d rows", place, len(got))
		}
		for address, mark := range got {
			if want := all.mark(mira, address); mark != want {
				t.Errorf("%s: %s: got %q, want %q", place, address, mark, want)
			}
		}
	}
	for other, texts := range map[string][]string{"following": {"", "Follows you", "Blocks you", "Mutes you"}, "followers": {""}} {
		p.Go(h.at("#/a/" + mira + "/" + other))
		known(t, p)
		for address, mark := range browser.Eval[map[string]string](p, marks) {
			if !slices.Contains(texts, mark) {
				t.Errorf("own %s: %s: got %q, want only relations that the list itself does not show", other, address, mark)
			}
		}
	}

	profiles, faces := 0, 0
	for other := range all {
		if other == mira {
			continue
		}
		p.Go(h.at("#/a/" + other))
		known(t, p)
		var want []string
		switch all[mira][other] {
		case "blocks":
			want = append(want, "You block")
		case "mutes":
			want = append(want, "You mute")
		}
		switch all[other][mira] {
		case "blocks":
			want = append(want, "Blocks you")
		case "mutes":
			want = append(want, "Mutes you")
		case "follows":
			want = append(want, "Follows you")
		}
		if all[mira][other] == "follows" {
			want = append(want, "You follow")
		}
		if len(want) == 0 {
			want = append(want, "You don’t follow each other.")
		}
		both := all.acquainted(mira, other)
		if n := len(both); n == 1 {
			want = append(want, "Followed by 1 account you follow")
		} else if n > 1 {
			want = append(want, fmt.Sprintf("Followed by %d accounts you follow", n))
		}
		lines := strings.Split(browser.Eval[string](p, line), "|")
		for i := range lines { // skip the letters of avatars
			lines[i] = lines[i][strings.LastIndex(lines[i], "\n")+1:]
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%s: got %q, want %q", other, lines, want)
		}
		profiles++
		if len(both) > 2 && faces == 0 {
			faces = p.Count(".of-mine .faces .avatar")
			p.Click(".of-mine .known")
			p.Wait("location.hash.endsWith('/known')")
			known(t, p)
			rows := browser.Eval[map[string]string](p, marks)
			for _, address := range both {
				if _, ok := rows[address]; !ok {
					t.Errorf("%s: known: got %v, want %s among them", other, rows, address)
				}
			}
			if len(rows) != len(both) {
				t.Errorf("%s: known: got %d rows, want %d", other, len(rows), len(both))
			}
			barriers(t, p)
		}
	}
	if profiles < 20 || faces != 3 {
		t.Errorf("got %d profiles and %d faces, want more than 20, and 3", profiles, faces)
	}
}

// A site of the smaller API does not list followers; the states that it knows are still marked.
func TestMarksOfTheSpecification(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	all := said(t, fixtures.Demo())
	h := serve(t, generate(t, fixtures.Demo(), site.Config{}), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: being(h.URL, mira)})
	for _, other := range []string{tobi, hanneke} {
		p.Go(h.at("#/a/" + other))
		known(t, p)
		want := "Follows you|You follow"
		if all.mark(mira, other) != "Mutual with you" {
			t.Fatalf("%s: got %q, want a mutual one", other, all.mark(mira, other))
		}
		if got := browser.Eval[string](p, line); got != want {
			t.Errorf("%s: got %q, want %q", other, got, want)
		}
	}
	p.Go(h.at("#/"))
	known(t, p)
	for _, text := range []string{"New for you", "Following the most", "everyonesfriend.eth"} {
		p.WaitForText(text)
	}
	fits(t, p)
	barriers(t, p)
}

// A reader may have several accounts, one active at a time, in all tabs, and may remove them, by
// keyboard alone.
func TestAccountsOfAReader(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/below/")
	p := b.Open(t, h.at("#/a/"+tobi), browser.View{Size: browser.Phone, Now: now})
	focus := func(selector string) {
		t.Helper()
		p.WaitFor(selector)
		browser.Eval[any](p, fmt.Sprintf("document.querySelector(%q).focus()", selector))
	}
	for _, who := range []string{tobi, mira} {
		p.Go(h.at("#/a/" + who))
		known(t, p)
		focus(".of-mine button")
		p.Press(browser.Enter)
		p.WaitForText("This is you")
	}
	const me = "document.querySelector('.tools .me')?.getAttribute('href')"
	is := func(address string) {
		t.Helper()
		p.Wait(fmt.Sprintf("%s === '#/a/%s'", me, address))
	}
	is(mira)
	focus(".tools button")
	p.Press(browser.Enter)
	p.WaitFor("#settings input[name=me]")
	barriers(t, p)
	focus("#settings input[name=me]:checked")
	p.Press(browser.ArrowDown)
	is(tobi)
	// Another tab of the same browser changes the storage.
	key := "followpress mine " + h.URL
	elsewhere := func(script string) {
		t.Helper()
		browser.Eval[any](p, fmt.Sprintf("(() => { const key = %q; %s; dispatchEvent(new StorageEvent('storage', { key })); })()", key, script))
	}
	elsewhere(fmt.Sprintf("localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage.getItem(key)), me: %q }))", mira))
	is(mira)
	p.Reload()
	known(t, p)
	is(mira)
	// A later visit keeps them too.
	p.Go(h.at("#/"))
	known(t, p)
	browser.Eval[any](p, fmt.Sprintf("(() => { const s = document.querySelector('.new select'); s.value = %q; s.dispatchEvent(new Event('change', { bubbles: true })); })()", tobi))
	is(tobi)
	known(t, p)
	browser.Eval[any](p, fmt.Sprintf("(() => { const s = document.querySelector('.new select'); s.value = %q; s.dispatchEvent(new Event('change', { bubbles: true })); })()", mira))
	is(mira)
	// Another site at this origin does not share the storage.
	if got := browser.Eval[[]string](p, "Object.keys(localStorage).filter((key) => key.startsWith('followpress mine '))"); !slices.Equal(got, []string{key}) {
		t.Errorf("kept: got %q, want %q", got, key)
	}
	focus(".tools button")
	p.Press(browser.Enter)
	p.WaitFor("#settings input[name=me]")
	const visits = "Object.keys(JSON.parse(localStorage.getItem(Object.keys(localStorage).find((key) => key.startsWith('followpress visits '))) ?? '{}')).sort()"
	if got := browser.Eval[[]string](p, visits); !slices.Equal(got, []string{mira, tobi}) {
		t.Errorf("visits: got %q stored, want both", got)
	}
	focus("#settings .account-of:has(:checked) button")
	p.Press(browser.Enter)
	is(tobi)
	if got := browser.Eval[[]string](p, visits); !slices.Equal(got, []string{tobi}) {
		t.Errorf("visits of a removed account: got %q stored, want the other account's only", got)
	}
	elsewhere("localStorage.removeItem(key)")
	p.Wait("!document.querySelector('.tools .me')")
}

// Nothing leaves the browser: the reader's account causes only requests for its own objects, and
// those of any reader of a profile. There are no queries, no cookies, no bodies, and no other
// hosts.
func TestNothingSaysWhoTheReaderIs(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := &host{prefix: "/", site: withHistory(t, fixtures.Demo(), lately())}
	var mu sync.Mutex
	var faults []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.Method != http.MethodGet || r.URL.RawQuery != "" || r.ContentLength > 0 || r.Header.Get("Cookie") != "" {
			faults = append(faults, fmt.Sprintf("%s %s with the headers %v", r.Method, r.URL, r.Header))
		}
		for name, values := range r.Header {
			if text := strings.ToLower(strings.Join(values, " ")); strings.Contains(text, mira[2:]) || strings.Contains(text, "miralund") {
				faults = append(faults, fmt.Sprintf("%s has the header %s: %s", r.URL, name, text))
			}
		}
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	h.URL = server.URL + "/"
	places := []string{"#/", "#/a/" + hanneke, "#/a/" + hanneke + "/followers", "#/a/" + tobi + "/following", "#/a/" + hanneke + "/known", "#/boards/followers", "#/boards/muted", "#/search?q=ti", "#/network", "#/reports", "#/a/" + tobi + "/common/" + hanneke, "#/l/9", "#/a/" + hanneke + "/activity", "#/a/" + hanneke + "/graph"}
	asked := func(before string) map[string]bool {
		p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now, Before: before})
		defer p.Close()
		p.Forgive("404")
		for _, place := range places {
			p.Go(h.at(place))
			known(t, p)
		}
		// The graph is shown before it has read the connections.
		p.Wait("!document.querySelector('main').innerText.includes('Loading connections')")
		for _, request := range p.Requests() {
			if !strings.HasPrefix(request, h.URL) && !strings.HasPrefix(request, "blob:") && !strings.HasPrefix(request, "data:") {
				t.Errorf("got a request to %s, want the site only", request)
			}
		}
		all := map[string]bool{}
		for _, path := range h.asked() {
			all[path] = true
		}
		return all
	}
	anybody := asked("")
	reader := asked(being(h.URL, mira))
	own := []string{"/api/v1/users/" + mira + "/", "/_search/followers/" + mira + "/", "/_search/lists/4/", "/_search/notifications/" + mira, "/_search/users/", "/_search/tokens/",
		// The part of the start about followed accounts depends on the reader's account only.
		"/_search/activity/", "/_search/lists/", "/_search/recommended/0", "/_explore/active"}
	more := 0
	for path := range reader {
		if anybody[path] {
			continue
		}
		more++
		if !slices.ContainsFunc(own, func(start string) bool { return strings.HasPrefix(path, start) }) {
			t.Errorf("got a request for %s, want only the account's own objects beyond other readers' requests", path)
		}
		if strings.HasPrefix(path, "/_search/notifications/") && path != "/_search/notifications/"+mira {
			t.Errorf("got a request for %s, want the account's own objects", path)
		}
	}
	if more == 0 || !reader["/_search/notifications/"+mira] {
		t.Error("got no request for the account's own objects, want some")
	}
	mu.Lock()
	defer mu.Unlock()
	for _, fault := range faults {
		t.Error(fault)
	}
}

// With any content in the browser's storage, the page works, and shows that content as text at
// most.
func TestHostileStorage(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, withHistory(t, fixtures.Demo(), lately()), "/")
	text := func(value any) string {
		body, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	type object = map[string]any
	row := []any{mira, markup, "javascript:pwned=20"}
	named := text(object{"me": mira, "accounts": []any{row, []any{tobi, rightToLeft, page}, []any{markup, markup, markup}, nil, 7, []any{}}})
	var many []any
	for i := range 1000 {
		many = append(many, []any{owner(i), strings.Repeat("W", 100), markup})
	}
	for _, kept := range []struct{ mine, viewed, visits string }{
		{named, text([]any{row, []any{hanneke, invisible, svg}}), text(object{mira: object{"at": 1, "now": object{"asOf": 1, "followers": markup, "ids": []any{markup}}, "before": object{"asOf": -1e300}}})},
		{"{", "[", "nonsense"},
		{"null", "7", "[1,2]"},
		{text(object{"me": markup, "accounts": markup}), text(object{"length": 1e9}), text(object{"__proto__": object{"now": 1}})},
		{text(object{"me": owner(1), "accounts": many}), text(many), text(object{mira: many})},
		{text(object{"me": object{"toString": 1}, "accounts": object{"0": row}}), text([]any{[]any{[]any{mira}}, object{"0": mira}}), `{"` + mira + `":{"at":1e999,"now":{"asOf":1}}}`},
		{strings.Repeat("[", 1_500_000), strings.Repeat(" ", 500_000), `"` + strings.Repeat("x", 400_000) + `"`},
	} {
		before := tripwires
		for what, value := range map[string]string{"mine": kept.mine, "viewed": kept.viewed, "visits": kept.visits} {
			before += fmt.Sprintf("localStorage.setItem('followpress %s %s', %s);", what, h.URL, text(value))
		}
		p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: before})
		p.Forgive("404") // for invalid accounts
		for _, place := range []string{"#/a/" + hanneke, "#/boards/followers", "#/a/" + hanneke + "/known", "#/"} {
			p.Go(h.at(place))
			known(t, p)
			fits(t, p)
			for _, fault := range browser.Eval[[]string](p, inspect) {
				t.Errorf("%.60s: %s: %s", kept.mine, place, fault)
			}
		}
		// Invalid addresses are ignored, and the number of kept addresses is limited.
		accounts := p.Count("#settings .account-of")
		links := browser.Eval[[]string](p, `[...document.querySelectorAll('#settings .account-of a, .viewed .face, .tools .me')].map((a) => a.getAttribute('href')).filter((to) => !/^#\/a\/0x[0-9a-f]{40}$/.test(to))`)
		if accounts > 8 || len(links) > 0 {
			t.Errorf("%.60s: got %d accounts and the links %.100q, want at most 8, and addresses", kept.mine, accounts, links)
		}
		p.Close()
	}
}

// news is an expression for the groups of news on the start.
const news = "[...document.querySelectorAll('.new .row:has(h3), .new > p')].map((e) => e.innerText.replace(/\\n\\w\\n/g, '\\n').replaceAll('\\n', ' '))"

// looked waits until the page has checked for a newer site.
func looked(p *browser.Page) {
	p.Wait("performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/_site')).length > 1")
	p.Settle()
}

// later sets the reader's last visit back by an hour, and opens the start again.
func later(t *testing.T, p *browser.Page, h *host) {
	t.Helper()
	browser.Eval[any](p, fmt.Sprintf(`(() => {
		const key = 'followpress visits %s', all = JSON.parse(localStorage.getItem(key));
		for (const one of Object.values(all)) one.at -= 3_600_000;
		localStorage.setItem(key, JSON.stringify(all));
	})()`, h.URL))
	p.Reload()
	known(t, p)
	looked(p)
}

// The start shows news since the last visit. On a site with history they come from operations, with
// the names of accounts that followed, unfollowed or blocked. They stay until there are newer ones.
func TestNewsFromHistory(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	ends := asOf.Add(aDay)
	// The state a day later: one account followed, one unfollowed and one blocked.
	day := func(deeds ...deed) memsite.Site {
		files := copyOf(t, withOps(t, fixtures.Demo(), deeds))
		files["meta.json"] = &fstest.MapFile{Data: fmt.Appendf(nil, `{"format":1,"as_of":%q}`, ends.Format(time.RFC3339))}
		return generate(t, files, site.Config{API: site.APIEFP, HistoryWindow: site.Window(site.DefaultHistoryWindow)})
	}
	h := serve(t, withHistory(t, fixtures.Demo(), lately()), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now, Before: being(h.URL, mira, tobi)})
	known(t, p)
	looked(p)
	equalTexts(t, "the first visit", browser.Eval[[]string](p, news), []string{"Since Oct 25, 2026. From now on, you will see what is new since your last visit.", "1 changed how they tag you hanneke.eth", "All activity"})
	later(t, p, h)
	equalTexts(t, "the same state", browser.Eval[[]string](p, news), []string{"Since Oct 25, 2026. From now on, you will see what is new since your last visit.", "1 changed how they tag you hanneke.eth", "All activity"})

	h.deploy(day(append(lately(),
		deed{-2 * time.Hour, "9", mira, op.Tag, "block"},
		deed{-3 * time.Hour, "7", mira, op.Unfollow, ""},
		deed{-4 * time.Hour, "12", mira, op.Follow, ""},
		deed{-5 * time.Hour, "13", mira, op.Follow, ""},
		deed{-6 * time.Hour, "13", mira, op.Unfollow, ""},
	)...))
	want := []string{"Since Nov 1, 2026."}
	name := func(list string) string {
		return browser.Eval[string](p, fmt.Sprintf("fetch('../api/v1/lists/%s/details').then((r) => r.json()).then(({ ens, address }) => ens.name || address)", list))
	}
	want = append(want, "1 new follower "+name("12"), "1 unfollowed you tobi-okafor.eth", "1 blocked or muted you hanneke.eth", "1 changed how they tag you "+name("13"), "All activity")
	later(t, p, h)
	equalTexts(t, "a day later", browser.Eval[[]string](p, news), want)
	p.Reload()
	known(t, p)
	equalTexts(t, "again", browser.Eval[[]string](p, news), want)
	barriers(t, p)
	// The reader's other account has other news.
	browser.Eval[any](p, fmt.Sprintf("(() => { const s = document.querySelector('.new select'); s.value = %q; s.dispatchEvent(new Event('change', { bubbles: true })); })()", tobi))
	p.Wait("document.querySelector('.new p')?.innerText.startsWith('Since Oct 26, 2026.')")
	known(t, p)
}

func copyOf(t *testing.T, snapshot fs.FS) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	entries, err := fs.ReadDir(snapshot, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		body, err := fs.ReadFile(snapshot, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = &fstest.MapFile{Data: body, Mode: 0o644}
	}
	return files
}

// Without history, followers and counts are compared with those of the last visit.
func TestNewsFromTheLastVisit(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	lists := func(n int) memsite.Site {
		return generate(t, afero.NewIOFS(following(n)), site.Config{API: site.APIEFP})
	}
	h := serve(t, lists(3), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: being(h.URL, followed)})
	known(t, p)
	looked(p)
	equalTexts(t, "the first visit", browser.Eval[[]string](p, news), []string{"On your next visit, you will see what has changed."})
	h.deploy(lists(5))
	later(t, p, h)
	equalTexts(t, "the second visit", browser.Eval[[]string](p, news), []string{"Since Nov 1, 2026.", "2 new followers 0x0000…0005 0x0000…0004", "Your followers"})
	h.deploy(lists(1004)) // too many to list by name
	later(t, p, h)
	equalTexts(t, "many", browser.Eval[[]string](p, news), []string{"Since Nov 1, 2026.", "Followers: 1,004 (was 5)", "Your followers"})
}

// Without an account, the start offers search terms that find something, a random account, recent
// follows and visited accounts, until the reader hides them.
func TestStart(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	s := demo(t)
	h := serve(t, s, "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	tries := browser.Eval[[]string](p, "[...document.querySelectorAll('.tries a')].map((a) => a.getAttribute('href'))")
	if len(tries) != 3 || p.Count(".viewed") > 0 || p.Count(".new") > 0 {
		t.Errorf("got %d search terms, %d parts about viewed accounts and %d about the reader, want 3, 0 and 0", len(tries), p.Count(".viewed"), p.Count(".new"))
	}
	// The latest follows, by the newest record of each account.
	newest := map[string][2]string{}
	all := said(t, fixtures.Demo())
	owners := primaries(t, fixtures.Demo())
	each(t, fixtures.Demo(), "records.ndjson", func(row map[string]any) {
		who, about, added := owners[fmt.Sprint(row["token_id"])], fmt.Sprint(row["data"]), fmt.Sprint(row["added"])
		if row["added"] != nil && all[who][about] == "follows" && added > newest[about][0] {
			newest[about] = [2]string{added, who}
		}
	})
	rows := browser.Eval[[][]string](p, "[...document.querySelectorAll('.latest li')].map((li) => [...[...li.querySelectorAll('a')].map((a) => a.getAttribute('href').slice(4)), li.querySelector('time').dateTime, li.querySelector('time').innerText])")
	if len(rows) != 10 {
		t.Errorf("latest: got %d rows, want 10", len(rows))
	}
	for i, row := range rows {
		if want := newest[row[1]]; row[0] != want[1] || row[2] != want[0] {
			t.Errorf("latest: got %v, want %s by %s", row, want[0], want[1])
		}
		if i > 0 && row[2] > rows[i-1][2] {
			t.Errorf("latest: got %s after %s, want the newest first", row[2], rows[i-1][2])
		}
		added, err := time.Parse(time.RFC3339, row[2])
		if err != nil {
			t.Fatal(err)
		}
		if days := int(asOf.Sub(added).Hours() / 24); days >= 30 && row[3] != fmt.Sprintf("%d mo", days/30) {
			t.Errorf("latest: got %q for %d days", row[3], days)
		}
	}
	for _, to := range tries {
		p.Go(h.at(to))
		shown(t, p)
		if p.Count("main a.person") == 0 {
			t.Errorf("%s: got nothing, want results", to)
		}
	}
	p.Go(h.at("#/"))
	shown(t, p)
	p.Click(".tries button")
	p.Wait("location.hash.startsWith('#/a/0x')")
	known(t, p)

	// Recently viewed accounts, latest first, at most twelve.
	var top struct{ Accounts [][]any }
	if err := json.Unmarshal([]byte(s[site.TopKey]), &top); err != nil {
		t.Fatal(err)
	}
	for _, row := range top.Accounts[:14] {
		p.Go(h.at("#/a/" + fmt.Sprint(row[0])))
		known(t, p)
	}
	p.Go(h.at("#/"))
	shown(t, p)
	const viewed = "[...document.querySelectorAll('.viewed .face')].map((a) => a.getAttribute('href').slice(4))"
	got := browser.Eval[[]string](p, viewed)
	for i := range 6 {
		if want := fmt.Sprint(top.Accounts[13-i][0]); i >= len(got) || got[i] != want {
			t.Errorf("viewed: got %q, want %s at %d", got, want, i)
		}
	}
	key := "followpress viewed " + h.URL
	if n := browser.Eval[int](p, fmt.Sprintf("JSON.parse(localStorage.getItem(%q)).length", key)); n != 12 {
		t.Errorf("viewed: got %d stored, want 12", n)
	}
	barriers(t, p)
	fits(t, p)
	p.Click(".viewed button")
	p.Wait("!document.querySelector('.viewed')")
	// When turned off, the browser stores nothing more.
	p.Go(h.at("#/a/" + tobi))
	known(t, p)
	p.Click(".tools button")
	p.Click("#settings input[aria-describedby=about-viewed]")
	p.Go(h.at("#/a/" + hanneke))
	known(t, p)
	if got := browser.Eval[string](p, fmt.Sprintf("localStorage.getItem(%q)", key)); got != "[]" {
		t.Errorf("off: got %s stored, want nothing", got)
	}
}

// Without times in the snapshot, the start shows other accounts instead of the latest follows.
func TestStartWithoutTimes(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	files := copyOf(t, fixtures.Demo())
	var records bytes.Buffer
	each(t, fixtures.Demo(), "records.ndjson", func(row map[string]any) {
		delete(row, "added")
		body, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		records.Write(append(body, '\n'))
	})
	files["records.ndjson"] = &fstest.MapFile{Data: records.Bytes(), Mode: 0o644}
	h := serve(t, generate(t, files, site.Config{API: site.APIEFP}), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	counts := browser.Eval[[]int](p, "[...document.querySelectorAll('.latest li .num')].map((e) => parseInt(e.innerText))")
	if got := p.Text(".latest h2"); got != "Most top 8 mentions" || len(counts) != 10 || counts[0] < counts[9] || counts[9] == 0 {
		t.Errorf("got %q with %v, want who is in most top 8", got, counts)
	}
	barriers(t, p)
}

// For an account that follows more accounts than are read, the newest are marked, and profiles
// still show the right state.
func TestManyFollows(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	const follows = 22_500
	var records strings.Builder
	for i := range follows {
		fmt.Fprintf(&records, `{"token_id":"1","version":1,"record_type":"address","data":"0x%040x","tags":[]}`+"\n", 0x100000+i)
	}
	fmt.Fprintf(&records, `{"token_id":"2","version":1,"record_type":"address","data":%q,"tags":[]}`+"\n", owner(1))
	snapshot := fstest.MapFS{}
	for name, body := range map[string]string{
		"meta.json":       `{"format":1,"as_of":"2026-11-01T00:00:00Z"}`,
		"lists.ndjson":    fmt.Sprintf("{\"token_id\":\"1\",\"owner\":%q}\n{\"token_id\":\"2\",\"owner\":%q}\n", owner(1), owner(2)),
		"accounts.ndjson": fmt.Sprintf("{\"address\":%q,\"primary_list\":\"1\"}\n{\"address\":%q,\"primary_list\":\"2\"}\n", owner(1), owner(2)),
		"records.ndjson":  records.String(), "events.ndjson": "", "badges.ndjson": "",
	} {
		snapshot[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
	}
	b := browser.Start(t, browser.Options{})
	h := serve(t, generate(t, snapshot, site.Config{API: site.APIEFP}), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now, Before: being(h.URL, owner(1))})
	known(t, p)
	shards := map[string]bool{}
	for _, path := range h.asked() {
		if n, ok := strings.CutPrefix(path, "/_search/lists/1/"); ok {
			shards[n] = true
		}
	}
	if len(shards) > 21 || shards["0"] || !shards["22"] {
		t.Errorf("read the shards %v, want the newest 20 and no head", shards)
	}
	for address, want := range map[string]string{fmt.Sprintf("0x%040x", 0x100000): "You follow", fmt.Sprintf("0x%040x", 0x100000+follows-1): "You follow", owner(2): "Follows you"} {
		p.Go(h.at("#/a/" + address))
		known(t, p)
		p.Wait(fmt.Sprintf("%s.startsWith(%q)", line, want))
	}
}

/* A site that is replaced */

// aClock advances the clock of the page, but not its timers.
const aClock = "{ const now = performance.now.bind(performance); globalThis.passed = 0; performance.now = () => now() + passed; }"

// A page announces a newer site. It shows the newer site once the reader asks for it or opens
// another view, and never mixes the two.
func TestNewerSite(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	lists := func(n int) memsite.Site {
		return generate(t, afero.NewIOFS(following(n)), site.Config{API: site.APIEFP})
	}
	h := serve(t, lists(3), "/")
	p := b.Open(t, h.at("#/a/"+followed+"/followers"), browser.View{Size: browser.Desktop, Now: now, Before: aClock})
	shown(t, p)
	looked(p)
	const again = "passed += 3_600_000; document.dispatchEvent(new Event('visibilitychange'))"
	browser.Eval[any](p, again)
	p.Settle()
	if got := browser.Eval[string](p, tabCount); got != "3" || p.Count(".newer") > 0 {
		t.Errorf("the same site: got %s followers and %d bars, want 3 and none", got, p.Count(".newer"))
	}

	h.deploy(lists(5))
	browser.Eval[any](p, again)
	p.WaitFor(".newer button")
	if got := browser.Eval[string](p, tabCount); got != "3" {
		t.Errorf("before the reader asks: got %s followers, want 3 as before", got)
	}
	barriers(t, p)
	fits(t, p)
	browser.Eval[any](p, "document.querySelector('.newer button').focus()")
	p.Press(browser.Enter)
	p.Wait(tabCount + " === '5' && document.querySelectorAll('main [data-index] a').length === 5 && !document.querySelector('.newer')")
	if got := browser.Eval[string](p, "document.activeElement.id"); got != "main" {
		t.Errorf("got the focus on %q, want main", got)
	}
	if got := p.Text(".foot"); !strings.Contains(got, "5 lists") {
		t.Errorf("foot: got %q, want the newer sizes", got)
	}

	// A reader who goes on while the bar is shown gets the newer site.
	p.Settle()
	h.deploy(lists(6))
	browser.Eval[any](p, again)
	p.WaitFor(".newer button")
	browser.Eval[any](p, "location.hash = '#/boards/followers'")
	p.Wait("document.querySelector('main [data-index] .current')?.innerText === '6' && !document.querySelector('.newer')")

	// An older site, such as one from a stale cache, is not announced.
	p.Settle()
	h.deploy(lists(4))
	browser.Eval[any](p, again)
	p.Settle()
	if p.Count(".newer") > 0 {
		t.Error("an older site: got a bar, want none")
	}
}

// A view whose objects belong to two sites, because of a publish while it loads, reloads by itself.
// If the reader sees it already, the bar appears instead.
func TestViewOfTwoSites(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	lists := func(n int) memsite.Site {
		return generate(t, afero.NewIOFS(following(n)), site.Config{API: site.APIEFP})
	}
	before, after := lists(2300), lists(2302)
	h := &host{prefix: "/", site: before}
	var mu sync.Mutex
	at := "" // the object that triggers the publish of the newer site
	published := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if at != "" && strings.HasPrefix(r.URL.Path, at) {
			at = ""
			published++
			h.deploy(after)
		}
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	h.URL = server.URL + "/"
	set := func(to string) {
		mu.Lock()
		defer mu.Unlock()
		at = to
	}
	p := b.Open(t, h.at("#/network"), browser.View{Size: browser.Desktop, Now: now, Before: aClock})
	shown(t, p)
	looked(p)
	// The counts of the head come from the older site, the rows from the newer one.
	set("/_search/followers/")
	browser.Eval[any](p, fmt.Sprintf("location.hash = '#/a/%s/followers'", followed))
	p.Wait(tabCount + " === '2,302' && document.querySelector('main [aria-setsize]')?.getAttribute('aria-setsize') === '2302' && !document.querySelector('.newer')")
	if published != 1 {
		t.Fatalf("published %d times, want once", published)
	}

	// Restore the older site, with its first rows visible.
	h.deploy(before)
	p.Reload()
	p.Wait(tabCount + " === '2,300'")
	shown(t, p)
	looked(p)
	set("/_search/followers/" + followed + "/1")
	browser.Eval[any](p, "scrollTo(0, 68 * 1500)")
	p.WaitFor(".newer button")
	if got := browser.Eval[string](p, tabCount); got != "2,300" {
		t.Errorf("a view that is already visible: got %s followers, want it unchanged", got)
	}
	p.Click(".newer button")
	p.Wait(tabCount + " === '2,302' && !document.querySelector('.newer')")
}

// A page rarely checks for a newer site: after each view, and then only as time passes.
func TestNewerSiteIsAskedForSeldom(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	p.Settle()
	roots := func() (n int) {
		for _, path := range h.asked() {
			if path == "/_site" {
				n++
			}
		}
		return n
	}
	roots()
	for _, place := range []string{"#/a/" + mira, "#/boards/followers", "#/a/" + url.PathEscape("tobi-okafor.eth") + "/following"} {
		browser.Eval[any](p, fmt.Sprintf("location.hash = %q", place))
		shown(t, p)
		p.Settle()
		for range 20 {
			browser.Eval[any](p, "document.dispatchEvent(new Event('visibilitychange'))")
		}
		p.Settle()
		if n := roots(); n > 2 {
			t.Errorf("%s: asked %d times for the root, want once, or twice", place, n)
		}
	}
}
