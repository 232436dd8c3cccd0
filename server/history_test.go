package server_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/storage"
)

const wholeWindow = 999 * time.Hour

// historySite returns a site of a snapshot with its operations, whose objects are those of the twin, and the twin.
func historySite(t testing.TB, snapshot fs.FS, names string, window time.Duration) (memsite.Site, *naive.Graph) {
	t.Helper()
	graph, err := naive.Load(snapshot, naive.Config{HistoryWindow: window})
	if err != nil {
		t.Fatal(err)
	}
	config := site.Config{API: site.APIEFP, Names: names, HistoryWindow: site.Window(window)}
	all := objects(t, generated(t, afero.FromIOFS{FS: snapshot}, config))
	want := graph.HistoryObjects()
	for _, key := range all.Keys(t, routes.NotificationsShard, routes.OlderNotifications, routes.ActivityShard, routes.OlderActivity) {
		if all[key] != string(want[string(key)]) {
			t.Errorf("%s:\n got %.600s\nwant %.600s", key, all[key], want[string(key)])
		}
		delete(want, string(key))
	}
	for key := range want {
		t.Errorf("%s: got no such object, want one", key)
	}
	return all, graph
}

var isHistory = regexp.MustCompile(`/(notifications|notifications\.atom|activity)$`)

// TestHistoryAnswersAreThoseOfTheTwin asks about operations only, of many random graphs: from memory, a folder and a tar file.
func TestHistoryAnswersAreThoseOfTheTwin(t *testing.T) {
	t.Parallel()
	asked, news := 0, 0
	for seed := range uint64(servers.Rounds(4, 60)) {
		window := []time.Duration{wholeWindow, wholeWindow, 200 * time.Hour, 5000 * time.Hour}[seed%4]
		files, graph := historySite(t, naive.Random(seed), allNames[seed%2], window)
		store := server.Store(files)
		if seed%3 > 0 {
			opened, err := storage.OpenSite(t.Context(), files.Write(t, filepath.Join(t.TempDir(), []string{"", "folder", "site.tar"}[seed%3])), storage.S3Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			store = opened
		}
		handler := newHandler(t, store, server.Options{})
		defer handler.Close()
		for _, r := range naive.Requests(rand.New(rand.NewPCG(seed, 2)), graph, 8000) {
			if !isHistory.MatchString(r.Path) || strings.Contains(r.Path, "//") {
				continue
			}
			asked++
			got, contentType, want := sameAsTwin(t, fmt.Sprint("seed ", seed), handler, graph, r)
			if got.Header().Get("Content-Type") != contentType {
				t.Errorf("seed %d, %s: got %s, want %s", seed, r, got.Header().Get("Content-Type"), contentType)
			}
			if got.Code == 200 && bytes.Contains(want, []byte(`"total":`)) && !bytes.Contains(want, []byte(`"total":0`)) {
				news++
			}
		}
	}
	if asked < 1000 || news < asked/20 {
		t.Errorf("got %d requests, %d with operations, want many", asked, news)
	}
}

// longHistory returns a graph in which thousands of operations are about account 1, and thousands are those of its list 1. Of
// its lists only 1 is primary.
func longHistory(seed uint64, ops int) fstest.MapFS {
	files := efpSnapshot(seed, 30, 40)
	r := rand.New(rand.NewPCG(seed, 6))
	asOf := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var text strings.Builder
	for i := range ops {
		at := asOf.Add(-900 * time.Hour / time.Duration(ops) * time.Duration(ops-i)).Truncate(time.Minute)
		code, tag := 1+r.IntN(2), ""
		if r.IntN(3) == 0 {
			code, tag = 3+r.IntN(2), fmt.Sprintf("%x", []string{"top8", "é", "rare", "\uFFFD"}[r.IntN(60)/19])
		}
		for logIndex, op := range [2][2]int{{100 + r.IntN(40), 1}, {1, 10 + r.IntN(300)}} {
			fmt.Fprintf(&text, `{"token_id":"%d","time":"%s","chain_id":1,"block":%d,"log_index":%d,"op":"0x01%02x0101%s%s"}`+"\n",
				op[0], at.Format("2006-01-02T15:04:05.000Z"), i, logIndex, code, numbered(op[1])[2:], tag)
		}
	}
	files["ops.ndjson"] = &fstest.MapFile{Data: []byte(text.String())}
	return files
}

// longHistorySite returns the site of a long history, and its twin. It is made once.
func longHistorySite(t testing.TB) (memsite.Site, *naive.Graph) {
	t.Helper()
	longHistoryOnce.Do(func() { longHistoryFiles, longHistoryTwin = historySite(t, longHistory(1, 2700), "", wholeWindow) })
	return longHistoryFiles, longHistoryTwin
}

var (
	longHistoryOnce  sync.Once
	longHistoryFiles memsite.Site
	longHistoryTwin  *naive.Graph
)

// historyPaths are pages of the long histories.
func historyPaths() (paths []string) {
	for _, of := range []string{"users/" + numbered(1) + "/notifications", "users/one.eth/notifications", "users/one.eth/notifications.atom", "lists/1/activity"} {
		for _, query := range []string{
			"", "interval=all", "interval=all&limit=100", "interval=all&limit=10&offset=990", "interval=all&limit=1000&offset=1500", "interval=month&offset=2000",
			"interval=all&tag=rare&limit=1000", "interval=all&tag=none", "interval=all&tag=%FF", "interval=all&tag=%EF%BF%BD", "interval=all&opcode=4&offset=300&limit=50", "interval=all&offset=999999", "opcode=2&tag=top8", "interval=day&limit=1000",
		} {
			paths = append(paths, "/api/v1/"+of+"?"+query)
		}
	}
	return paths
}

func TestLongHistories(t *testing.T) {
	t.Parallel()
	files, graph := longHistorySite(t)
	handler := newHandler(t, files, server.Options{})
	for _, path := range historyPaths() {
		if got, _, _ := sameAsTwin(t, "long histories", handler, graph, getOf(path)); got.Code != 200 {
			t.Errorf("%s: got %d, want 200", path, got.Code)
		}
	}
}

// The first 100 entries take two requests to the store at most, others one more for each shard that they are in.
func TestRequestsForHistories(t *testing.T) {
	t.Parallel()
	files, _ := longHistorySite(t)
	address := "/api/v1/users/" + numbered(1)
	for path, most := range map[string]int64{
		address + "/notifications?interval=all&limit=100": 1, "/api/v1/users/one.eth/notifications?interval=all&limit=100": 2,
		address + "/notifications.atom?interval=all": 1, "/api/v1/lists/1/activity?interval=all&limit=100": 1,
		"/api/v1/users/" + numbered(4_000_000) + "/notifications": 1, "/api/v1/lists/2/activity": 2,
		address + "/notifications?interval=all&limit=20&offset=990": 2, address + "/notifications?interval=all&limit=20&offset=1990": 3,
		address + "/notifications?interval=all&limit=20&offset=2000": 2, address + "/notifications?interval=all&offset=2700": 1,
		address + "/notifications?interval=hour&tag=none": 1, address + "/notifications?interval=all&tag=none": 3,
	} {
		fewRequests(t, files, path, most)
	}
}

// While a site is replaced by the next one, each answer is that of one of them. Both are of one time: the interval counts
// from the root.
func TestNoHistoryIsMixed(t *testing.T) {
	t.Parallel()
	old, _ := historySite(t, longHistory(1, 2300), "", wholeWindow)
	next, _ := historySite(t, longHistory(2, 3100), "", wholeWindow)
	noAnswerIsMixed(t, old, next, historyPaths())
}

// Answers about thousands of operations fit a server with little memory, and give it back.
func TestHistoriesInLittleMemory(t *testing.T) {
	t.Parallel()
	files, graph := longHistorySite(t)
	handler := newHandler(t, files, server.Options{CacheBytes: 1 << 20, InFlightBytes: 2 << 20, Timeout: time.Minute})
	paths := historyPaths()
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range len(paths) / servers.Rounds(2, 1) {
				path := paths[(7*worker+i)%len(paths)] + "&limit=1000"
				if got, _, _ := sameAsTwin(t, "little memory", handler, graph, getOf(path)); got.Code != 200 {
					t.Errorf("%s: got %d, want 200", path, got.Code)
				}
			}
		})
	}
	group.Wait()
	eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
}

