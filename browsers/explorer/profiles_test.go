package explorer_test

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
)

// Accounts of people, by number. All have lists.
const (
	vitalik = iota
	cyrillic
	friend
	reversed
	unseen
	formula
	endless
	blocker
	muter
	enemy
	persons
)

func personAddress(i int) string { return fmt.Sprintf("0x%040x", 0xfeed0000cafe+i*0x1111) }

// people returns a snapshot of accounts that follow, block and mute each other. Some names attack
// the page, the clipboard or exports. All accounts except vitalik's enemies follow vitalik.
func people(t *testing.T) fstest.MapFS {
	t.Helper()
	red := image.NewRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		red.Set(i%8, i/8, color.RGBA{255, 0, 0, 255})
	}
	var avatar bytes.Buffer
	if err := png.Encode(&avatar, red); err != nil {
		t.Fatal(err)
	}
	names := [persons]string{
		vitalik: "vitalik.eth", cyrillic: "vit\u0430lik.eth", friend: "friend.eth", reversed: "\u202eeth.kilativ",
		unseen: "vi\u200btalik.eth", formula: `=HYPERLINK("https://leak.example","x")`, endless: strings.Repeat("W\u0337", 5000),
		blocker: "blocker.eth", muter: "muter.eth", enemy: "enemy.eth",
	}
	var accounts, lists, records strings.Builder
	row := func(table *strings.Builder, value map[string]any) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		table.Write(append(text, '\n'))
	}
	says := func(list, about int, tags ...string) {
		row(&records, map[string]any{"token_id": fmt.Sprint(list + 1), "version": 1, "record_type": "address", "data": personAddress(about),
			"tags": append([]string{}, tags...), "added": fmt.Sprintf("2026-01-02T03:04:%02d.000Z", list)})
	}
	for i, name := range names {
		ens := map[string]any{"name": name, "header": "https://headers.example/header.png"}
		if i == vitalik {
			ens["avatar"] = "data:image/png;base64," + base64.StdEncoding.EncodeToString(avatar.Bytes())
		}
		row(&accounts, map[string]any{"address": personAddress(i), "primary_list": fmt.Sprint(i + 1), "ens": ens})
		row(&lists, map[string]any{"token_id": fmt.Sprint(i + 1), "owner": personAddress(i)})
		switch i {
		case vitalik:
		case blocker:
			says(i, vitalik, "block")
		case muter:
			says(i, vitalik, "mute")
		case enemy:
			says(i, vitalik, "block", "mute", "top8")
		default:
			says(i, vitalik, "top8")
		}
	}
	for i := cyrillic; i < blocker; i++ {
		says(vitalik, i, "top8", "=cmd", "free")
	}
	says(vitalik, blocker, "block", "free")
	says(vitalik, muter, "mute")
	says(friend, cyrillic)
	return fstest.MapFS{
		"meta.json":       {Data: []byte(`{"format":1,"as_of":"2026-11-01T00:00:00Z"}`)},
		"accounts.ndjson": {Data: []byte(accounts.String())}, "lists.ndjson": {Data: []byte(lists.String())}, "records.ndjson": {Data: []byte(records.String())},
		"events.ndjson": {Data: nil}, "badges.ndjson": {Data: nil},
	}
}

// saves intercepts the files that a page saves: saved has [name, file].
const saves = tripwires + `
	globalThis.saved = [];
	const files = new Map(), make = URL.createObjectURL;
	URL.createObjectURL = (file) => { const url = make.call(URL, file); files.set(url, file); return url; };
	const click = HTMLAnchorElement.prototype.click;
	HTMLAnchorElement.prototype.click = function () { this.download ? saved.push([this.download, files.get(this.href)]) : click.call(this); };
`

