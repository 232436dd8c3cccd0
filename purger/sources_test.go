package purger

import (
	"reflect"
	"slices"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

func TestFolders(t *testing.T) {
	c := site.Config{BasePath: "a/b"}
	for id, want := range map[routes.ID]string{
		routes.UserSearch: "/a/b/users/", routes.Records: "/a/b/lists/", routes.Leaderboard: "/a/b/leaderboard/",
		routes.LeaderboardLimit: "/_variants/leaderboard/", routes.Manifest: "/_manifest/", routes.Root: "/",
	} {
		if got := routeFolder(c, site.RouteBy(id)); got != want {
			t.Errorf("folder of %s: got %s, want %s", site.RouteBy(id).Pattern, got, want)
		}
	}
	for path, want := range map[string]string{
		"/a/b/lists/1/records": "/a/b/lists/", "/a/b/users/": "/a/b/users/", "/a/b/leaderboard/followers": "/a/b/leaderboard/",
		"/_variants/leaderboard/followers/": "/_variants/leaderboard/", "/_search/users/0": "/_search/users/", "/_site": "/_site", "/": "/",
	} {
		if got := endpointFolder(path); got != want {
			t.Errorf("folder of %s: got %s, want %s", path, got, want)
		}
	}
}

func TestQueries(t *testing.T) {
	for id, want := range map[routes.ID][]string{
		routes.Records: {"includeTags=false"}, routes.Details: {}, routes.Badges: {}, routes.Root: {},
		routes.Leaderboard: nil, routes.ListSearch: nil, routes.UserSearch: nil,
	} {
		got, ok := queriesOf(site.RouteBy(id))
		if ok != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("queries of %s: got %q, %t, want %q", site.RouteBy(id).Pattern, got, ok, want)
		}
	}
	two := site.Route{Params: []site.Param{site.ParamCache, "includeTags", "made"}}
	defer delete(site.Params(), "made")
	site.Params()["made"] = site.ParamRule{Kind: site.ParamChoice, Values: []string{"a b", "c"}}
	want := []string{"includeTags=false", "made=a%20b", "made=c", "includeTags=false&made=a%20b", "includeTags=false&made=c"}
	if got, ok := queriesOf(&two); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("queries of two parameters: got %q, %t, want %q", got, ok, want)
	}
}
