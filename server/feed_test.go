package server_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/server"
)

// An element is an XML element with all that it has.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

func (e element) all(name string) (found []element) {
	for _, child := range e.Children {
		if child.XMLName == (xml.Name{Space: "http://www.w3.org/2005/Atom", Local: name}) {
			found = append(found, child)
		}
	}
	return found
}

func (e element) attr(name string) (value string, ok bool) {
	for _, a := range e.Attrs {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value, true
		}
	}
	return "", false
}

func (e element) attrOr(name, otherwise string) string {
	if value, ok := e.attr(name); ok {
		return value
	}
	return otherwise
}

var (
	isDate   = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`).MatchString                      // RFC 4287, 3.3
	isTagURI = regexp.MustCompile(`^tag:[a-z0-9.-]+,\d{4}(-\d\d(-\d\d)?)?:([\w.~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})*$`).MatchString // RFC 4151
)

// checkFeed checks a document by the rules of RFC 4287 for feeds, and that its IDs are tag URIs.
func checkFeed(document []byte) (feed element, err error) {
	var problems []error
	must := func(holds bool, rule string, args ...any) {
		if !holds {
			problems = append(problems, fmt.Errorf(rule, args...))
		}
	}
	decoder := xml.NewDecoder(strings.NewReader(string(document)))
	if err := decoder.Decode(&feed); err != nil {
		return feed, err
	}
	if rest, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return feed, fmt.Errorf("after the feed: got %v, %w, want nothing", rest, err)
	}
	must(feed.XMLName == xml.Name{Space: "http://www.w3.org/2005/Atom", Local: "feed"}, "the document element is %v", feed.XMLName)
	person := func(p element) {
		must(len(p.all("name")) == 1 && p.all("name")[0].Text != "", "a person has one name (3.2.1)")
		must(len(p.all("uri")) <= 1 && len(p.all("email")) <= 1, "a person has one uri and email at most (3.2)")
		for _, uri := range p.all("uri") {
			must(isIRI(uri.Text), "%q is no IRI (3.2.2)", uri.Text)
		}
	}
	common := func(e element) {
		for _, name := range []string{"id", "title", "updated"} {
			must(len(e.all(name)) == 1, "%s has %d of %s, not 1 (4.1.1, 4.1.2)", e.XMLName.Local, len(e.all(name)), name)
		}
		for _, name := range []string{"generator", "icon", "logo", "rights", "subtitle", "published", "source", "summary", "content"} {
			must(len(e.all(name)) <= 1, "several %s", name)
		}
		for _, id := range e.all("id") {
			must(isTagURI(id.Text), "%q is no tag URI", id.Text)
		}
		for _, title := range e.all("title") {
			kind := title.attrOr("type", "text")
			must(kind == "text" && len(title.Children) == 0, "a title of type %s with %d elements (3.1.1)", kind, len(title.Children))
			must(title.Text != "", "an empty title")
		}
		for _, updated := range e.all("updated") {
			_, err := time.Parse(time.RFC3339, updated.Text)
			must(err == nil && isDate(updated.Text), "%q is no date (3.3)", updated.Text)
		}
		alternates := map[string]bool{}
		for _, link := range e.all("link") {
			href, ok := link.attr("href")
			must(ok && isIRI(href), "link to %q (4.2.7.1)", href)
			if link.attrOr("rel", "alternate") == "alternate" {
				key := link.attrOr("type", "") + " " + link.attrOr("hreflang", "")
				must(!alternates[key], "two alternate links of one type (4.1.1, 4.1.2)")
				alternates[key] = true
			}
		}
		if e.XMLName.Local == "entry" && len(e.all("content")) == 0 {
			must(len(alternates) > 0, "neither content nor an alternate link (4.1.2)")
		}
		for _, author := range e.all("author") {
			person(author)
		}
	}
	common(feed)
	must(len(feed.all("author")) > 0, "no author (4.1.1)")
	selves := 0
	for _, link := range feed.all("link") {
		if link.attrOr("rel", "") == "self" {
			selves++
		}
	}
	must(selves == 1, "%d links to itself, not 1 (4.1.1)", selves)
	ids := map[string]bool{}
	for _, entry := range feed.all("entry") {
		common(entry)
		for _, id := range entry.all("id") {
			must(!ids[id.Text], "two entries with the ID %s (4.1.1)", id.Text)
			ids[id.Text] = true
		}
	}
	for _, child := range feed.Children {
		must(child.XMLName.Space == feed.XMLName.Space, "element %v", child.XMLName)
	}
	must(strings.TrimSpace(feed.Text) == "", "text %q", feed.Text)
	return feed, errors.Join(problems...)
}

func isIRI(text string) bool {
	_, err := url.Parse(text)
	return err == nil && text != "" && !strings.ContainsAny(text, " \"<>\\^`{|}") && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7F }) < 0
}