// After the window was shortened, older operations are not answered, even if their objects are
// still there.
func TestHistoryBeforeTheWindow(t *testing.T) {
	t.Parallel()
	files, _ := historySite(t, longHistory(1, 900), "", wholeWindow)
	shorter := files.With(t, func(_ memsite.Site, root *site.Root) { root.Config.HistoryWindow = site.Window(24 * time.Hour) })
	path := "/api/v1/users/" + numbered(1) + "/notifications?limit=1000&interval="
	day := ask(newHandler(t, files, server.Options{}), path+"day").Body.String()
	all := ask(newHandler(t, shorter, server.Options{}), path+"all").Body.String()
	if want := strings.Replace(day, `"24:00:00(hrs)"`, `"999:00:00(hrs)"`, 1); all != want || strings.Contains(want, `"total":0`) {
		t.Errorf("got %.600s\nwant %.600s", all, want)
	}
}

// Damaged objects, and objects of another site, never become an answer.
func TestDamagedHistories(t *testing.T) {
	t.Parallel()
	good, _ := historySite(t, longHistory(1, 1300), "", wholeWindow)
	first, second := site.NotificationsKey(numbered(1), 0), site.NotificationsKey(numbered(1), 1)
	path := "/api/v1/users/" + numbered(1) + "/notifications?interval=all&limit=1000&offset=900"
	for name, change := range map[string]func(objects memsite.Site){
		"the second shard is missing":           func(o memsite.Site) { delete(o, second) },
		"the second shard is the first":         func(o memsite.Site) { o[second] = o[first] },
		"the second shard is of another number": func(o memsite.Site) { o[second] = strings.Replace(o[second], `"shard":1`, `"shard":0`, 1) },
		"another total":                         func(o memsite.Site) { o[second] = strings.Replace(o[second], `"total":1300`, `"total":1301`, 1) },
		"another owner":                         func(o memsite.Site) { o[first] = strings.Replace(o[first], numbered(1), numbered(2), 1) },
		"no entries":                            func(o memsite.Site) { o[first] = strings.Replace(o[first], "entries", "nothing", 1) },
		"too many shards":                       func(o memsite.Site) { o[first] = strings.Replace(o[first], `"shards":2`, `"shards":900000`, 1) },
		"no shard":                              func(o memsite.Site) { o[first] = strings.Replace(o[first], `"shards":2`, `"shards":0`, 1) },
		"an unknown opcode":                     func(o memsite.Site) { o[second] = strings.Replace(o[second], `",1,""`, `",5,""`, 1) },
		"a row that ends early":                 func(o memsite.Site) { o[second] = strings.Replace(o[second], `,1,""]`, `]`, 1) },
		"no JSON":                               func(o memsite.Site) { o[first] = o[first][:5000] },
		"empty":                                 func(o memsite.Site) { o[first] = "" },
	} {
		damaged := good.With(t, func(objects memsite.Site, _ *site.Root) { change(objects) })
		handler := newHandler(t, damaged, server.Options{Timeout: 200 * time.Millisecond})
		if got := ask(handler, path); got.Code != 503 {
			t.Errorf("%s: got %d %.300s, want 503", name, got.Code, got.Body)
		}
		handler.Close()
	}
	handler := newHandler(t, good, server.Options{})
	if got := ask(handler, path); got.Code != 200 {
		t.Errorf("a good site: got %d, want 200", got.Code)
	}
}

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
