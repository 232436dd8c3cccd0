package generator_test

import (
	"encoding/xml"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	json "github.com/goccy/go-json"
	"golang.org/x/net/html"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
)

const publicURL = "https://graph.example/at"

// paged returns options with pages.
func paged(o generator.Options) generator.Options {
	o.Config.Pages, o.Config.PublicURL, o.Config.PagesMin = true, publicURL, 3
	return o
}

// A shownPage is the content of a page.
type shownPage struct {
	tags              []string // elements with attribute names
	title, h1, bio    string
	counts            string
	follows, followed []string          // texts of the rows
	targets           map[string]string // links of the rows, by text
	meta              map[string]string // by name or property
	links             map[string]string // by rel and type
	linked            string            // JSON
	policy            string
	all               []string // targets of all links
}

func textIn(n *html.Node) (text string) {
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text += d.Data
		}
	}
	return text
}

func parsePage(t testing.TB, body string) (p shownPage) {
	t.Helper()
	document, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	p.targets, p.meta, p.links = map[string]string{}, map[string]string{}, map[string]string{}
	section := ""
	for n := range document.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		attr, names := map[string]string{}, n.Data
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
			names += " " + a.Key
		}
		p.tags = append(p.tags, names)
		switch {
		case n.Data == "title":
			p.title = textIn(n)
		case n.Data == "h1":
			p.h1 = textIn(n)
		case n.Data == "h2":
			section = textIn(n)
		case attr["class"] == "bio":
			p.bio = textIn(n)
		case attr["class"] == "counts":
			p.counts = textIn(n)
		case n.Data == "meta" && attr["http-equiv"] != "":
			p.policy = attr["content"]
		case n.Data == "meta":
			p.meta[attr["name"]], p.meta[attr["property"]] = attr["content"], attr["content"]
		case n.Data == "link":
			p.links[attr["rel"]+" "+attr["type"]] = attr["href"]
		case n.Data == "script":
			p.linked = textIn(n)
		case n.Data == "li":
			shown := strings.TrimSpace(textIn(n))
			if section == "Follows" {
				p.follows = append(p.follows, shown)
			} else {
				p.followed = append(p.followed, shown)
			}
			if n.FirstChild.Data == "a" {
				p.targets[shown] = n.FirstChild.Attr[0].Val
			}
		case n.Data == "a":
			p.all = append(p.all, attr["href"])
		}
	}
	return p
}

