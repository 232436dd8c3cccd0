package edge

import (
	"bytes"
	"math/rand/v2"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/dop251/goja"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

// resolver is resolve.js in a JavaScript engine.
type resolver struct {
	config      site.Config
	hasFallback bool
	compact     bool // as in CloudFront: the origin answers for what does not exist
	vm          *goja.Runtime
	resolve     goja.Callable
}

// A decision is the result of resolve in JavaScript.
type decision struct {
	Kind, Path, Absent, Forward, Problem string
	Unknown, Address                     string
	Empty                                Answer
	Fresh                                bool
}

func newResolver(t testing.TB, config site.Config, hasFallback, normalizes bool) *resolver {
	t.Helper()
	r := &resolver{config: config, hasFallback: hasFallback}
	r.load(t, normalizes, func(v *view) (string, error) {
		templates, err := definition{parts: []string{"resolve.js"}}.templates()
		if err != nil {
			return "", err
		}
		var source bytes.Buffer
		err = templates.ExecuteTemplate(&source, "resolve.js", v)
		return source.String(), err
	})
	return r
}

// newCompactResolver has the script as it is in CloudFront's function.
func newCompactResolver(t testing.TB, config site.Config, hasFallback bool) *resolver {
	t.Helper()
	r := &resolver{config: config, hasFallback: hasFallback, compact: true}
	r.load(t, true, func(v *view) (string, error) {
		source, err := cloudFrontSource(*v)
		_, script, _ := strings.Cut(source, "\n") // after the import
		return script, err
	})
	return r
}

func (r *resolver) load(t testing.TB, normalizes bool, script func(v *view) (string, error)) {
	t.Helper()
	o := Options{Config: r.config, Bucket: "http://bucket"}
	if r.hasFallback {
		o.Fallback = "http://fallback"
	}
	view, err := newView(o)
	if err != nil {
		t.Fatal(err)
	}
	source, err := script(view)
	if err != nil {
		t.Fatal(err)
	}
	r.vm = goja.New()
	r.vm.SetFieldNameMapper(goja.UncapFieldNameMapper())
	if !normalizes { // as in njs and CloudFront
		if _, err := r.vm.RunString("String.prototype.normalize = undefined; Array.from = undefined;"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.vm.RunString(source); err != nil {
		t.Fatal(err)
	}
	var ok bool
	if r.resolve, ok = goja.AssertFunction(r.vm.Get("resolve")); !ok {
		t.Fatal("resolve is no function")
	}
}

func (r *resolver) decide(t testing.TB, method, path, query string) (d decision) {
	t.Helper()
	got, err := r.resolve(goja.Undefined(), r.vm.ToValue(method), r.vm.ToValue(ascii(path)), r.vm.ToValue(ascii(query)))
	if err != nil {
		t.Fatalf("%s %s?%s: %v", method, path, query, err)
	}
	if err := r.vm.ExportTo(got, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// ascii encodes what every client encodes.
func ascii(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if text[i] < 0x80 {
			b.WriteByte(text[i])
		} else {
			b.WriteString(url.PathEscape(text[i : i+1]))
		}
	}
	return b.String()
}

// check compares a decision with that of package site. An edge may look for a name as
// it was sent and then ask the fallback: then the final answer must be right.
func (r *resolver) check(t *testing.T, method, path, query string) {
	t.Helper()
	d := r.decide(t, method, path, query)
	want, forward := AtEdge(r.config, method, path, query)
	fail := func(why string) {
		t.Helper()
		t.Errorf("%s %.200q?%.200q, base %q, fallback %t: %s\n got %.500v\nwant %.500v", method, path, query, r.config.BasePath, r.hasFallback, why, d, want)
	}
	if d.Kind == "object" && d.Forward != "" {
		if key := keyOf(t, d.Path); isKey(r.config, key) {
			if key != want.Key {
				fail("another object")
			}
			return
		}
		want2, forward2 := AtEdge(r.config, "GET", d.Forward, "")
		if want2.Action != want.Action || forward2 != forward || want2.Key != want.Key || want2.Problem != want.Problem {
			fail("the fallback answers another request")
		}
		return
	}
	if r.compact && want.Problem == site.NoSuchRoute && noObject.MatchString(d.Path) {
		return // the origin says so
	}
	if d.Kind == "post" {
		// The fallback reports all problems of a forwarded POST, except a wrong method.
		forwardPath, _, _ := strings.Cut(d.Forward, "?")
		if again := r.config.Resolve(method, forwardPath, ""); method != "POST" || again.Problem != want.Problem || again.Key != want.Key {
			fail("the fallback answers another request")
		}
		return
	}
	absent := ""
	if want.Absent != nil {
		absent = want.Absent.Name
	}
	if forward != "" && !r.hasFallback {
		switch body, problem := WithoutFallback(r.config, want); {
		case body != "":
			if d.Kind != "empty" || d.Empty.Body != body {
				fail("not the page without entries " + body)
			}
			return
		case problem != nil:
			if d.Kind != "problem" || d.Problem != problem.Name {
				fail("not the problem " + problem.Name)
			}
			return
		}
	}
	switch {
	case want.Action == site.AnswerPreflight:
		if d.Kind != "preflight" {
			fail("no preflight")
		}
	case want.Action == site.AnswerProblem:
		forwardPath, forwardQuery, _ := strings.Cut(d.Forward, "?")
		askable := d.Kind == "fallback" && r.config.Resolve("GET", forwardPath, forwardQuery).Problem == want.Problem
		if !askable && (d.Kind != "problem" || d.Problem != want.Problem.Name) {
			fail("not the problem " + want.Problem.Name)
		}
	case forward == "" || !r.hasFallback:
		if d.Kind != "object" || keyOf(t, d.Path) != want.Key || !r.compact && (d.Absent != absent || d.Fresh != want.Fresh) {
			fail("not the object")
		}
		if unknown := want.Unknown != ""; !r.compact && (unknown != (d.Unknown != "") || unknown && (site.UnknownKey(site.ListObject(d.Unknown)) != want.Unknown || d.Address != want.Address)) {
			fail("not the object for unknown addresses")
		}
	default:
		if d.Kind != "fallback" || !r.compact && d.Fresh != want.Fresh || !r.same(d.Forward, path, query) {
			fail("not the same request for the fallback")
		}
		forwardPath, forwardQuery, _ := strings.Cut(d.Forward, "?")
		if again := r.decide(t, "GET", forwardPath, forwardQuery); again.Forward != d.Forward {
			fail("its normal form is not one: " + again.Forward)
		}
	}
}

func (r *resolver) same(forward, path, query string) bool {
	forwardPath, forwardQuery, _ := strings.Cut(forward, "?")
	return reflect.DeepEqual(r.config.Resolve("GET", forwardPath, forwardQuery), r.config.Resolve("GET", path, query))
}

func keyOf(t testing.TB, path string) site.Key {
	t.Helper()
	key, err := url.PathUnescape(strings.TrimPrefix(path, "/"))
	if err != nil {
		t.Fatalf("path %q: %v", path, err)
	}
	return site.Key(key)
}

func isKey(c site.Config, key site.Key) bool {
	_, ok := c.RouteOf(key)
	return ok
}

// anyDigest is like a SHA-256.
var anyDigest = strings.Repeat("0a", 32)

// noObject matches paths that only objects of a site can have.
var noObject = regexp.MustCompile(`^/(?:u|_(?:badge|card|client|data|errors|explore|log|manifest|next|refresh|reports|search|snapshot|unknown|variants))(/_?[0-9A-Za-z][0-9A-Za-z.=-]*)+$`)

var beyondASCII = regexp.MustCompile(`%[89A-Fa-f]`)

const anyWindow = site.Window(site.DefaultHistoryWindow)

func TestResolverAgreesWithSite(t *testing.T) {
	for _, config := range []site.Config{
		{}, {BasePath: "x"}, {BasePath: "a/b.c/users"},
		{API: site.APIEFP}, {API: site.APIEFP, BasePath: "a/b.c/users"}, {API: site.APIEFP, Names: site.NamesLookup},
		{Explorer: true}, {API: site.APIEFP, Explorer: true}, {API: site.APIEFP, HistoryWindow: anyWindow},
		{API: site.APIEFP, Names: site.NamesLookup, Explorer: true, HistoryWindow: anyWindow}, site.AllFeatures(),
	} {
		config.LeaderboardMax = 137
		config, err := config.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*resolver{
			newResolver(t, config, true, false), newResolver(t, config, true, true), newResolver(t, config, false, true),
			newCompactResolver(t, config, true), newCompactResolver(t, config, false),
		} {
			random := rand.New(rand.NewPCG(1, 2))
			for range servers.Rounds(120, 2_000) {
				method, path, query := randomRequest(random, config)
				if r.compact && (strings.HasPrefix(path, "/_") || strings.HasPrefix(path, "/u/")) {
					method = "GET" // only the origin knows which of these paths have a route
				}
				if r.compact && !r.hasFallback && beyondASCII.MatchString(ascii(path)) {
					continue // CloudFront cannot compose letters
				}
				r.check(t, method, path, query)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// randomRequest resembles a request of the API, and may be broken in several ways.
func randomRequest(random *rand.Rand, config site.Config) (method, path, query string) {
	method = "GET"
	if random.IntN(20) == 0 {
		method = pick(random, "HEAD", "OPTIONS", "POST", "get", "")
	}
	if config.EFP() && random.IntN(10) == 0 {
		method = "POST"
	}
	routes := config.Routes()
	path = routes[random.IntN(len(routes))].Path(config)
	users := []string{
		"0xABCDEFabcdefabcdefabcdefabcdefabcdefabcd", "0Xabcdefabcdefabcdefabcdefabcdefabcdefabcd", "alice.eth", "ALICE.eth", "",
		"..", "%2e%2e", ".", "CAFÉ.eth", "cafe%CC%81.eth", "%FF", "%E2%9D%A4%EF%B8%8F.eth", "a+b", "a%2Fb", "50%25", "%20x", "0x123", "%zz", "%3D=",
		"searchFollowing", "users", "recommended", strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("é", 127), strings.Repeat("é", 128),
		"0xabcdefabcdefabcdefabcdefabcdefabcdefabcd%EF%B8%8F", "K", "İ", "Σας", "a%C2%A0b", "a!'()*b", "a;b:c@d&e,f$g",
	}
	for name, values := range map[string][]string{
		"board":    {"followers", "following", "mutuals", "ranked", ""},
		"token_id": {"1", "0", "42", "01", "-1", "", strings.Repeat("9", 78), strings.Repeat("9", 79), "1%00", "..%2f1", "x"},
		"user":     users,
		"other":    users,
		"address":  {"0xabcdefabcdefabcdefabcdefabcdefabcdefabcd", "0xABCDEFabcdefabcdefabcdefabcdefabcdefabcd", "0x1"},
		"object":   {"account", "details", "searchFollowing"},
		"sort":     {"followers", "mutuals"},
		"script":   {"shim.js", "shimxjs"},
		"types":    {"shim.d.ts"},
		"limit":    {"1", "10", "99", "137", "138", "0", "010", ""},
		"number":   {"0", "7", "00", strings.Repeat("1", 18), strings.Repeat("1", 19)},
		"sha256":   {anyDigest, anyDigest[1:], strings.ToUpper(anyDigest)},
		"hash":     {"0", "ff", "0123", "01234", "F", ""},
		"asset":    {"explorer-AB2DEF7H", "explorer-ab2def7h", "explorer"},
		"date":     {"2026-01-31", "2026-1-31", "index"},
		"problem":  {"bad-limit", "no-such-list", "no", ""},
		"page": {"alice.eth", "Alice.eth", "%61lice.eth", "x", "_x", "..", "-x", "a_b", "a%2fb", "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd", "index.html", "dark", "",
			strings.Repeat("x", 100), strings.Repeat("x", 101)},
	} {
		path = strings.ReplaceAll(path, "{"+name+"}", pick(random, values...))
	}
	if page, ok := strings.CutSuffix(path, "/index.html"); ok {
		path = page + pick(random, "", "/", "//", "/index.html", "/%69ndex.html", "/x")
	}
	for random.IntN(6) == 0 {
		path = mutate(random, path)
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	for random.IntN(2) == 0 {
		name := pick(random, "limit", "offset", "term", "includeTags", "cache", "Limit", "l%69mit", "x", "", "__proto__", "constructor")
		if config.EFP() && random.IntN(2) == 0 {
			name = pick(random, "sort", "direction", "tags", "include", "leader", "t%61gs")
			query += pick(random, "", "&", "&&") + name + "=" + pick(random, append(users, "ens", "ENS", "ens%2Cx", "x,ens", "x", ",", "a,%2cB", "a%252Cb", ",a", "asc", "ASC", "%61sc",
				"followers", "Followers", "latest", "top8", "blocked", "K", "%C3%89")...)
			continue
		}
		if config.HistoryWindow > 0 && random.IntN(3) == 0 {
			name = pick(random, "interval", "opcode", "tag", "t%61g")
			query += pick(random, "", "&", "&&") + name + pick(random, "=", "=", "=", "") + pick(random, "hour", "day", "week", "month", "all", "Day", "%64ay", "1", "2", "4", "5", "0",
				"01", "%33", "", "a,B", ",", "a%2cb", "+x+", "%C3%89", "e%CC%81", "%FF", "%00", "%E2%80%AE", "%", "%2", "=", "a=b", strings.Repeat("x", 256), "%EF%BF%BD")
			continue
		}
		value := pick(random, "", "1", "5", "05", "10", "100", "101", "138", "0", "-1", "+5", "%35", "x", "true", "false", "TRUE", "fresh", "%66resh",
			"999999999999999999", "9999999999999999999", "fox", "FOX", "+fox%20", "%C3%89t%C3%A9", "%FF", "%E3%80%80", "%C2%A0a", "a%26b=c", "%2541", "%", "K",
			strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("%61", 255), strings.Repeat("é", 127), strings.Repeat("é", 128), "2147483648")
		query += pick(random, "", "&", "&&") + name + pick(random, "=", "=", "=", "", "==") + value
	}
	for random.IntN(8) == 0 {
		query = mutate(random, query)
	}
	return method, strings.ReplaceAll(path, "?", ""), query
}

func mutate(random *rand.Rand, text string) string {
	at := random.IntN(len(text) + 1)
	if random.IntN(3) == 0 && at < len(text) {
		return text[:at] + url.PathEscape(string(text[at])) + text[at+1:]
	}
	return text[:at] + pick(random, "/", "%", "%2F", "..", "x", "%41", "&", "=", "+", "0", "%00", "É") + text[min(len(text), at+random.IntN(2)):]
}

func pick(random *rand.Rand, all ...string) string { return all[random.IntN(len(all))] }