// lastSaved waits for a file and returns it.
func lastSaved(t *testing.T, p *browser.Page) (name string, body []byte) {
	t.Helper()
	p.Wait("saved.length > 0")
	browser.Eval[any](p, `(async () => {
		const [name, file] = saved.pop();
		const bytes = new Uint8Array(await file.arrayBuffer());
		globalThis.read = [name, btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))];
	})() && undefined`)
	p.Wait("globalThis.read")
	read := browser.Eval[[]string](p, "[read, globalThis.read = undefined][0]")
	body, err := base64.StdEncoding.DecodeString(read[1])
	if err != nil {
		t.Fatal(err)
	}
	return read[0], body
}

func peopleHost(t *testing.T, config site.Config) *host {
	return serve(t, generate(t, people(t), config), "/")
}

func personAt(h *host, i int, rest string) string { return h.at("#/a/" + personAddress(i) + rest) }

// In tabs other than the profile, the head is one line: rows and the graph start in the first third
// of the window.
func TestProfileHead(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: allowOthers})
	p.Forgive(absent...)
	top := func(selector string) float64 {
		return browser.Eval[float64](p, fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().top", selector))
	}
	for _, size := range []browser.Size{browser.Phone, browser.Tablet, browser.Desktop} {
		p.Resize(size)
		for part, selector := range map[string]string{"following": "[data-index]", "followers": "[data-index]", "graph": "main canvas"} {
			p.Go(h.at("#/a/miralund.eth/" + part))
			shown(t, p)
			if got, third := top(selector), float64(size.Height)/3; got > third {
				t.Errorf("%s at %s: %s begins at %.0f, want at most %.0f", part, size, selector, got, third)
			}
			fits(t, p)
		}
		p.Go(h.at("#/a/miralund.eth"))
		shown(t, p)
		beside := browser.Eval[bool](p, "document.querySelector('.who .avatar').getBoundingClientRect().right <= document.querySelector('h1').getBoundingClientRect().left")
		if beside != (size != browser.Phone) {
			t.Errorf("at %s: the avatar is next to the name: %v", size, beside)
		}
	}
}