// hostileTexts are names that want to be markup, or that XML 1.0 cannot have.
var hostileTexts = []string{
	`</title><script>alert(1)</script>`, `]]><entry>`, `<![CDATA[`, `<!-- `, `&lt;b&gt;`, `&#0;`, `&nbsp;`, `<?xml version="1.0"?>`, `"'>`, "\x00", "\x01\x08\x0b\x1f",
	"\uFFFE\uFFFF", "\u2028\u2029", "\u202Eeman", "\r\n\t", " ", "\U0001F98A", "\U0010FFFF", strings.Repeat("&", 60_000), `\"`, `%s%d`,
}

// hostileHistory returns a graph whose accounts have hostile names. The lists of all did everything to account 0.
func hostileHistory() fstest.MapFS {
	var lists, accounts, ops strings.Builder
	for i, text := range hostileTexts {
		name, err := json.Marshal(text)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&lists, `{"token_id":"%d","owner":"%s"}`+"\n", i, numbered(i))
		fmt.Fprintf(&accounts, `{"address":"%s","primary_list":"%d","ens":{"name":%s,"avatar":%s}}`+"\n", numbered(i), i, name, name)
		tag := strings.ReplaceAll(text, "\x00", "")
		tag = tag[:min(len(tag), 200)]
		if tag == "" {
			tag = "nothing"
		}
		for code, rest := range []string{"", "", "", fmt.Sprintf("%x", tag), fmt.Sprintf("%x", tag)}[1:] {
			fmt.Fprintf(&ops, `{"token_id":"%d","time":"2026-10-31T11:22:33.%03dZ","chain_id":1,"block":%d,"log_index":%d,"op":"0x01%02x0101%s%s"}`+"\n",
				i, i, i, code, code+1, numbered(0)[2:], rest)
		}
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"lists.ndjson": lists.String(), "accounts.ndjson": accounts.String(), "records.ndjson": "", "events.ndjson": "", "badges.ndjson": "",
		"ops.ndjson": ops.String(), "meta.json": `{"format":1,"as_of":"2026-11-01T00:00:00Z"}`,
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func TestFeedsAreValid(t *testing.T) {
	t.Parallel()
	files, _ := historySite(t, hostileHistory(), "", wholeWindow)
	handler := newHandler(t, files, server.Options{})
	target := "/api/v1/users/" + numbered(0) + "/notifications.atom"
	got := ask(handler, target+"?limit=1000")
	if contentType := got.Header().Get("Content-Type"); got.Code != 200 || contentType != "application/atom+xml; charset=utf-8" {
		t.Fatalf("got %d, %s, want a feed", got.Code, contentType)
	}
	feed, err := checkFeed(got.Body.Bytes())
	if err != nil {
		t.Error(err)
	}
	entries := feed.all("entry")
	if want := 4 * len(hostileTexts); len(entries) != want {
		t.Fatalf("entries: got %d, want %d", len(entries), want)
	}
	for i, entry := range entries { // the newest first: names backwards
		name := hostileTexts[len(hostileTexts)-1-i/4]
		shown := strings.Map(func(r rune) rune {
			if r < ' ' && !strings.ContainsRune("\t\r\n", r) || r == 0xFFFE || r == 0xFFFF {
				return 0xFFFD
			}
			return r
		}, name)
		author := entry.all("author")[0].all("name")[0].Text
		if title := entry.all("title")[0].Text; author != shown || !strings.HasPrefix(title, shown+" ") {
			t.Errorf("%.50q: got author %.50q and title %.100q, want the name as text", name, author, title)
		}
	}
	for good, bad := range map[string]string{ // the rules can be broken
		"<updated>": "<updated> ", `rel="alternate"`: `rel="self"`, "<entry>": "<entry><id>tag:a,2026:b</id>", "</feed>": "</feed>x", "&amp;": "&", "T11:22": "t11:22",
		"<author>": "<author><name>x</name>", "<id>tag:": "<id>", `href="https:`: `href="https :`, "http://www.w3.org/2005/Atom": "http://www.w3.org/2005/atom",
	} {
		spoiled := strings.Replace(got.Body.String(), good, bad, 1)
		if _, err := checkFeed([]byte(spoiled)); err == nil || spoiled == got.Body.String() {
			t.Errorf("a feed with %s instead of %s: got no error, want one", bad, good)
		}
	}
	if first := ask(handler, target); strings.Count(first.Body.String(), "<entry>") != 50 {
		t.Errorf("without a limit: got %d entries, want 50", strings.Count(first.Body.String(), "<entry>"))
	}
	head := answerTo(handler, "HEAD", target, nil)
	if head.Code != 200 || head.Header().Get("Etag") == "" || head.Header().Get("Content-Length") == "" || head.Header().Get("Cache-Control") == "" {
		t.Errorf("HEAD: got %d, %v, want the headers of a feed", head.Code, head.Header())
	}
	for seed := range uint64(servers.Rounds(2, 20)) {
		files, graph := historySite(t, naive.Random(seed), "", wholeWindow)
		handler := newHandler(t, files, server.Options{})
		for _, r := range naive.Requests(rand.New(rand.NewPCG(seed, 3)), graph, 4000) {
			if !strings.HasSuffix(r.Path, ".atom") || r.Method != "GET" {
				continue
			}
			if got := ask(handler, r.URL()); got.Code == 200 {
				if _, err := checkFeed(got.Body.Bytes()); err != nil {
					t.Errorf("seed %d, %s: %v", seed, r, err)
				}
			}
		}
		handler.Close()
	}
}

// An entry of a feed keeps its ID when the next site is published, and on other pages. The feed of a name is that of its address.
func TestFeedIDs(t *testing.T) {
	t.Parallel()
	ids := func(ops int, path string) (feed string, all []string) {
		files, _ := historySite(t, longHistory(1, ops), "", wholeWindow)
		got := ask(newHandler(t, files, server.Options{}), path)
		parsed, err := checkFeed(got.Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range parsed.all("entry") {
			all = append(all, e.all("id")[0].Text)
		}
		return parsed.all("id")[0].Text, all
	}
	path := "/api/v1/users/" + numbered(1) + "/notifications.atom?interval=all&limit=1000"
	feed, all := ids(60, path)
	if len(all) < 50 {
		t.Fatalf("got %d entries, want many", len(all))
	}
	for _, other := range []string{"/api/v1/users/one.eth/notifications.atom?interval=all&limit=20", path + "&offset=7"} {
		again, some := ids(60, other)
		if again != feed || len(some) < 20 || !strings.Contains(strings.Join(all, " "), strings.Join(some, " ")) {
			t.Errorf("%s: got %s with %d entries, want %s and some of its entries", other, again, len(some), feed)
		}
	}
}
