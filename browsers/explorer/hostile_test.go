package explorer_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
)

// Each of these would set the variable pwned if it were treated as anything but text.
const (
	markup = `<img src=x onerror="pwned=1"><script>pwned=2</script><svg onload=pwned=3><a href="javascript:pwned=4">x</a>'"` + "`" + `{{constructor.constructor('pwned=5')()}}</title></style></textarea>`
	script = "javascript:pwned=6"
	page   = "data:text/html,<script>opener.pwned=7;parent.pwned=7</script>"
	svg    = `<svg xmlns="http://www.w3.org/2000/svg" onload="pwned=8;parent.pwned=8;fetch('https://leak.example/svg')" viewBox="0 0 8 8"><script>pwned=9</script>` +
		`<image href="https://leak.example/image"/><style>@import "https://leak.example/style";</style><rect width="8" height="8" fill="red"/>`
	rightToLeft = "مرحبا\u202etxt.exe\u202c עולם"
	invisible   = "in\u200bvi\u00adsi\u2060ble\u3164\u2800.eth"
	avatars     = "avatars.example" // the only host that pages may request
)

// hostile returns a snapshot whose profiles attack the page that shows them.
func hostile(t *testing.T) fstest.MapFS {
	t.Helper()
	large := svg + "<!--" + strings.Repeat("-x", 600_000) + "--></svg>"
	inline := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(large))
	type object = map[string]any
	profiles := []object{
		{"name": "victim.eth", "avatar": "https://" + avatars + "/victim.png", "records": object{"description": markup, "name": markup, "url": script}},
		{"name": markup, "avatar": "https://" + avatars + "/markup.png\"onerror=\"pwned=10", "records": object{"description": markup, "location": markup, "keywords": markup, "url": "data:text/html," + markup}},
		{"name": rightToLeft, "display": rightToLeft, "avatar": inline, "header": inline, "records": object{"name": rightToLeft, "description": strings.Repeat(rightToLeft+" ", 50)}},
		{"name": "script.eth", "avatar": script, "header": script, "records": object{"url": " \t" + strings.ToUpper(script), "com.twitter": script, "com.github": "../../" + script, "org.telegram": markup, "com.discord": markup, "email": "x@y.example?bcc=z@leak.example\"><script>pwned=11</script>"}},
		{"name": "page.eth", "avatar": page, "header": page, "records": object{"url": page, "com.twitter": "https://leak.example/", "com.github": "@leak.example"}},
		{"name": "plain.eth", "avatar": "http://leak.example/avatar.png", "header": "http://leak.example/header.png", "records": object{"url": "http://plain.example/"}},
		{"name": "ipfs.eth", "avatar": "ipfs://QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKi3zZ", "header": "eip155:1/erc721:0x0000000000000000000000000000000000000001/1", "records": object{"url": "ipfs://QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKi3zZ"}},
		{"name": "broken.eth", "avatar": "https://[::1", "header": "https://%zz\\\x01", "records": object{"url": "https://[", "com.github": "%"}},
		{"name": "huge.eth", "avatar": "https://" + avatars + "/" + strings.Repeat("a", 4000), "records": object{"url": "https://huge.example/" + strings.Repeat("a", 20_000), "description": strings.Repeat("W", 20_000), "name": strings.Repeat("W", 5000)}},
		{"name": "credentials.eth", "avatar": "//leak.example/a.png", "header": "/leak.png", "records": object{"url": "https://trusted.example@leak.example/"}},
		{"name": strings.Repeat("̷͆", 200) + "zalgo.eth", "avatar": "blob:https://leak.example/x", "header": "filesystem:https://leak.example/x", "records": object{"description": strings.Repeat("<div>", 3000)}},
		{"name": invisible, "avatar": "", "records": object{"url": "https://x.com\n.evil.example/login", "com.github": "https://accounts.google.com@evil.example", "location": invisible, "keywords": "https://аррӏе.com", "com.twitter": "https://аррӏе.com", invisible: invisible}},
		{"name": "blank.eth", "avatar": "https://" + avatars + "/large.png", "records": object{"description": "a" + strings.Repeat("\n", 200) + "b", "location": strings.Repeat("\n \n", 200) + "c", "url": strings.Repeat("z"+strings.Repeat("\u0337\u0346\u035b", 100), 20)}},
		{"name": piled, "avatar": inline, "records": object{"name": piled, "description": strings.Repeat(piled+" ", 30)}},
		{"name": hostileAddress(0), "avatar": inline, "records": object{"name": hostileAddress(0)}},
		{"name": "0x0000…0000", "records": object{"name": "0x0000…0000 ✔"}},
		{"name": "✔ victim.eth ☑️", "records": object{"name": "victim.eth ✅"}},
		{"name": bought, "avatar": "https://" + avatars + "/victim.png", "records": object{"name": "victim.eth"}},
		{"name": "__proto__", "avatar": "data:image/svg+xml," + url.PathEscape(svg+"</svg>"), "records": object{"__proto__": markup, "constructor": markup, "toString": markup}},
	}
	var accounts, lists, records strings.Builder
	row := func(table *strings.Builder, value object) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		table.Write(append(text, '\n'))
	}
	for i, profile := range profiles {
		row(&accounts, object{"address": hostileAddress(i), "primary_list": fmt.Sprint(i + 1), "ens": profile})
		row(&lists, object{"token_id": fmt.Sprint(i + 1), "owner": hostileAddress(i)})
		for j := range profiles {
			if i != j && (j > 0 || i%3 > 0) { // victim.eth has fewer followers than its look-alike
				row(&records, object{"token_id": fmt.Sprint(i + 1), "version": 1, "record_type": "address", "data": hostileAddress(j), "tags": hostileTags[:1+(i+j)%len(hostileTags)], "added": "2026-01-02T03:04:05.678Z"})
			}
		}
	}
	event := object{
		"id": 1, "fancy_id": "x", "name": markup, "event_url": script, "image_url": script, "country": markup, "city": rightToLeft, "description": markup,
		"year": 2026, "start_date": "24-Sep-2026", "end_date": "27-Sep-2026", "expiry_date": "27-Oct-2026",
	}
	var events, badges strings.Builder
	row(&events, event)
	row(&badges, object{"event_id": "1", "token_id": "1", "owner": hostileAddress(0)})
	return fstest.MapFS{
		"meta.json":       {Data: []byte(`{"format":1,"as_of":"2026-11-01T00:00:00Z"}`)},
		"accounts.ndjson": {Data: []byte(accounts.String())}, "lists.ndjson": {Data: []byte(lists.String())}, "records.ndjson": {Data: []byte(records.String())},
		"events.ndjson": {Data: []byte(events.String())}, "badges.ndjson": {Data: []byte(badges.String())},
	}
}