// An account with a header picture shows it above the head. Other accounts leave no space for it.
func TestHeader(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	files := pictured("https://img.example/a.png")
	h := serve(t, generate(t, files, site.Config{API: site.APIEFP, Pictures: "img.example"}), "/")
	p := b.Open(t, h.at("#/a0.eth"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	p.Wait("document.querySelector('.header img')?.naturalWidth > 0")
	fits(t, p)
	p.Go(h.at("#/a/a0.eth/following"))
	shown(t, p)
	if n := p.Count(".header"); n != 0 {
		t.Errorf("below another tab: got %d headers, want none", n)
	}
	h.deploy(generate(t, pictured(""), site.Config{API: site.APIEFP, Pictures: "img.example"}))
	p = b.Open(t, h.at("#/a0.eth"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	if n := p.Count(".header"); n != 0 {
		t.Errorf("an account without a header picture: got %d headers, want none", n)
	}
}

// Counts precede ranks. The number of blocks has no rank.
func TestCounts(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := peopleHost(t, site.Config{API: site.APIEFP})
	p := b.Open(t, personAt(h, vitalik, ""), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	got := browser.Eval[[]string](p, "[...document.querySelectorAll('.measures > li')].map((e) => e.innerText.replace(/\\s+/g, ' '))")
	for i, want := range []string{"Followers 6 Most followed More than", "Following 6 Follows the most More than", "Top 8 mentions 6 In most top 8s", "Mutuals 6 Most mutuals", "Blocked by 2", "Muted by 2", "Blocking 1", "Muting 1"} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) || (strings.HasPrefix(want, "Blocked") && got[i] != want) {
			t.Errorf("got the counts %q, want %q at %d", got, want, i)
		}
	}
	if n := p.Count(".top8 a"); n != 6 {
		t.Errorf("got %d accounts in the top 8, want the 6 that are followed", n)
	}
	if n := p.Count("main a[href*='boards/blocked']"); n != 0 {
		t.Error("got a link to the leaderboard of blocked accounts, want none")
	}
	tags := p.Text("main .wait")
	if !strings.Contains(tags, "free") || strings.Contains(tags, "block") || strings.Contains(tags, "mute") || strings.Contains(tags, "top8") {
		t.Errorf("got the tags %q, want only tags without a meaning", tags)
	}
	barriers(t, p)
}

// Counts of tabs, filters and rows agree, and rows name subject, action and object.
func TestNumbersAgree(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := peopleHost(t, site.Config{API: site.APIEFP})
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now})
	for _, test := range []struct {
		at    string
		chips []string // the selected one first
		rows  int
		marks []string
	}{
		{"/followers", []string{"Followers 6", "Blocked by 2", "Muted by 2", "All 9"}, 6, []string{"vitalik.eth follows back"}},
		{"/followers?show=blocks", []string{"Blocked by 2", "Followers 6", "Muted by 2", "All 9"}, 2, []string{"Blocks vitalik.eth", "Mutes vitalik.eth", "Blocked by vitalik.eth"}},
		{"/followers?show=mutes", []string{"Muted by 2", "Followers 6", "Blocked by 2", "All 9"}, 2, []string{"Mutes vitalik.eth", "Muted by vitalik.eth"}},
		{"/followers?show=all", []string{"All 9", "Followers 6", "Blocked by 2", "Muted by 2"}, 9, []string{"vitalik.eth follows back", "Blocks vitalik.eth"}},
		{"/followers?tags=mute", []string{"All 9", "Followers 6", "Blocked by 2", "Muted by 2"}, 2, []string{"Mutes vitalik.eth"}},
		{"/followers?q=friend", []string{"Followers 6", "Blocked by 2", "Muted by 2", "All 9"}, 1, nil},
		{"/following", []string{"Following 6", "Blocked 1", "Muted 1", "All 8"}, 6, nil},
		{"/following?show=blocks", []string{"Blocked 1", "Following 6", "Muted 1", "All 8"}, 1, []string{"Blocked by vitalik.eth"}},
		{"/following?tags=free", []string{"Following 6", "Blocked 1", "Muted 1", "All 8"}, 6, nil},
	} {
		p.Go(personAt(h, vitalik, test.at))
		shown(t, p)
		pressed := browser.Eval[string](p, "document.querySelector('.filters .filters [aria-pressed=true]').innerText.replace(/\\s+/g, ' ')")
		chips := browser.Eval[[]string](p, "[...document.querySelector('.filters .filters').querySelectorAll('button')].map((e) => e.innerText.replace(/\\s+/g, ' '))")
		slices.SortFunc(chips, func(a, b string) int {
			return map[bool]int{true: 0, false: 1}[a == pressed] - map[bool]int{true: 0, false: 1}[b == pressed]
		})
		if !slices.Equal(chips, test.chips) {
			t.Errorf("%s: got the filters %q, want %q", test.at, chips, test.chips)
		}
		if n := p.Count("[data-index]"); n != test.rows {
			t.Errorf("%s: got %d rows, want %d", test.at, n, test.rows)
		}
		if free := "free 6"; strings.Contains(test.at, "/following") && !strings.Contains(test.at, "show") && !strings.Contains(strings.Join(strings.Fields(p.Text(".filters")), " "), free) {
			t.Errorf("%s: got the filters %q, want %q, as rows have it", test.at, p.Text(".filters"), free)
		}
		marks := browser.Eval[[]string](p, "[...document.querySelectorAll('[data-index] .mark')].map((e) => e.getAttribute('aria-label'))")
		for _, mark := range test.marks {
			if !slices.Contains(marks, mark) {
				t.Errorf("%s: got the marks %q, want %q among them", test.at, marks, mark)
			}
		}
		if tabs := p.Text(".head .tabs"); !strings.Contains(strings.Join(strings.Fields(tabs), " "), "Following 6 Followers 6") {
			t.Errorf("%s: got the tabs %q, want 6 and 6", test.at, tabs)
		}
	}

	// Filter by keyboard; the URL of the result can be shared.
	p.Go(personAt(h, vitalik, "/followers"))
	shown(t, p)
	browser.Eval[any](p, "void [...document.querySelectorAll('.filters button')].find((e) => e.innerText.startsWith('Blocked')).focus()")
	p.Press(browser.Enter)
	p.Wait("document.querySelectorAll('[data-index]').length === 2")
	if !strings.Contains(p.URL(), "show=blocks") {
		t.Errorf("got the place %s, want the shown state in it", p.URL())
	}
	barriers(t, p)
}

// For every account and list, the site's count of follows equals the number of such rows. The other
// rows have the tag block or mute.
func TestCountsOfAll(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	for name, s := range map[string]memsite.Site{
		"conformance": generate(t, part(t, fixtures.ConformanceEFP()), site.Config{API: site.APIEFP}),
		"people":      generate(t, people(t), site.Config{API: site.APIEFP}),
	} {
		h := serve(t, s, "/")
		p := b.Open(t, h.at("#/"), browser.View{Size: browser.Desktop, Now: now})
		shown(t, p)
		var subjects [][2]string
		for key := range s {
			if parts := strings.Split(string(key), "/"); len(parts) == 5 && parts[4] == "stats" {
				subjects = append(subjects, [2]string{parts[2], parts[3]})
			}
		}
		if len(subjects) < 20 {
			t.Fatalf("%s: got %d subjects, want at least 20", name, len(subjects))
		}
		for some := range slices.Chunk(subjects, 10) { // few, since the wait for an answer is limited
			list, err := json.Marshal(some)
			if err != nil {
				t.Fatal(err)
			}
			faults := browser.Eval[[]string](p, fmt.Sprintf(`(async () => {
				const { openSite } = await import('../_client/followpress.js');
				const site = openSite(new URL('..', location.href));
				const faults = [];
				for (const [folder, id] of %s) {
					const of = folder === 'users' ? site.user(id) : site.list(id);
					const stats = await of.stats();
					for (const [kind, count, tags] of [['following', stats.following_count, await of.tags()], ['followers', stats.followers_count, await of.taggedAs()]]) {
						const { total, rows } = await of.rows(kind, { follows: true, limit: Infinity });
						const out = new Set(tags.taggedAddresses.filter(({ tag }) => tag === 'block' || tag === 'mute').map(({ address }) => address)).size;
						if (rows.length !== count || total !== count + out) faults.push([folder, id, kind, count, out, total, rows.length].join(' '));
					}
				}
				return faults;
			})()`, list))
			for _, fault := range faults {
				t.Errorf("%s: of, kind, counted, blocked or muted, rows, follows: %s", name, fault)
			}
		}
	}
}

// A look-alike of an account with more followers gets a warning, and the imitated account gets
// none.
func TestLookalikes(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	for _, config := range []site.Config{{API: site.APIEFP}, {}} {
		h := peopleHost(t, config)
		p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
		for i, want := range map[int][]string{
			vitalik:  nil,
			cyrillic: {"Looks like vitalik.eth (0x0000…cafe), which has more followers.", "mixes letters from different alphabets: Latin, Cyrillic."},
			unseen:   {"Looks like vitalik.eth"},
			friend:   nil,
			reversed: nil,
		} {
			p.Go(personAt(h, i, ""))
			shown(t, p)
			p.Wait("/[A-F]/.test(document.querySelector('.address code').innerText.slice(2))") // lazily loaded parts have arrived
			p.Settle()
			said := p.Text(".likeness")
			for _, text := range want {
				if !strings.Contains(said, text) {
					t.Errorf("account %d: got %q, want %q in it", i, said, text)
				}
			}
			if (said != "") != (want != nil) {
				t.Errorf("account %d: got %q, want %q", i, said, want)
			}
			if want != nil && p.Count(".likeness a[href$='"+personAddress(vitalik)+"']") != 1 {
				t.Errorf("account %d: got no link to vitalik.eth", i)
			}
			fits(t, p)
		}
		barriers(t, p)
		p.Go(personAt(h, vitalik, ""))
		shown(t, p)
		p.Wait("document.querySelector('.address code').textContent === '" + common.HexToAddress(personAddress(vitalik)).Hex() + "'")
	}
}

// A profile is shared by its link, as a QR code and as a picture. No other site is requested before
// the reader opens a link.
func TestShare(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := peopleHost(t, site.Config{API: site.APIEFP})
	for _, size := range []browser.Size{browser.Phone, browser.Tablet, browser.Desktop} {
		p := b.Open(t, personAt(h, vitalik, "?q=1"), browser.View{Size: size, Dark: size == browser.Tablet, Now: now, Before: saves})
		shown(t, p)
		browser.Eval[any](p, "document.querySelector('.share').focus()")
		p.Press(browser.Enter)
		p.WaitFor("dialog[open] canvas")
		p.Wait("!document.querySelector('dialog canvas ~ p button').disabled")
		barriers(t, p)
		fits(t, p)
		if got, want := p.Text("dialog .address code"), personAt(h, vitalik, ""); got != want {
			t.Errorf("got the link %q, want %q", got, want)
		}
		browser.Eval[any](p, `import('../_client/qr.js').then(({ picture }) => { globalThis.wanted = picture(document.querySelector('dialog .address code').textContent); }) && undefined`)
		p.Wait("globalThis.wanted")
		if !browser.Eval[bool](p, "wanted.includes(document.querySelector('dialog .qr path').getAttribute('d'))") {
			t.Error("the QR code is not that of the link")
		}
		address, rel := common.HexToAddress(personAddress(vitalik)).Hex(), " noopener noreferrer nofollow"
		links := browser.Eval[[]string](p, "[...document.querySelectorAll('dialog a[target]')].map((a) => a.href + ' ' + a.rel)")
		if want := []string{"https://etherscan.io/address/" + address + rel, "https://efp.app/" + address + rel}; !slices.Equal(links, want) {
			t.Errorf("got the links %q, want %q", links, want)
		}
		for _, object := range browser.Eval[[]string](p, "[...document.querySelectorAll('dialog .chip')].map((a) => a.getAttribute('href'))") {
			if key := strings.TrimPrefix(object, h.URL); h.site[site.Key(key)] == "" {
				t.Errorf("got a link to %s, want an object of the site", object)
			}
		}
		browser.Eval[any](p, "void document.querySelector('dialog canvas ~ p button').click()")
		name, body := lastSaved(t, p)
		picture, err := png.Decode(bytes.NewReader(body))
		if err != nil || name != "card-vitalik.eth.png" || picture.Bounds() != image.Rect(0, 0, 1200, 630) {
			t.Fatalf("saved %s: %v, %v", name, picture.Bounds(), err)
		}
		if r, g, _, _ := picture.At(182, 182).RGBA(); r < 0xf000 || g > 0x1000 {
			t.Errorf("got the colour %v in the middle of the avatar, want red", picture.At(182, 182))
		}
		p.Press(browser.Escape)
		p.Wait("!document.querySelector('dialog')")
		if !browser.Eval[bool](p, "document.activeElement.matches('.share')") {
			t.Error("after Escape: the focus is not on the button")
		}
		for _, request := range append(p.Requests(), b.Requests()...) {
			if u, err := url.Parse(request); err == nil && u.Host != "" && !strings.HasPrefix(request, h.URL) {
				t.Errorf("got a request for %s, want none to other hosts", request)
			}
		}
		p.Close()
	}
}

// A list is exported with the current filter, and the dialog links to the objects with its rows.
func TestExport(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := peopleHost(t, site.Config{API: site.APIEFP})
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: saves})
	save := func(at, format string) (string, []byte) {
		t.Helper()
		p.Go(h.at(at))
		shown(t, p)
		if p.Count(".folded") > 0 {
			p.Click(".unfold")
		}
		// The dialog stays open when the filter changes.
		browser.Eval[any](p, "void document.querySelector('.asked p button[aria-expanded=false]')?.click()")
		p.WaitForText("apostrophe")
		p.Settle()
		barriers(t, p)
		fits(t, p)
		for _, object := range browser.Eval[[]string](p, "[...document.querySelectorAll('main .card a.chip')].map((a) => a.href)") {
			if key := strings.TrimPrefix(object, h.URL); !strings.Contains(h.site[site.Key(key)], personAddress(blocker)) {
				t.Errorf("%s: got a link to %s, want an object with the rows", at, object)
			}
		}
		if p.Count("main .card a.chip") == 0 {
			t.Errorf("%s: got no link to an object", at)
		}
		browser.Eval[any](p, fmt.Sprintf("void [...document.querySelectorAll('main .card button')].find((e) => e.innerText === %q).click()", format))
		return lastSaved(t, p)
	}
	whose := "#/a/" + personAddress(vitalik)

	name, body := save(whose+"/followers?show=all&sort=earliest", "CSV")
	rows, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
	if err != nil || name != "followers-vitalik.eth.csv" || len(rows) != 10 {
		t.Fatalf("%s: got %d rows, %v, want 10", name, len(rows), err)
	}
	for i, row := range rows[1:] {
		if row[0] != personAddress(i+1) || row[5] != fmt.Sprintf("2026-01-02T03:04:%02d.000Z", i+1) {
			t.Errorf("row %d: got %.200q, want account %d", i, row, i+1)
		}
		for _, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") || strings.ContainsAny(cell, "\u202e\u200b") {
				t.Errorf("row %d: got the cell %.100q, which is more than a text", i, cell)
			}
		}
	}
	if got := rows[formula][1]; got != `'=HYPERLINK("https://leak.example","x")` {
		t.Errorf("got the name %q, want it with an apostrophe", got)
	}
	if got := []string{rows[blocker][2], rows[muter][2], rows[enemy][2], rows[friend][2]}; !slices.Equal(got, []string{"blocks", "mutes", "blocks mutes", "follows"}) {
		t.Errorf("got the notices %q", got)
	}

	for at, want := range map[string]int{whose + "/followers?sort=followers": 6, whose + "/following": 6, "#/l/1?show=all": 8, "#/l/1?q=friend": 1} {
		name, body = save(at, "JSON")
		var file struct {
			Kind     string
			Cut      bool
			Accounts []struct{ Address, Name string }
		}
		if err := json.Unmarshal(body, &file); err != nil || len(file.Accounts) != want || file.Cut || !strings.HasPrefix(name, file.Kind) {
			t.Errorf("%s: saved %s with %d accounts, %v, want %d", at, name, len(file.Accounts), err, want)
		}
		if bytes.ContainsAny(body, "\u202e\u200b") {
			t.Errorf("%s: invisible characters are not spelled out", at)
		}
	}
	for _, fault := range browser.Eval[[]string](p, inspect) {
		t.Error(fault)
	}
}

