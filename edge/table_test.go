package edge

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// A forwarded request means the same to the fallback as the original one, and has one
// normal form.
func TestForwardIsTheSameRequest(t *testing.T) {
	random := newRandom()
	for _, c := range configs(t) {
		forwarded := map[string]site.Resolution{}
		for range 20_000 {
			path := pick(random, []string{"/lists/1/records", "/lists/42/details", "/lists/8/searchFollowing", "/users/ALICE.eth/searchFollowing", "/users/caf%C3%89!'/searchFollowing",
				"/lists/7/followers", "/users/a.eth/B.eth/buttonState", "/users/a.eth/commonFollowers", "/leaderboard/ranked", "/leaderboard/search"}...)
			var query []string
			for range random.IntN(4) {
				query = append(query, pick(random, []string{"limit", "offset", "term", "includeTags", "cache", "x", "sort", "direction", "tags", "include", "leader"}...)+"="+
					pick(random, []string{"", "5", "05", "10", "200", "0", "true", "false", "fresh", "fox", "FOX+", "%C3%89t%C3%A9", "e%CC%81t%C3%A9", "%FF%26%2B", "%25", "ens", "a,ens", "ASC", "Followers", "blocked", ",top8,,x"}...))
			}
			r, forward := AtEdge(c, "GET", "/"+c.BasePath+path, strings.Join(query, "&"))
			equal(t, "the resolution at an edge", r, c.Resolve("GET", "/"+c.BasePath+path, strings.Join(query, "&")))
			equal(t, "whether it is forwarded", forward != "", r.Action == site.AnswerWithoutTags || r.Action == site.AnswerSearch || r.Action == site.AnswerComputed || r.Fresh)
			if forward == "" {
				continue
			}
			forwardPath, forwardQuery, _ := strings.Cut(forward, "?")
			if again := c.Resolve("GET", forwardPath, forwardQuery); !reflect.DeepEqual(again, r) {
				t.Fatalf("%s?%s, forwarded as %s: got %+v, want %+v", path, query, forward, again, r)
			}
			_, again := AtEdge(c, "GET", forwardPath, forwardQuery)
			equal(t, "the form of a normal form", again, forward)
			forwarded[forward] = r
		}
		seen := map[string]string{}
		for forward, r := range forwarded {
			id := fmt.Sprintf("%+v", r)
			if seen[id] != "" {
				t.Errorf("cache keys: got two, %s and %s, for one request", seen[id], forward)
			}
			seen[id] = forward
		}
	}
}

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

// Only objects of a site can be requested at an edge, however a path is spelled.
func TestEdgeHidesWhatIsNoObject(t *testing.T) {
	c := defaultConfig(t)
	for _, path := range []string{"/_lock", "/_publishing", "/_publishing.tar", "/_site/../_lock", "//_lock", "/api/v1/../../_lock"} {
		if a, _ := AtEdge(c, http.MethodGet, path, ""); a.Problem != site.NoSuchRoute {
			t.Errorf("%s: got %+v, want a 404", path, a)
		}
	}
}

// The bodies of an edge are the objects under _errors/.
func TestEdgeProblemsAreObjects(t *testing.T) {
	problems := TableOf(defaultConfig(t)).Problems
	equal(t, "problems", len(problems), len(site.Config{}.Problems()))
	for _, p := range (site.Config{}).Problems() {
		equal(t, p.Name, problems[p.Name].Body, string(p.Body()))
	}
}

// configs returns the default configuration and some with other base paths and APIs.
func configs(t testing.TB) []site.Config {
	t.Helper()
	all := []site.Config{defaultConfig(t), efpConfig(t, site.NamesCopies), efpConfig(t, site.NamesLookup)}
	for _, base := range []string{"x", "a/b/c"} {
		all = append(all, withDefaults(t, site.Config{BasePath: base}))
	}
	return append(all, withExplorer(all[3]), withExplorer(all[1]), withDefaults(t, site.AllFeatures()))
}

func defaultConfig(t testing.TB) site.Config { return withDefaults(t, site.Config{}) }

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

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