// Marks piled on letters, and a name that looks like victim.eth but has fewer followers.
var (
	piled  = "z\u0337" + strings.Repeat("\u035b\u0346", 300) + "algo\u0337" + strings.Repeat("\u0489", 50)
	bought = "vi\u0441tim.eth"
)

var hostileTags = []string{markup, rightToLeft, invisible, strings.Repeat("t", 200), "constructor", "top8", "verified ✔", "t" + strings.Repeat("\u0337\u0346", 60), strings.Repeat("\n", 100) + "x"}

const hostiles = 19

func hostileAddress(i int) string { return fmt.Sprintf("0x%040x", 0xabcdef0000+i) }

// tripwires detect a text that takes effect.
const tripwires = `
	globalThis.tripped = [];
	for (const name of ['alert', 'open', 'eval', 'print']) globalThis[name] = () => tripped.push(name);
	Object.defineProperty(globalThis, 'pwned', { set: (value) => tripped.push('pwned = ' + value), get: () => undefined });
	document.addEventListener('securitypolicyviolation', (event) => tripped.push(event.violatedDirective + ' ' + event.blockedURI));
`

// Profiles contribute only text and pictures: no script runs, no link leads to a script, and the
// page requests only the hosts of avatars, or none without pictures.
func TestHostileProfiles(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	b.Give("https://"+avatars+"/large.png", append(square(t), make([]byte, 1_500_000)...))
	for _, config := range []site.Config{{API: site.APIEFP, HistoryWindow: site.Window(site.DefaultHistoryWindow)}, {}} {
		h := serve(t, generate(t, withOps(t, hostile(t), hostileDeeds()), config), "/")
		places := hostilePlaces()
		for _, pictures := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s pictures %v", config.API, pictures), func(t *testing.T) {
				b.Forget()
				before := tripwires + fmt.Sprintf(`localStorage.setItem('followpress', '{"pictures":%t,"others":true}');`, pictures)
				p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: before})
				for _, place := range places {
					p.Go(h.at(place))
					there(t, p)
					fits(t, p)
					for _, fault := range browser.Eval[[]string](p, inspect) {
						t.Errorf("%.100s: %s", place, fault)
					}
				}
				barriers(t, p)
				allowed := []string{avatars}
				if !pictures {
					allowed = nil
				}
				p.Settle()
				for _, request := range append(p.Requests(), b.Requests()...) {
					if u, err := url.Parse(request); err == nil && u.Host != "" && !strings.HasPrefix(request, h.URL) && !slices.Contains(allowed, u.Host) {
						t.Errorf("got a request for %.200s, want requests to %v only", request, allowed)
					}
				}
				if asked := b.Requests(); pictures && !slices.Contains(asked, "https://"+avatars+"/victim.png") {
					t.Errorf("requested %.300q, want the avatar of victim.eth, too", asked)
				}
			})
		}
	}
}