// No name extends beyond the card or becomes more than text in a dialog.
func TestHostileCards(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	for name, h := range map[string]*host{"people": peopleHost(t, site.Config{API: site.APIEFP}), "hostile": serve(t, generate(t, hostile(t), site.Config{API: site.APIEFP}), "/")} {
		p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: saves})
		count, address := persons, personAddress
		if name == "hostile" {
			count, address = hostiles, hostileAddress
		}
		for i := range count {
			p.Go(h.at("#/a/" + address(i)))
			shown(t, p)
			p.Click(".share")
			p.WaitFor("dialog[open] canvas")
			p.Wait("!document.querySelector('dialog canvas ~ p button').disabled")
			fits(t, p)
			for _, fault := range browser.Eval[[]string](p, inspect) {
				t.Errorf("%s %d: %s", name, i, fault)
			}
			browser.Eval[any](p, "void document.querySelector('dialog canvas ~ p button').click()")
			file, body := lastSaved(t, p)
			if strings.ContainsAny(strings.TrimSuffix(file, ".png"), "/\\<>:\"|?*\u202e\u200b=") || len(file) > 80 {
				t.Errorf("%s %d: saved as %q", name, i, file)
			}
			picture, err := png.Decode(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			ground := picture.At(1, 1)
			for y := range 330 {
				for _, x := range []int{338, 1130, 1199} { // next to the name
					if picture.At(x, y) != ground {
						t.Fatalf("%s %d: something is drawn at %d, %d", name, i, x, y)
					}
				}
			}
			for x := range 1200 {
				if picture.At(x, 20) != ground || picture.At(x, 325) != ground {
					t.Fatalf("%s %d: something is drawn above or below the name, at %d", name, i, x)
				}
			}
			p.Press(browser.Escape)
			p.Wait("!document.querySelector('dialog')")
		}
		p.Close()
	}
}

