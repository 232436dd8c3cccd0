package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/report"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// TestGolden compares the reports of the demo and a changed copy, whose names are hostile.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, api := range []string{site.APISpec, site.APIEFP} {
		from, to := demo(t, api)
		compared := func(o report.Options) *report.Report {
			r := compare(t, withExplorer(t, from, 1), withExplorer(t, to, 2), o)
			// Those of the sites change with the client library and the description of the API in them.
			r.From.Counts.Bytes, r.To.Counts.Bytes, r.Read.Bytes = 2_000_000, 1_900_000, 600_000
			return r
		}
		r := compared(report.Options{})
		page, err := r.HTML()
		if err != nil {
			t.Fatal(err)
		}
		figures, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "demo-"+api+".html", page)
		golden(t, "demo-"+api+".json", figures)
		golden(t, "demo-"+api+".md", []byte(r.Markdown()))
		again, err := compared(report.Options{Concurrency: 1, Memory: 1}).HTML()
		if err != nil || string(again) != string(page) {
			t.Errorf("equal sites give different pages (%v)", err)
		}
		checkPage(t, page)

		parsed, err := report.Parse(figures)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parsed.HTML(); err != nil || string(again) != string(page) {
			t.Errorf("the report parsed from its JSON gives a different page (%v)", err)
		}
	}
	for _, broken := range []string{"", "{}", `{"format":2,"date":"2026-11-22"}`, `{"format":1,"date":"../x"}`} {
		if _, err := report.Parse([]byte(broken)); err == nil {
			t.Errorf("%q: got no error", broken)
		}
	}
}

// withExplorer returns a site with an explorer, one of whose objects depends on n.
func withExplorer(t testing.TB, s memsite.Site, n int) memsite.Site {
	t.Helper()
	return s.With(t, func(objects memsite.Site, root *site.Root) {
		root.Config.Explorer = true
		objects[site.NetworkKey] = fmt.Sprintf(`{"accounts":%d}`, n)
	})
}

// checkPage parses a page as a browser does. It has no scripts, loads nothing, has only our markup, and its pictures
// have titles.
func checkPage(t *testing.T, page []byte) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	ours := strings.Fields("html head meta title style body header main footer h1 h2 h3 p br div " +
		"table caption thead tbody tr th td code bdi strong span time figure figcaption svg line rect text details summary a nav")
	attributes := strings.Fields("lang charset http-equiv content name class scope datetime viewbox viewBox role aria-labelledby aria-label aria-hidden open href id x y x1 x2 y1 y2 width height text-anchor tabindex")
	ids := map[string]bool{}
	var labelled []string
	policy := false
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(ours, n.Data) {
			t.Errorf("element %s", n.Data)
		}
		for _, a := range n.Attr {
			if !slices.Contains(attributes, a.Key) {
				t.Errorf("attribute %s=%q of %s", a.Key, a.Val, n.Data)
			}
			switch a.Key {
			case "id":
				if ids[a.Val] {
					t.Errorf("duplicate id %s", a.Val)
				}
				ids[a.Val] = true
			case "aria-labelledby":
				labelled = append(labelled, a.Val)
			case "href": // links lead only to the explorer next to the reports
				if n.Data != "a" || !strings.HasPrefix(a.Val, "../_explore/index.html#/") || strings.ContainsAny(a.Val, " <>\"'") {
					t.Errorf("%s leads to %q", n.Data, a.Val)
				}
			case "http-equiv":
				policy = a.Val == "Content-Security-Policy"
			}
		}
	}
	for _, id := range labelled {
		if !ids[id] {
			t.Errorf("a picture is labelled by %s, which is not there", id)
		}
	}
	if !policy {
		t.Error("the page has no policy")
	}
	if m := regexp.MustCompile(`(?i)https?://[^<"]*["']|url\(|@import|ZgotmplZ`).Find(page); m != nil {
		t.Errorf("the page may load something: %s", m)
	}
}

var unseen = regexp.MustCompile(`.{0,20}[\x00\x07\x{ad}\x{61c}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}\x{3164}\x{feff}].{0,20}`)