func pagesOf(o objects) (keys []site.Key) {
	config := site.AllFeatures()
	for key := range o {
		if route, ok := config.RouteOf(key); ok && route.ID == routes.Page {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// answer decodes the naive twin's answer.
func answer[T any](t testing.TB, g *naive.Graph, path string) (value T) {
	t.Helper()
	status, _, body := g.Answer(http.MethodGet, path, "", nil)
	if err := json.Unmarshal(body, &value); err != nil || status != http.StatusOK {
		t.Fatalf("%s: got %d, %s, %v", path, status, body, err)
	}
	return value
}

// english writes numbers as pages do.
var english = message.NewPrinter(language.English)

// TestPagesEqualTheTwin: the accounts with pages and badges, and their contents, follow from the
// answers of the naive twin.
func TestPagesEqualTheTwin(t *testing.T) {
	t.Parallel()
	snapshots := map[string]fs.FS{"demo": fixtures.Demo()}
	for seed := range uint64(servers.Rounds(5, 12)) {
		snapshots[fmt.Sprint("random ", seed)] = naive.Random(seed)
	}
	rows, nameless, odd := 0, 0, 0
	for of, fsys := range snapshots {
		g, err := naive.Load(fsys, naive.Config{})
		if err != nil {
			t.Fatal(err)
		}
		got := inMemory(t, readSnapshot(t, fsys), exploring(paged(smallEFP)))
		want := map[site.Key]bool{}
		everybody := g.Named()
		ownPage := func(address string) (own string, has bool) {
			followers := answer[struct{ Followers_count int }](t, g, "/api/v1/users/"+address+"/stats").Followers_count
			parsed, err := site.ParseAddress(address)
			if err != nil {
				t.Fatal(err)
			}
			return page.Name(everybody[address], parsed), everybody[address] != "" || followers >= 3
		}
		shown := func(address string) string {
			if name := everybody[address]; name != "" {
				return plain.Text(name)
			}
			return common.HexToAddress(address).Hex()
		}
		for address, name := range everybody {
			own, has := ownPage(address)
			if !has {
				continue
			}
			key := page.Key(own)
			want[key], want[page.BadgeKey(own)], want[page.DarkBadgeKey(own)], want[page.CardKey(own)] = true, true, true, true
			p := parsePage(t, got[key])
			stats := answer[struct{ Followers_count, Following_count int }](t, g, "/api/v1/users/"+address+"/stats")
			follows := answer[struct{ Following []struct{ Address string } }](t, g, "/api/v1/users/"+address+"/following").Following
			followed := answer[struct{ Followers []struct{ Address string } }](t, g, "/api/v1/users/"+address+"/followers").Followers
			var wantFollows, wantFollowed []string
			for _, f := range follows {
				wantFollows = append(wantFollows, shown(f.Address))
			}
			for _, f := range followed {
				wantFollowed = append(wantFollowed, shown(f.Address))
			}
			more := [2]bool{stats.Following_count > len(follows), stats.Followers_count > len(followed)}
			for i, to := range []string{"following", "followers"} {
				n := []int{stats.Following_count, stats.Followers_count}[i]
				says := english.Sprintf("The latest 10 of %d. ", n) + `<a href="/at/_explore/index.html#/a/` + address + "/" + to + `">All of them</a>`
				if strings.Contains(got[key], says) != more[i] || strings.Contains(got[key], "/"+to+`">All`) != more[i] {
					t.Fatalf("%s: %s: a link to all %d of %s: got %t, want %t", of, key, n, to, !more[i], more[i])
				}
			}
			word := map[bool]string{true: "follower", false: "followers"}[stats.Followers_count == 1]
			if counts := english.Sprintf("%d %s %d following", stats.Followers_count, word, stats.Following_count); p.counts != counts ||
				!slices.Equal(p.follows, wantFollows) || !slices.Equal(p.followed, wantFollowed) || p.h1 != shown(address) {
				t.Fatalf("%s: %s: got %q, %q, %q, %q\nwant %q, %q, %q, %q", of, key, p.h1, p.counts, p.follows, p.followed, shown(address), counts, wantFollows, wantFollowed)
			}
			for _, f := range append(slices.Clone(follows), followed...) {
				target := "/at/_explore/index.html#/a/" + f.Address
				if own, has := ownPage(f.Address); has {
					target = "/at/u/" + own + "/index.html"
				}
				if p.targets[shown(f.Address)] != target {
					t.Fatalf("%s: %s: %s leads to %q, want %q", of, key, shown(f.Address), p.targets[shown(f.Address)], target)
				}
				rows++
			}
			if name == "" {
				nameless++
			} else if own != name {
				odd++
			}
			for _, badge := range []site.Key{page.BadgeKey(own), page.DarkBadgeKey(own)} {
				var svg struct {
					Title string   `xml:"title"`
					Texts []string `xml:"g>text"`
				}
				if err := xml.Unmarshal([]byte(got[badge]), &svg); err != nil || !slices.Equal(svg.Texts, []string{word, english.Sprintf("%d", stats.Followers_count)}) ||
					svg.Title != english.Sprintf("%s: %d %s", shown(address), stats.Followers_count, word) {
					t.Fatalf("%s: %s: got %+v, %v of %s", of, badge, svg, err, got[badge])
				}
			}
		}
		config, err := paged(smallEFP).Config.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		for key := range got {
			if route, ok := config.RouteOf(key); ok && slices.Contains([]routes.ID{routes.Page, routes.Badge, routes.DarkBadge, routes.Card}, route.ID) && !want[key] {
				t.Errorf("%s: got %s, want none", of, key)
			}
		}
		checkSitemaps(t, got)
		var leaders struct{ Accounts [][]any }
		if err := json.Unmarshal(g.Start(), &leaders); err != nil {
			t.Fatal(err)
		}
		var wantTop []string
		for _, leader := range leaders.Accounts[:min(20, len(leaders.Accounts))] {
			wantTop = append(wantTop, shown(leader[0].(string)))
		}
		if top := parsePage(t, got[page.TopKey]); !slices.Equal(top.followed, wantTop) || len(top.targets) != len(wantTop) || top.h1 != "Most followed" {
			t.Errorf("%s: %s: got %q, which lead to %q, want %q", of, page.TopKey, top.followed, top.targets, wantTop)
		}
	}
	if rows < 200 || nameless < 5 || odd < 5 {
		t.Errorf("compared %d rows, %d pages without a name, %d with one that is in no address; want many", rows, nameless, odd)
	}
}

// checkSitemaps checks that the sitemaps name each page once, and that the index and robots.txt lead to them.
func checkSitemaps(t testing.TB, got objects) {
	t.Helper()
	var index struct {
		Locs []string `xml:"sitemap>loc"`
	}
	if err := xml.Unmarshal([]byte(got[page.SitemapKey]), &index); err != nil {
		t.Fatal(err)
	}
	var urls []string
	for _, loc := range index.Locs {
		body, ok := got[site.Key(strings.TrimPrefix(loc, publicURL+"/"))]
		var part struct {
			Locs []string `xml:"url>loc"`
		}
		if err := xml.Unmarshal([]byte(body), &part); err != nil || !ok || len(part.Locs) == 0 {
			t.Fatalf("%s: got %q, %v", loc, body, err)
		}
		urls = append(urls, part.Locs...)
	}
	var want []string
	for _, key := range pagesOf(got) {
		want = append(want, publicURL+"/"+string(key))
	}
	slices.Sort(urls)
	slices.Sort(want)
	if !slices.Equal(urls, want) {
		t.Errorf("sitemaps: got %q, want %q", urls, want)
	}
	if robots := got[page.RobotsKey]; !strings.Contains(robots, "Sitemap: "+publicURL+"/sitemap.xml\n") || !strings.Contains(robots, "Disallow: /at/api/v1/\n") {
		t.Errorf("robots: got %q", robots)
	}
}

// hostileTexts would have an effect if not escaped.
var hostileTexts = []string{
	`</title></script><script>alert(1)</script>`, `"><img/src=x onerror=alert(1)>`, `'"` + "`" + `onmouseover=alert(1) x="`, `<!--<script>`, `]]></svg>`, `{{.Name}}`,
	`javascript:alert(1)`, "data:text/html,<script>alert(1)</script>", "https://x.example/\"onload=alert(1)", "https://x.example/'><script>", "\u202egnp.exe",
	"https://u:p@x.example/", "//x.example", "https://x.example/\u202e", "https://x.example/a b;c,d",
}

// hostileNames are valid lookup names.
var hostileNames = []string{`"><b>x`, `'onload='x'`, `<script>`, `&lt;b&gt;&amp;`, "a\u202eb", `{{.}}`, `]]>`, "`x`", `</title`, "u_x", "_sitemap-0.xml", "..x", ".", "-x", strings.Repeat("x", 101)}

// TestHostilePages: whatever the texts of an account, its page, the rows that name it and its
// badges have the same elements and attributes as for any other account, and show the texts.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	hex := func(n int) string { return fmt.Sprintf("0x%040x", n) }
	make := func(name, text string) snapshot {
		records := map[string]any{"description": text, "url": text}
		row, err := json.Marshal(map[string]any{"address": hex(1), "primary_list": "1", "ens": map[string]any{"name": name, "avatar": text, "header": text, "display": text, "records": records}})
		if err != nil {
			t.Fatal(err)
		}
		s := emptySnapshot().adding("accounts", string(row), account(hex(2), "bob.eth", "", "2"))
		s = s.adding("lists", list("1", hex(1)), list("2", hex(2)))
		return s.adding("records", recordRow("1", hex(2), ""), recordRow("2", hex(1), ""))
	}
	structure := func(p shownPage) (tags []string) {
		for _, tag := range p.tags {
			if !strings.HasPrefix(tag, "a href rel") && !strings.HasPrefix(tag, "p") && !strings.HasPrefix(tag, "bdi") && tag != "meta property content" && !strings.HasPrefix(tag, "code") {
				tags = append(tags, tag)
			}
		}
		return tags
	}
	usual := structure(parsePage(t, inMemory(t, make("alice.eth", "fine"), exploring(paged(smallEFP)))[page.Key("alice.eth")]))
	for i := range max(len(hostileTexts), len(hostileNames)) {
		name, text := hostileNames[i%len(hostileNames)], hostileTexts[i%len(hostileTexts)]
		got := inMemory(t, make(name, text), exploring(paged(smallEFP)))
		address, err := site.ParseAddress(hex(1))
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.ReplaceAll(name, "\u202e", "\ufffd")
		own, hasName := page.Name(name, address), site.LookupName(name)
		if !hasName {
			continue
		}
		p := parsePage(t, got[page.Key(own)])
		bio := strings.ReplaceAll(text, "\u202e", "\ufffd")
		if p.h1 != shown || p.title != shown+" · graph.example" || p.bio != bio || p.meta["og:title"] != shown || !strings.HasSuffix(p.meta["description"], " "+bio) {
			t.Errorf("%q, %q: got %+v", name, text, p)
		}
		if tags := structure(p); !slices.Equal(tags, usual) {
			t.Errorf("%q, %q: got the elements %q, want %q", name, text, tags, usual)
		}
		var linked struct {
			Main struct{ Name, Description, Image string } `json:"mainEntity"`
		}
		if err := json.Unmarshal([]byte(p.linked), &linked); err != nil || linked.Main.Name != shown || linked.Main.Description != bio {
			t.Errorf("%q, %q: got %s, %v", name, text, p.linked, err)
		}
		for _, target := range append(p.all, p.meta["og:image"], linked.Main.Image) {
			u, err := url.Parse(target)
			if err != nil || u.Scheme != "" && u.Scheme != "https" || u.User != nil || strings.ContainsAny(target, "\"'<>\u202e ") || u.Host == "" && target != "" && !strings.HasPrefix(target, "/at/") {
				t.Errorf("%q, %q: got a link to %q", name, text, target)
			}
		}
		if want := "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"; p.policy != want {
			t.Errorf("policy: got %q, want %q", p.policy, want)
		}
		other := parsePage(t, got[page.Key("bob.eth")])
		if !slices.Equal(other.follows, []string{shown}) || !slices.Equal(other.followed, []string{shown}) || other.targets[shown] != "/at/u/"+own+"/index.html" {
			t.Errorf("%q: got the rows %q, %q, %v", name, other.follows, other.followed, other.targets)
		}
		var svg struct {
			Title string     `xml:"title"`
			Any   []struct{} `xml:",any"`
		}
		if err := xml.Unmarshal([]byte(got[page.BadgeKey(own)]), &svg); err != nil || svg.Title != shown+": 1 follower" || len(svg.Any) != 3 {
			t.Errorf("%q: badge: got %s, %v", name, got[page.BadgeKey(own)], err)
		}
	}
}

// TestPagesChangeWhenTheyShowIt: a follow elsewhere, another time and other ranks change no page,
// and a new name changes only the pages that show it.
func TestPagesChangeWhenTheyShowIt(t *testing.T) {
	t.Parallel()
	hex := func(n int) string { return fmt.Sprintf("0x%040x", n) }
	s := emptySnapshot()
	for n := 1; n <= 5; n++ {
		s = s.adding("accounts", account(hex(n), fmt.Sprintf("n%d.eth", n), "", fmt.Sprint(n)))
		s = s.adding("lists", list(fmt.Sprint(n), hex(n)))
	}
	s = s.adding("records", recordRow("1", hex(2), ""), recordRow("3", hex(2), ""))
	changed := func(a, b snapshot) (names []string) {
		before, after := inMemory(t, a, paged(smallEFP)), inMemory(t, b, paged(smallEFP))
		for _, key := range pagesOf(after) {
			if before[key] != after[key] {
				names = append(names, page.Of(key))
			}
		}
		return names
	}
	later := maps.Clone(s)
	later["meta.json"] = strings.Replace(s["meta.json"], "2026", "2027", 1)
	if later["meta.json"] == s["meta.json"] {
		t.Fatal("the time of the snapshot is the same")
	}
	if got := changed(s, later.adding("records", recordRow("5", hex(4), ""))); !slices.Equal(got, []string{"n4.eth", "n5.eth"}) {
		t.Errorf("after a follow: got other pages of %q, want those of the two", got)
	}
	renamed := maps.Clone(s)
	renamed["accounts.ndjson"] = strings.Replace(s["accounts.ndjson"], "n2.eth", "other.eth", 1)
	if got := changed(s, renamed); !slices.Equal(got, []string{"n1.eth", "n3.eth", "other.eth"}) {
		t.Errorf("after a change of a name: got other pages of %q, want its own and those of its followers", got)
	}
}

// TestBrandedPages: pages have the title, logo, color and home of the site, and name the program
// once, in the footer.
func TestBrandedPages(t *testing.T) {
	t.Parallel()
	o := exploring(paged(smallEFP))
	o.Config.Title, o.Config.Logo, o.Config.Colour, o.Config.Home = `Who & "whom" <b>`, "https://cdn.example/logo.svg", "#A0F", "https://home.example/?a=1"
	o.Config.Pictures = "off"
	s := emptySnapshot().adding("accounts", account("0x"+strings.Repeat("1", 40), "a.eth", "https://x.example/a.png", ""))
	got := inMemory(t, s, o)
	body := got[page.Key("a.eth")]
	p := parsePage(t, body)
	if p.title != `a.eth · Who & "whom" <b>` || p.meta["og:site_name"] != `Who & "whom" <b>` || p.all[0] != "https://home.example/?a=1" ||
		!strings.Contains(p.policy, "img-src data: https://cdn.example;") || !strings.Contains(body, `src="https://cdn.example/logo.svg"`) || p.meta["og:image"] != publicURL+"/_card/a.eth.png" {
		t.Errorf("got %+v\n%s", p, body)
	}
	if n := strings.Count(strings.ReplaceAll(body, "github.com/followpress/followpress", ""), "followpress"); n != 1 {
		t.Errorf("the program's name is there %d times, want once: %s", n, body)
	}
	if style, badge := got[page.StyleKey], got[page.BadgeKey("a.eth")]; !strings.Contains(style, "#aa00ff") || !strings.Contains(badge, `fill="#aa00ff"`) {
		t.Errorf("got %s\n%s, want the colour", style, badge)
	}
	if strings.Contains(body, `class="face"`) || strings.Contains(body, "x.example") {
		t.Errorf("a picture where there are none: got %s", body)
	}
	for pictures, want := range map[string][2]string{
		"":                            {`<a href="https://x.example/a.png" rel="nofollow ugc noopener noreferrer">Show the avatar`, "img-src data: https://cdn.example;"},
		"x.example":                   {`<img class="face" src="https://x.example/a.png"`, "img-src data: https://cdn.example https://x.example;"},
		"https://p.example/{url}?s=1": {`<img class="face" src="https://p.example/https%3A%2F%2Fx.example%2Fa.png?s=1"`, "img-src data: https://cdn.example https://p.example;"},
	} {
		o.Config.Pictures = pictures
		body := inMemory(t, s, o)[page.Key("a.eth")]
		if !strings.Contains(body, want[0]) || !strings.Contains(body, want[1]) || strings.Contains(body, `class="face"`) != (pictures != "") {
			t.Errorf("pictures %q: got %s, want %s and the policy %s", pictures, body, want[0], want[1])
		}
	}
	if embed := got[page.EmbedKey]; len(embed) > 4<<10 || !strings.Contains(embed, `"title":"Who \u0026 \"whom\" \u003cb\u003e"`) {
		t.Errorf("%s: got %d bytes: %s", page.EmbedKey, len(embed), embed)
	}
}
