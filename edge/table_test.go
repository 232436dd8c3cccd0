package edge

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates/openapi"
)

// The expressions of the table match what the rules of keys accept.
func TestEdgeExpressionsMatchKeys(t *testing.T) {
	random := newRandom()
	for _, limitMax := range []int{10, 19, 20, 99, 100, 101, 137, 999, 1000, 2345, 10_000} {
		c, err := site.Config{LeaderboardMax: limitMax}.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		var matchers []*regexp.Regexp
		table := TableOf(c)
		for _, r := range table.Routes {
			if r.Subject == SubjectStored || r.Subject == SubjectBoard {
				matchers = append(matchers, regexp.MustCompile(r.Path))
			} else {
				matchers = append(matchers, nil)
			}
		}
		check := func(key string) {
			route, _ := c.RouteOf(site.Key(key))
			for i, r := range table.Routes {
				if matchers[i] != nil && matchers[i].MatchString(key) != (r.Route == route) {
					t.Errorf("maximum %d, key %q: got another answer from the expression %s than from the route", limitMax, key, r.Path)
				}
			}
		}
		for limit := range limitMax + 20 {
			check(fmt.Sprintf("_variants/leaderboard/followers/limit=%d", limit))
		}
		for _, key := range []string{
			"_site", "_site/", "_lock", "_publishing", "_refresh/notes/1", "_manifest/00", "_manifest/0g", "_manifest/01234", "_search/users/a", "_search/users/",
			"_search/lists/1/0", "_search/lists/01/0", "_search/lists/1/" + strings.Repeat("9", 18+random.IntN(2)), "_errors/bad-limit", "_errors/bad", "_errors/",
			"api/v1/leaderboard/followers", "api/v1/leaderboard/mutuals", "apixv1/leaderboard/followers", "_variants/leaderboard/followers/limit=01",
		} {
			check(key)
		}
	}
}

func efpConfig(t testing.TB, names string) site.Config {
	t.Helper()
	return withDefaults(t, site.Config{API: site.APIEFP, Names: names})
}