// TestHostileTexts: names, tags and avatars stay text on the page and in Markdown.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for _, name := range []report.Text{
		hostileName, "</title><script>", "<!--", "]]>", "{{.}}", "\u202e\u2066x", "a\nb\n# c", "| a | b |", "**bold** _x_ `code`", "![x](https://evil.example/x.png)",
		"www.evil.example", "https://evil.example", "&lt;b&gt;", "\x00\x07", report.Text(strings.Repeat("<b>", 400)), "\u061c\u200f\ufeff", "vi\u200btalik\u00ad\u3164.eth", "@octocat #1 octo/cat#1",
	} {
		r := &report.Report{
			From: report.SiteSummary{Site: name, AsOf: "2026-11-01T00:00:00Z"}, To: report.SiteSummary{Site: name, AsOf: "2026-11-02T00:00:00Z"}, Date: "2026-11-22",
			Lists:    report.Lists{Largest: []report.ListChange{{List: "1", Address: "0x00", Name: name, Follows: 1}}},
			Accounts: report.Accounts{Gained: []report.AccountChange{{Name: name, Follows: 1}}},
			Boards:   []report.Board{{Board: "followers", Risen: []report.PlaceOnIt{{Name: name, From: 2, To: 1}}}},
			Tags:     report.Tags{Changed: 1, More: []report.TagChange{{Tag: name, Added: 1}}},
			Profiles: report.Profiles{Changed: 1, Examples: []report.ProfileChange{{NameFrom: name, NameTo: name + "!", AvatarTo: name}}},
		}
		page, err := r.HTML()
		if err != nil {
			t.Fatal(err)
		}
		checkPage(t, page)
		if m := unseen.Find(page); m != nil {
			t.Errorf("%q in the page: %q", name, m)
		}
		// Outside of what we wrote, Markdown has entities instead of markup.
		for line := range strings.Lines(r.Markdown()) {
			if strings.ContainsAny(line, "<>`[]*_@!{}\x00\x07\u202e\u2066\u061c\ufeff") || strings.Contains(line, "www.") || strings.Contains(line, "://") {
				t.Errorf("%q in Markdown: %q", name, line)
			}
			if n := strings.Count(line, "|"); n != 0 && n != 4 && n != 5 {
				t.Errorf("%q makes a row of %d cells: %q", name, n-1, line)
			}
		}
	}
}

// TestPublishedPageLeadsToTheExplorer: a published page links to every current account and list, and back. A
// standalone page has no links.
func TestPublishedPageLeadsToTheExplorer(t *testing.T) {
	t.Parallel()
	const who, list = "0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd", "#/l/4"
	r := &report.Report{
		Format: report.Format, Date: "2026-11-22",
		From: report.SiteSummary{AsOf: "2026-11-01T00:00:00Z"}, To: report.SiteSummary{AsOf: "2026-11-02T00:00:00Z"},
		Lists: report.Lists{Largest: []report.ListChange{
			{List: "4", Address: who, State: "changed"}, {List: "5", Address: who, State: "gone"}, {List: `"><b>/../6?`, Address: `javascript:"'<`, State: "new"},
		}},
		Accounts: report.Accounts{Gained: []report.AccountChange{{Address: who, Name: "<b>", Follows: 1}}},
		Boards:   []report.Board{{Board: site.Followers, Risen: []report.PlaceOnIt{{Address: who, From: 2, To: 1}}}},
		Profiles: report.Profiles{Changed: 1, Examples: []report.ProfileChange{{Address: who}}},
		Explorer: true,
	}
	bucket := storage.OpenLocal(t.TempDir())
	published := func() []byte {
		if err := report.Publish(t.Context(), bucket, r, 0); err != nil {
			t.Fatal(err)
		}
		page, _, err := bucket.Read(t.Context(), site.ReportKey(string(r.Date), "html"))
		if err != nil {
			t.Fatal(err)
		}
		checkPage(t, page)
		return page
	}
	page := string(published())
	for link, want := range map[string]int{"#/a/" + who: 5, list: 1, "#/l/5": 0, "#/boards/followers": 1, "#/reports": 1, "#/": 12} {
		if got := strings.Count(page, `href="../_explore/index.html`+link); got != want {
			t.Errorf("got %d links to %s, want %d", got, link, want)
		}
	}
	kept, err := r.HTML()
	if err != nil || strings.Contains(string(kept), "href") {
		t.Errorf("a standalone page: got %v, or links, want neither", err)
	}
	r.Explorer = false
	if page := published(); strings.Contains(string(page), "href") {
		t.Error("a report of a site without an explorer has links")
	}
}