// For an account with very many followers and some blocks, the first rows need few objects, and the
// last ones are reachable.
func TestFollowersOfMany(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	const followers, others = 10_700, 3
	var accounts, lists, records strings.Builder
	fmt.Fprintf(&accounts, `{"address":%q,"ens":{"name":"many.eth"}}`+"\n", personAddress(0))
	for i := 1; i <= followers+others; i++ {
		tags := "[]"
		if i%(followers/others) == 7 {
			tags = `["block"]`
		}
		fmt.Fprintf(&accounts, `{"address":%q,"primary_list":"%d"}`+"\n", personAddress(i), i)
		fmt.Fprintf(&lists, `{"token_id":"%d","owner":%q}`+"\n", i, personAddress(i))
		fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":%q,"tags":%s}`+"\n", i, personAddress(0), tags)
	}
	count := strings.Count(records.String(), "block")
	snapshot := fstest.MapFS{
		"meta.json":       {Data: []byte(`{"format":1,"as_of":"2026-11-01T00:00:00Z"}`)},
		"accounts.ndjson": {Data: []byte(accounts.String())}, "lists.ndjson": {Data: []byte(lists.String())}, "records.ndjson": {Data: []byte(records.String())},
		"events.ndjson": {Data: nil}, "badges.ndjson": {Data: nil},
	}
	h := serve(t, generate(t, snapshot, site.Config{API: site.APIEFP}), "/")
	b := browser.Start(t, browser.Options{})
	p := b.Open(t, h.at("#/a/"+personAddress(0)+"/followers"), browser.View{Size: browser.Desktop, Now: now})
	shown(t, p)
	shards := 0
	for _, asked := range h.asked() {
		if strings.Contains(asked, "/_search/followers/") {
			shards++
		}
	}
	if shards > 2 {
		t.Errorf("asked for %d objects of followers at first, want 2 at most", shards)
	}
	chips := browser.Eval[string](p, "document.querySelector('.filters .filters').innerText.replace(/\\s+/g, ' ')")
	if want := fmt.Sprintf("Followers 10,70%d Blocked by %d All 10,703", 3-count, count); chips != want {
		t.Errorf("got the filters %q, want %q", chips, want)
	}
	last := "Math.max(...[...document.querySelectorAll('[data-index]')].map((row) => Number(row.dataset.index)))"
	for begun := time.Now(); browser.Eval[int](p, last) < followers+others-count-1; {
		if time.Since(begun) > time.Minute {
			t.Fatalf("scrolled to the end: got the last row %d, want %d", browser.Eval[int](p, last), followers+others-count-1)
		}
		browser.Eval[any](p, "void scrollTo(0, document.documentElement.scrollHeight)")
		p.Settle()
	}
	shown(t, p)
	if !browser.Eval[bool](p, "![...document.querySelectorAll('[data-index]')].some((row) => row.innerText.includes('Blocks'))") {
		t.Error("got an account that blocks among the followers")
	}
}