func withDefaults(t testing.TB, c site.Config) site.Config {
	t.Helper()
	c, err := c.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func withExplorer(c site.Config) site.Config {
	c.Explorer = true
	return c
}

// newRandom returns a source that gives the same values in every run.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// Every row of the edge table matches the paths of its routes and no others, and Direct only keys.
func TestEdgeGroupsMatchRoutes(t *testing.T) {
	c, random := withExplorer(efpConfig(t, site.NamesCopies)), newRandom()
	rows := TableOf(c).Routes
	if all := c.Routes(); len(rows) > len(all)*2/3 {
		t.Errorf("rows of the table: got %d for %d routes, want fewer", len(rows), len(all))
	}
	var paths, directs []*regexp.Regexp
	for _, r := range rows {
		paths = append(paths, regexp.MustCompile(r.Path))
		directs = append(directs, regexp.MustCompile("^(?:"+r.Direct+")$"))
	}
	const address = "0xabababababababababababababababababababab"
	for range 20_000 {
		route := c.Routes()[random.IntN(len(c.Routes()))]
		path := strings.TrimPrefix(route.Path(c), "/")
		for variable, values := range map[string][]string{
			"board": {"followers", "muted", "count", "x"}, "token_id": {"1", "01", "x"}, "user": {"alice.eth", address, "ABC", "recommended"}, "other": {"bob.eth", "details"},
			"address": {address, "0x1"}, "object": {"account", "records"}, "sort": {"followers", "mutuals"}, "script": {"shim.js", "x.js"}, "types": {"shim.d.ts"},
			"limit": {"1", "101"}, "number": {"0", "01"}, "hash": {"0f", "g"}, "sha256": {strings.Repeat("0a", 32), "0a"}, "problem": {"post-only", "x"},
			"asset": {"app-ABCD1234", "app"}, "date": {"2026-01-02", "x"},
		} {
			path = strings.ReplaceAll(path, "{"+variable+"}", pick(random, values...))
		}
		if random.IntN(4) == 0 {
			path += pick(random, []string{"/", "x", "/details", "/1"}...)
		}
		method := http.MethodGet
		if route.Post {
			method = http.MethodPost
		}
		resolution := c.Resolve(method, "/"+path, "leader=x")
		found := 0
		for i, row := range rows {
			if directs[i].MatchString("/"+path) && row.Direct != "" {
				if _, isKey := c.RouteOf(site.Key(path)); !isKey || resolution.Key != site.Key(path) || resolution.Action != site.AnswerObject {
					t.Fatalf("%s: got a key by the expression %s, want %+v", path, row.Direct, resolution)
				}
			}
			if !paths[i].MatchString(path) {
				continue
			}
			found++
			if r := resolution.Route; r == nil || r.Computed != row.Computed || r.Post != row.Post || r.CacheControl != row.Caching || len(r.Params) != len(row.Params) {
				t.Fatalf("%s: got the row %s, want one like %+v", path, row.Path, r)
			}
		}
		if want := resolution.Route != nil; found > 1 || (found == 1) != want {
			t.Fatalf("%s: got %d rows, want one for a route: %t", path, found, want)
		}
	}
}

// Without a fallback an edge never gives the first page for another one.
func TestWithoutFallback(t *testing.T) {
	config := efpConfig(t, site.NamesCopies)
	for request, want := range map[string]string{
		"users/alice.eth/following?offset=20&sort=followers": `{"following":[]}`,
		"users/alice.eth/following?tags=a":                   `{"following":[]}`,
		"users/alice.eth/followers?offset=20":                `{"followers":[]}`,
		"lists/1/searchFollowing?term=x":                     `{"following":[]}`,
		"lists/1/recommended/details":                        `{"recommended":[]}`,
		"discover?offset=10":                                 `{"latestFollows":[]}`,
		"lists/1/searchFollowing?limit=5":                    "", // the object
	} {
		path, query, _ := strings.Cut("/api/v1/"+request, "?")
		if got, problem := WithoutFallback(config, config.Resolve(http.MethodGet, path, query)); got != want || problem != nil {
			t.Errorf("%s: got %q, %v, want %q", request, got, problem, want)
		}
	}
}

var badOrder = &site.Problem{Name: "bad-order", Status: 400, Detail: "The order must be rank, name or a/b.", CacheControl: "public, max-age=60"}

// MadeUp are invented parameters, one of every kind.
var MadeUp = map[site.Param]site.ParamRule{
	"about": {Kind: site.ParamText, About: "made-up text", Problem: site.Params()["term"].Problem, Most: 20},
	"order": {Kind: site.ParamChoice, About: "made-up choice", Problem: badOrder, Values: []string{"name", "a/b"}, Neutral: "rank"},
	"since": {Kind: site.ParamNumber, About: "made-up number", Problem: site.Params()[site.ParamLimit].Problem, Least: 3, Default: 7, Most: 5000},
	"whole": {Kind: site.ParamBool, About: "made-up truth", Problem: site.Params()["includeTags"].Problem, Values: []string{"true"}, Neutral: "false"},
}

// AddParam adds a parameter to the tables of site while a test runs, and to every route of the API.
// The test must not run in parallel with others.
func AddParam(t testing.TB, name site.Param) {
	t.Helper()
	site.Params()[name] = MadeUp[name]
	t.Cleanup(func() { delete(site.Params(), name) })
	for _, r := range (site.Config{}).Routes() {
		if before := r.Params; r.UnderAPI() {
			r.Params = append(slices.Clone(before), name)
			slices.Sort(r.Params)
			t.Cleanup(func() { r.Params = before })
		}
	}
}

// Adding a parameter to the tables of site is enough to have it described, to render every edge, and to resolve it in their script.
func TestNewParameter(t *testing.T) {
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range MadeUp {
		t.Run(string(name), func(t *testing.T) {
			AddParam(t, name)
			api, err := openapi.Describe(config)
			if err != nil {
				t.Fatal(err)
			}
			if got := bytes.Count(api, []byte(`"description":"`+rule.About)); got != 6 {
				t.Errorf("description of the API: got %d routes with the parameter, want 6", got)
			}
			for _, kind := range Kinds() {
				if _, err := Render(kind, Options{Config: config, Bucket: "http://bucket", Fallback: "http://fallback"}); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			random := rand.New(rand.NewPCG(1, 2))
			for _, r := range []*resolver{newResolver(t, config, true, false), newResolver(t, config, false, true)} {
				for range 500 {
					method, path, query := randomRequest(random, config)
					value := pick(random, "", "2", "7", "0008", "9999", "name", "a/b", "rank", "true", "false", "+FOX", strings.Repeat("y", 21))
					r.check(t, method, path, query+"&"+string(name)+"="+value)
				}
			}
		})
	}
}

// AtEdge is site.Config.Resolve from an edge's point of view: computed answers and refreshes are
// forwarded to the fallback. Edges run the equivalent table from TableOf; tests
// compare the two.
//
// forward is the path and query for the fallback in their normal form, which is also the
// cache key; "" means that the edge answers as the resolution says. An edge without a
// fallback never forwards: it answers as WithoutFallback says.
func AtEdge(c site.Config, method, path, rawQuery string) (r site.Resolution, forward string) {
	r = c.Resolve(method, path, rawQuery)
	switch {
	case r.Query != "":
		forward = r.Key.URLPath() + "?" + r.Query
	case r.Action == site.AnswerComputed:
		forward = r.Key.URLPath()
	}
	return r, forward
}

// WithoutFallback returns the answer of an edge without a fallback to a request that AtEdge would
// forward: a body with status 200, a problem, or if both are zero, the object Key.
//
// A later page, or a page of a search, is empty. The first page would show clients some entries
// twice, or entries that do not match. Other requests without an object are Unavailable, except for
// the bodies that clients cannot do without.
func WithoutFallback(c site.Config, r site.Resolution) (body string, problem *site.Problem) {
	if r.Action != site.AnswerComputed {
		return "", nil
	}
	selected := r.Ask.Offset > 0 || r.Ask.Term != "" || r.Ask.Tags != ""
	if empty, ok := emptyPages[r.Route.ID]; ok && (selected || r.Route.Computed) {
		return empty, nil
	}
	if selected || r.Route.Computed || c.Names == site.NamesLookup && r.Absent == site.NoSuchName {
		return "", site.Unavailable
	}
	return "", nil
}