// TestLongNamesFit: cut names have their full text as a tooltip, and nothing starts outside the picture.
func TestLongNamesFit(t *testing.T) {
	t.Parallel()
	for _, name := range []report.Text{"WWWWWWWWWWWWWWWWWWWWWWWWWW", "漢字漢字漢字漢字漢字漢字漢字漢字漢字", "🦩🦩🦩🦩🦩🦩🦩🦩🦩🦩🦩🦩🦩🦩🦩🦩", "an-ordinary-name-that-is-long-all-the-same.eth"} {
		r := &report.Report{Accounts: report.Accounts{Gained: []report.AccountChange{{Name: name, Follows: 1}}}}
		page, err := r.HTML()
		if err != nil {
			t.Fatal(err)
		}
		label := regexp.MustCompile(`<text class="name"[^>]*><title>([^<]*)</title>([^<]*)</text>`).FindSubmatch(page)
		if label == nil || string(label[1]) != string(name) || utf8.RuneCount(label[2]) > 28 || !strings.HasSuffix(string(label[2]), "…") {
			t.Errorf("%s: got the label %q, want the beginning, with the whole text as title", name, label)
		}
	}
}

// TestEqual: the report of two equal sites has equal set, and only the roots are read.
func TestEqual(t *testing.T) {
	t.Parallel()
	from, _ := demo(t, site.APISpec)
	var keys []site.Key
	side := report.Side{Name: "site", Site: counted{from, func(key site.Key) { keys = append(keys, key) }}}
	r, err := report.Compare(t.Context(), side, side, report.Options{Date: day})
	if err != nil {
		t.Fatal(err)
	}
	if want := []site.Key{site.RootKey, site.RootKey}; !slices.Equal(keys, want) {
		t.Errorf("got %v read, want %v", keys, want)
	}
	page, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"page": string(page), "Markdown": r.Markdown(), "text": r.String()} {
		if !r.Equal || !strings.Contains(text, "sites are equal") {
			t.Errorf("the %s does not say that the sites are equal: %s", what, text)
		}
	}
	checkPage(t, page)

	// Only the time differs.
	later := from.With(t, func(_ memsite.Site, root *site.Root) { root.AsOf = "2027-01-01T00:00:00Z" })
	if r := compare(t, from, later, report.Options{}); !r.Equal || r.To.AsOf != "2027-01-01T00:00:00Z" || r.Boards == nil || r.Objects == nil {
		t.Errorf("got %+v", r)
	}
}

// TestReadsOnlyWhatDiffers: a comparison reads only differing manifest shards, and only objects that show changes.
func TestReadsOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	from, _ := demo(t, site.APISpec)
	const list = site.Key("api/v1/lists/4/records")
	to := from.With(t, func(objects memsite.Site, _ *site.Root) {
		objects[list] = strings.Replace(objects[list], `"tags":[`, `"tags":["block",`, 1)
		objects["api/v1/lists/4/badges"] += " "
	})
	var mu sync.Mutex
	read := map[site.Key]int{}
	count := func(key site.Key) {
		mu.Lock()
		defer mu.Unlock()
		read[key]++
	}
	r, err := report.Compare(t.Context(), report.Side{Site: counted{from, count}, Name: "a"}, report.Side{Site: counted{to, count}, Name: "b"}, report.Options{Date: day})
	if err != nil {
		t.Fatal(err)
	}
	shards := 0
	for key, n := range read {
		if strings.HasPrefix(string(key), "_manifest/") {
			shards += n
		}
	}
	if shards == 0 || shards > 4 || read[list] != 2 || read["api/v1/lists/4/badges"] != 0 || r.Read.Shards != shards {
		t.Errorf("got %v read", read)
	}
	if r.Follows.Blocks != 1 || r.Follows.Unfollows != 1 || r.Lists.Changed != 1 {
		t.Errorf("got %+v", r.Follows)
	}
}

// TestOtherDigits compares sites whose manifests have shards of different sizes.
func TestOtherDigits(t *testing.T) {
	t.Parallel()
	from, to := demo(t, site.APISpec)
	finer := to.With(t, func(_ memsite.Site, root *site.Root) { root.ShardDigits = 2 })
	want, got := compare(t, from, to, report.Options{}), compare(t, from, finer, report.Options{})
	last := got.Objects[len(got.Objects)-1]
	if last.Kind != "_manifest/{hash}" || last.Added.Objects != 256 || last.Removed.Objects != 16 {
		t.Errorf("got %+v for the shards of the manifest", last)
	}
	a, err := json.Marshal([]any{want.Lists, want.Follows, want.Accounts, want.Boards, want.Tags, want.Profiles})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal([]any{got.Lists, got.Follows, got.Accounts, got.Boards, got.Tags, got.Profiles})
	if err != nil || string(a) != string(b) {
		t.Errorf("got %s, want %s (%v)", b, a, err)
	}
}