// No text makes a page wider or a row higher than usual. The question about pictures fits on one
// line.
func TestHostileTextsTakeNoRoom(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, withHistory(t, hostile(t), hostileDeeds()), "/")
	const high = `Object.entries({'.rows > .row': 68, '.act': 130, '.ranking li': 72, '.who h1': 160, '.long.cut': 176, '.mark': 24, '.chip': 40, '.question': innerHeight * 0.08, '.tabs': 56})
		.flatMap(([what, most]) => [...document.querySelectorAll(what)].filter((e) => e.getBoundingClientRect().height > most + 1).map((e) => what + ' of ' + e.getBoundingClientRect().height + ': ' + e.innerText.slice(0, 80)))`
	const asked = "document.querySelector('.question')?.checkVisibility()"
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now, Before: being(h.URL, hostileAddress(0))})
	for i := range hostiles {
		places := []string{"#/" + hostileAddress(i)}
		if i%6 == 0 {
			places = append(places, "#/", "#/boards/followers", "#/search?q=t", "#/a/"+hostileAddress(i)+"/followers", "#/a/"+hostileAddress(i)+"/following", "#/a/"+hostileAddress(i)+"/activity")
		}
		for _, place := range places {
			p.Go(h.at(place))
			for _, size := range []browser.Size{{Width: 320, Height: 640}, browser.Phone, browser.Tablet, browser.Desktop} {
				p.Resize(size)
				there(t, p)
				fits(t, p)
				for _, fault := range browser.Eval[[]string](p, high) {
					t.Errorf("%s at %v: %s", place, size, fault)
				}
			}
		}
	}
	p.Resize(browser.Size{Width: browser.Phone.Width / 2, Height: browser.Phone.Height / 2}) // as with a zoom of 200 %
	if faults := browser.Eval[[]string](p, high); !browser.Eval[bool](p, asked) || len(faults) > 0 {
		t.Errorf("at half the size: asked %t, and %q, want a line of at most 8 %%", browser.Eval[bool](p, asked), faults)
	}
}

// Warnings mark names that look like addresses or like other names, and check marks in names and
// tags. Rows too say that a check mark is part of a name.
func TestNotices(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, generate(t, hostile(t), site.Config{API: site.APIEFP}), "/")
	p := b.Open(t, h.at("#/"), browser.View{Size: browser.Phone, Now: now})
	for i, wants := range map[int][]string{14: {"written like an address"}, 15: {"written like an address", "check mark into a name"}, 16: {"check mark into a name"}, 17: {"Looks like victim.eth"}} {
		p.Go(h.at("#/" + hostileAddress(i)))
		shown(t, p)
		for _, want := range wants {
			p.WaitForText(want)
		}
	}
	p.WaitForText("check mark into a tag")
	p.Go(h.at("#/" + hostileAddress(0)))
	shown(t, p)
	if notices := p.Text(".likeness"); notices != "" {
		t.Errorf("victim.eth: got %q, want no notice about lookalikes", notices)
	}
	// Only notices within the line below the name are visible.
	const named = `Object.fromEntries([...document.querySelectorAll('.names')].map((e) => {
		const told = e.querySelector('.ticked')?.getBoundingClientRect(), line = e.querySelector('.under').getBoundingClientRect();
		return [e.querySelector('bdi').innerText, !!told && told.width > 60 && told.bottom <= line.bottom + 1];
	}))`
	for _, size := range []browser.Size{browser.Narrow, browser.Phone, browser.Desktop} {
		me := b.Open(t, h.at("#/"), browser.View{Size: size, Now: now, Before: being(h.URL, hostileAddress(18))})
		for _, place := range []string{"#/boards/followers", "#/search?q=victim", "#/a/" + hostileAddress(1) + "/followers", "#/a/" + hostileAddress(1) + "/following"} {
			me.Go(h.at(place))
			shown(t, me)
			if place == "#/boards/followers" {
				me.Click(".bar input[role=combobox]")
				me.Press("victim")
				me.Wait("document.querySelectorAll('#found [role=option]').length > 2")
			}
			rows, ticked := browser.Eval[map[string]bool](me, named), 0
			for name, told := range rows {
				has := strings.ContainsAny(name, "✔✅☑")
				if told != has {
					t.Errorf("%s at %s: %q: told of a check mark: %t", place, size, name, told)
				}
				if has {
					ticked++
				}
			}
			if ticked == 0 {
				t.Errorf("%s at %s: got the rows %q, want one with a check mark", place, size, slices.Collect(maps.Keys(rows)))
			}
			fits(t, me)
		}
		me.Close()
	}
}

