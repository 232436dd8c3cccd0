package edge

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// Without a fallback an edge never gives the first page for another one.
func TestWithoutFallback(t *testing.T) {
	const none, following, recommended = "", `{"following":[]}`, `{"recommended":[]}`
	object, unavailable := (*site.Problem)(nil), site.Unavailable
	for _, c := range []struct {
		path        string
		body        string
		problem     *site.Problem
		lookup      string // body under NamesLookup
		lookProblem *site.Problem
	}{
		{"users/alice.eth/following?limit=20&tags=&sort=followers", none, object, none, unavailable},
		{"users/alice.eth/following?offset=20&sort=followers", following, nil, following, nil},
		{"users/alice.eth/following?tags=a", following, nil, following, nil},
		{"users/alice.eth/followers?offset=20", `{"followers":[]}`, nil, `{"followers":[]}`, nil},
		{"lists/1/searchFollowing?term=x", following, nil, following, nil},
		{"lists/1/searchFollowing?limit=5", none, object, none, object},
		{"lists/1/records?includeTags=false", none, object, none, object},
		{"lists/1/details?cache=fresh", none, object, none, object},
		{"lists/1/allFollowing", none, unavailable, none, unavailable},
		{"lists/1/recommended/details", recommended, nil, recommended, nil},
		{"leaderboard/ranked?sort=followers", none, object, none, object},
		{"leaderboard/ranked?offset=50", none, unavailable, none, unavailable},
		{"leaderboard/search?term=fox", none, unavailable, none, unavailable},
		{"discover?offset=10", `{"latestFollows":[]}`, nil, `{"latestFollows":[]}`, nil},
	} {
		for names, want := range map[string]struct {
			body    string
			problem *site.Problem
		}{site.NamesCopies: {c.body, c.problem}, site.NamesLookup: {c.lookup, c.lookProblem}} {
			config := efpConfig(t, names)
			path, query, _ := strings.Cut("/api/v1/"+c.path, "?")
			body, problem := WithoutFallback(config, config.Resolve(http.MethodGet, path, query))
			if body != want.body || problem != want.problem {
				t.Errorf("%s with %s: got %q, %v, want %q, %v", c.path, names, body, problem, want.body, want.problem)
			}
		}
	}
}

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