// TestNotComparable: sites with different settings give one error that names the setting.
func TestNotComparable(t *testing.T) {
	t.Parallel()
	from, _ := demo(t, site.APISpec)
	for want, change := range map[string]func(*site.Root){
		`base_path is api/v1 in old and api/v2 in new`:      func(r *site.Root) { r.Config.BasePath = "api/v2" },
		`leaderboard_max is 100 in old and 50 in new`:       func(r *site.Root) { r.Config.LeaderboardMax = 50 },
		`badges_field is badges in old and poaps in new`:    func(r *site.Root) { r.Config.BadgesField = "poaps" },
		`max_profile_text is 65536 in old and 4096 in new`:  func(r *site.Root) { r.Config.MaxProfileText = 4096 },
		`new: read _site: format 3, this version reads 2`:   func(r *site.Root) { r.Format = 3 },
		`new: read _site: as_of: parsing time "yesterday"`:  func(r *site.Root) { r.AsOf = "yesterday" },
		`new: read _site: 99 and 1 digits, expected 1 to 4`: func(r *site.Root) { r.BucketDigits = 99 },
	} {
		to := memsite.Site{}
		for key, body := range from {
			to[key] = body
		}
		root := from.Root(t)
		change(&root)
		body, err := root.Encode()
		if err != nil {
			t.Fatal(err)
		}
		to[site.RootKey] = string(body)
		if got := refused(t, from, to); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	efp, _ := demo(t, site.APIEFP)
	if got := refused(t, from, efp); !strings.Contains(got, "cannot be compared: api is spec in old and efp in new") {
		t.Errorf("got %q", got)
	}
	if got := refused(t, memsite.Site{}, efp); got != "old: there is no site: it has no _site" {
		t.Errorf("got %q", got)
	}
}

// TestDamaged: a damaged site gives one error, which names the site and the object.
func TestDamaged(t *testing.T) {
	t.Parallel()
	from, to := demo(t, site.APISpec)
	const records, details = site.Key("api/v1/lists/4/records"), site.Key("api/v1/lists/4/details")
	board := site.LeaderboardLimitKey(site.Followers, 100)
	shard := site.ManifestKey(site.ManifestShard(records, 1))
	for name, test := range map[string]struct {
		key    site.Key
		change func(string) (string, bool)
		want   string
	}{
		"records are gone":        {records, gone, "new: api/v1/lists/4/records: no such object"},
		"records are altered":     {records, func(b string) (string, bool) { return strings.Replace(b, "top8", "topp", 1), true }, "new: api/v1/lists/4/records: the content does not match its MD5"},
		"records are longer":      {records, func(b string) (string, bool) { return b + " ", true }, "new: api/v1/lists/4/records: 1885 bytes"},
		"details are altered":     {details, func(b string) (string, bool) { return strings.Replace(b, "0", "1", 1), true }, "new: api/v1/lists/4/details: the content"},
		"a leaderboard is gone":   {board, gone, "new: _variants/leaderboard/followers/limit=100: no such object"},
		"a shard is gone":         {shard, gone, "new: read " + string(shard) + ": no such object"},
		"a shard is altered":      {shard, func(b string) (string, bool) { return strings.Replace(b, "0", "1", 1), true }, "new: read " + string(shard) + ": "},
		"the root is no JSON":     {site.RootKey, func(b string) (string, bool) { return b[:len(b)/2], true }, "new: read _site: "},
		"the root is 5 MB":        {site.RootKey, func(b string) (string, bool) { return b + strings.Repeat(" ", 5<<20), true }, "new: _site: 5245630 bytes"},
		"a user bucket is no one": {site.UserBucketKey("0"), gone, ""},
	} {
		damaged := memsite.Site{}
		for key, body := range to {
			damaged[key] = body
		}
		if body, there := test.change(damaged[test.key]); there {
			damaged[test.key] = body
		} else {
			delete(damaged, test.key)
		}
		if test.want == "" {
			compare(t, from, damaged, report.Options{}) // only names are missing
			continue
		}
		got := refused(t, from, damaged)
		if !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	// Invalid objects with the digest from the manifest.
	for key, body := range map[site.Key]string{records: `{"records":7}`, details: `{}`, board: `[{"rank":0}]`} {
		with := func(s memsite.Site, body string) memsite.Site {
			return s.With(t, func(objects memsite.Site, _ *site.Root) { objects[key] = body })
		}
		if got := refused(t, from, with(to, body)); !strings.HasPrefix(got, "new: "+string(key)+": ") || !strings.Contains(got, "malformed") {
			t.Errorf("%s of %s: got %q", key, body, got)
		}
	}
}

// TestExplorerGone: the objects of a removed explorer are still known.
func TestExplorerGone(t *testing.T) {
	t.Parallel()
	from, to := demo(t, site.APISpec)
	r := compare(t, withExplorer(t, from, 1), to, report.Options{})
	if r.Explorer || !slices.ContainsFunc(r.Objects, func(k report.ObjectKind) bool {
		return k.Kind.String() == string(site.NetworkKey) && k.Removed.Objects == 1
	}) {
		t.Errorf("got the objects %+v", r.Objects)
	}
}

func gone(string) (string, bool) { return "", false }

// TestRefreshed: an object replaced by a refresh counts with its current content. Without the
// refresh's note it is damaged.
func TestRefreshed(t *testing.T) {
	t.Parallel()
	from, to := demo(t, site.APISpec)
	const key = site.Key("api/v1/lists/4/details")
	refreshed := strings.Replace(from[key], `"name":"miralund.eth"`, `"name":"fresh.eth"`, 1)
	note := fmt.Sprintf(`{"stored":[{"md5":"%s","from":"%s"}],"writes":1}`, site.Sum([]byte(refreshed)), site.Sum([]byte(from[key])))
	live := memsite.Site{}
	for key, body := range from {
		live[key] = body
	}
	live[key] = refreshed
	if got := refused(t, live, to); !strings.HasPrefix(got, "old: api/v1/lists/4/details: ") {
		t.Errorf("got %q", got)
	}
	live[site.RefreshKey(site.Details, "4")] = note
	r := compare(t, live, to, report.Options{})
	// Another list of the account shows the old name still, but this is the primary one.
	if len(r.Profiles.Examples) == 0 || r.Profiles.Examples[0].NameFrom != "fresh.eth" || r.Profiles.Names != 1 || r.Read.Refreshed != 1 {
		t.Errorf("got %d refreshed and %+v, want the fresh name", r.Read.Refreshed, r.Profiles.Examples)
	}
	live[site.RefreshKey(site.Details, "4")] = "no JSON"
	if got := refused(t, live, to); !strings.HasPrefix(got, "old: _refresh/details/4: ") {
		t.Errorf("got %q", got)
	}
}

// TestStorages: a folder, a tar file and a bucket in a folder give the same report as memory.
func TestStorages(t *testing.T) {
	t.Parallel()
	from, to := demo(t, site.APIEFP)
	want, err := compare(t, from, to, report.Options{}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	old, err := storage.OpenSite(t.Context(), from.Write(t, filepath.Join(t.TempDir(), "site")), storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	next, err := storage.OpenSite(t.Context(), to.Write(t, filepath.Join(t.TempDir(), "site.tar")), storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	for _, pair := range [][2]report.Site{{old.(report.Site), next.(report.Site)}, {stored(t, from), next.(report.Site)}} {
		r, err := report.Compare(t.Context(), report.Side{Site: pair[0], Name: "old"}, report.Side{Site: pair[1], Name: "new"}, report.Options{Date: day})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.JSON(); err != nil || string(got) != string(want) {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
	}
}

// TestAgreesWithPublish: the report counts the objects that a publish puts and deletes.
func TestAgreesWithPublish(t *testing.T) {
	t.Parallel()
	from, to := demo(t, site.APIEFP)
	r := compare(t, from, to, report.Options{})
	bucket := stored(t, from)
	published, err := publisher.Publish(t.Context(), to, bucket, publisher.Options{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	var added, put, removed int
	var bytes int64
	for _, k := range r.Objects {
		if k.Kind == "_manifest/{hash}" {
			continue
		}
		added += k.Added.Objects
		put += k.Added.Objects + k.Altered.Objects
		bytes += k.Added.Bytes + k.Altered.Bytes
		removed += k.Removed.Objects
	}
	if p := published.Plan; p.Added != added || p.Put != put || p.Bytes != bytes || p.Delete != removed {
		t.Errorf("got %d objects added, %d put with %d bytes, %d removed; a publish says %+v", added, put, bytes, removed, p)
	}
}

// TestCanceled: the end of the context ends a comparison, with its cause.
func TestCanceled(t *testing.T) {
	t.Parallel()
	from, to := demo(t, site.APISpec)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	var once sync.Once
	side := report.Side{Name: "new", Site: counted{to, func(key site.Key) {
		if strings.HasSuffix(string(key), "/records") {
			once.Do(func() { cancel(stopped) })
		}
	}}}
	if _, err := report.Compare(ctx, sideOf("old", from), side, report.Options{}); !errors.Is(err, stopped) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, stopped)
	}
}