// hostileDeeds returns operations of all accounts about all accounts, with all tags.
func hostileDeeds() (deeds []deed) {
	for i := range hostiles {
		for j := range hostiles {
			if i != j {
				ago := time.Duration(2*hostiles*(hostiles-i)+2*(hostiles-j)) * time.Minute
				deeds = append(deeds, deed{ago, fmt.Sprint(i + 1), hostileAddress(j), op.Follow, ""},
					deed{ago - time.Minute, fmt.Sprint(i + 1), hostileAddress(j), op.Tag, hostileTags[(i+j)%len(hostileTags)]})
			}
		}
	}
	return deeds
}

func hostilePlaces() []string {
	places := []string{"#/", "#/?q=" + url.QueryEscape(markup), "#/?q=%E2%80%AE", "#/search?q=" + url.QueryEscape(rightToLeft), "#/search?q=" + url.QueryEscape(invisible), "#/search?q=in", "#/boards/" + url.PathEscape(invisible), "#/l/" + url.PathEscape(invisible), "#/boards/followers", "#/network", "#/" + url.PathEscape(markup), "#/__proto__", "#/%00", "#/constructor/constructor", "#/%E0%A4%A"}
	for i := range hostiles {
		address := hostileAddress(i)
		places = append(places, "#/"+address, "#/l/"+fmt.Sprint(i+1))
		if i%4 == 0 {
			day := url.QueryEscape(markup)
			places = append(places, "#/a/"+address+"/activity", "#/a/"+address+"/activity?of=others", "#/a/"+address+"/activity?of="+day+"&only="+day,
				"#/a/"+address+"/then?day=2026-10-30", "#/a/"+address+"/then?of=followers&show=came&day=2026-10-30", "#/a/"+address+"/then?show="+day+"&day="+day, "#/a/"+address+"/then?day=9999-12-31")
			places = append(places, "#/a/"+address+"/following", "#/a/"+address+"/followers?q="+url.QueryEscape(markup), "#/a/"+address+"/graph", "#/a/"+address+"/common/"+hostileAddress((i+1)%hostiles))
		}
	}
	return places
}

// inspect lists content that must not be in the document.
const inspect = `[
	...tripped.splice(0),
	...[...document.querySelectorAll('a[href]')].filter((a) => !['http:', 'https:', 'mailto:'].includes(a.protocol)).map((a) => 'link to ' + a.href.slice(0, 100)),
	...[...document.querySelectorAll('a[href]')].filter((a) => a.origin !== location.origin && a.protocol !== 'mailto:' && !(a.rel.includes('noopener') && a.rel.includes('nofollow') || a.host === 'github.com'))
		.map((a) => 'link without noopener and nofollow ' + a.href.slice(0, 100)),
	...[...document.querySelectorAll('script:not([src]), iframe, object, embed, base, form[action], [onerror], [onload], main script, main style')].map((e) => 'element ' + e.outerHTML.slice(0, 100)),
	...[...document.images].filter((i) => !i.src.startsWith('blob:')).map((i) => 'picture ' + i.src.slice(0, 100)),
	...[...document.querySelectorAll('main a[target]')].filter((a) => a.protocol !== 'mailto:' && !a.textContent.startsWith(a.host) && !/^@?[\w.-]+$/.test(a.textContent))
		.map((a) => 'link to ' + a.href.slice(0, 100) + ' as ' + a.textContent.slice(0, 100)),
	...[document.title, document.body.innerText, document.body.textContent, ...[...document.querySelectorAll('*')].flatMap((e) =>
		['title', 'aria-label', 'alt', 'placeholder', 'label', 'content', 'aria-description'].map((name) => e.getAttribute(name) ?? '')), ...[...document.querySelectorAll('option')].map((o) => o.value)]
		.flatMap((text) => text.match(/.{0,10}[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0].{0,10}/u) ?? []).map((text) => 'invisible characters in ' + escape(text)),
]`
