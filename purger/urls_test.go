package purger_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/purger"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
)

func config(t *testing.T) site.Config {
	t.Helper()
	c, err := site.Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Each changed object is purged under every URL that may show it.
func TestURLs(t *testing.T) {
	const users = "/api/v1/users/"
	boards := []string{"/_variants/leaderboard/followers/", "/api/v1/leaderboard/followers"}
	for _, c := range []struct {
		name        string
		keys        []site.Key
		exact, wide []string // in addition to the root
	}{
		{"nothing but the root", nil, nil, nil},
		{"leaderboard", []site.Key{"api/v1/leaderboard/followers"}, nil, boards},
		{"leaderboard with a limit", []site.Key{"_variants/leaderboard/followers/limit=7"}, nil, boards},
		{"all limits are as one", []site.Key{"_variants/leaderboard/followers/limit=7", "_variants/leaderboard/followers/limit=100"}, nil, boards},
		{"records", []site.Key{"api/v1/lists/12/records"}, []string{"/api/v1/lists/12/records", "/api/v1/lists/12/records?includeTags=false"}, nil},
		{"details and badges", []site.Key{"api/v1/lists/12/details", "api/v1/lists/12/badges"}, []string{"/api/v1/lists/12/badges", "/api/v1/lists/12/details"}, nil},
		{"search of a list", []site.Key{"api/v1/lists/12/searchFollowing"}, nil, []string{"/api/v1/lists/12/searchFollowing"}},
		{"search of an address", []site.Key{"api/v1/users/0x00000000000000000000000000000000000000aa/searchFollowing"}, nil,
			[]string{"/api/v1/users/0x00000000000000000000000000000000000000aa/searchFollowing"}},
		{"search of a name, as edges and as browsers write it", []site.Key{"api/v1/users/bub&o'n/searchFollowing"}, nil,
			[]string{"/api/v1/users/bub%26o%27n/searchFollowing", "/api/v1/users/bub&o'n/searchFollowing"}},
		{"search of a name in letters that edges keep as they come", []site.Key{"api/v1/users/büb/searchFollowing"}, nil, []string{users}},
		// The first page and the default object do not change; later pages and searches do.
		{"a later shard", []site.Key{"_search/lists/12/3"}, []string{"/_search/lists/12/3"}, []string{"/api/v1/lists/12/searchFollowing", users}},
		{"a bucket of users", []site.Key{"_search/users/0f"}, []string{"/_search/users/0f"}, []string{users}},
		{"users are among all users", []site.Key{"_search/users/0f", "api/v1/users/bob/searchFollowing"}, []string{"/_search/users/0f"}, []string{users}},
		{"a shard of the manifest", []site.Key{"_manifest/a"}, []string{"/_manifest/a"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := purger.URLs(config(t), config(t), c.keys)
			want := append([]string{"/_site"}, c.exact...)
			slices.Sort(want)
			if got.All || !slices.Equal(got.Exact, want) || !slices.Equal(got.Wide, c.wide) {
				t.Errorf("purge: got %+v, want %q and %q", got, want, c.wide)
			}
		})
	}
}

// Under the API efp, most answers are computed. An object that names a user or a list purges the
// computed answers about that user or list. Other objects purge the computed answers about
// everybody.
func TestURLsOfTheWholeAPI(t *testing.T) {
	const address = "0x00000000000000000000000000000000000000aa"
	const users, lists = "/api/v1/users/*/", "/api/v1/lists/*/"
	advice := []string{lists + "recommended", lists + "recommended/details", users + "recommended", users + "recommended/details"}
	withProfiles := []string{
		lists + "allFollowers", lists + "allFollowing", lists + "followers", lists + "following",
		users + "allFollowers", users + "allFollowing", users + "followers", users + "following", users + "mutuals",
	}
	listRows := []string{users + "allFollowing", users + "commonFollowers", users + "following", users + "searchFollowing"}
	c := config(t)
	c.API = site.APIEFP
	for _, test := range []struct {
		name, names       string
		keys              []site.Key
		exact, wide, each []string // in addition to the root
	}{
		{"badges and details", "", []site.Key{"api/v1/lists/7/badges", "api/v1/users/" + address + "/details", "api/v1/users/bob/badges"},
			[]string{"/api/v1/lists/7/badges", "/api/v1/users/" + address + "/details", "/api/v1/users/bob/badges"}, nil, nil},
		{"counts", "", []site.Key{"api/v1/users/bob/stats", "api/v1/lists/7/stats"},
			[]string{"/api/v1/lists/7/stats", "/api/v1/users/bob/simple-profile", "/api/v1/users/bob/stats"}, nil, nil},
		{"counts, where names are looked up", site.NamesLookup, []site.Key{"api/v1/users/" + address + "/stats"}, nil, nil, []string{users + "simple-profile", users + "stats"}},
		{"badges of a name beyond ASCII", "", []site.Key{"api/v1/users/büb/badges"}, nil, nil, []string{users + "badges"}},
		{"a name in two spellings", "", []site.Key{"api/v1/users/bub&o'n/tags"}, []string{"/api/v1/users/bub%26o%27n/tags", "/api/v1/users/bub&o'n/tags"}, nil, nil},
		{"first followers", "", []site.Key{"api/v1/users/bob/followers"}, nil, []string{"/api/v1/users/bob/followers"}, nil},
		{"a profile, which any page may include", "", []site.Key{"api/v1/users/bob/account"},
			[]string{"/api/v1/users/bob/account", "/api/v1/users/bob/ens", "/api/v1/users/bob/ens/avatar", "/api/v1/users/bob/qr", "/api/v1/users/bob/simple-profile"}, nil, withProfiles},
		{"a shard of a list", "", []site.Key{"_search/lists/12/3"}, []string{"/_search/lists/12/3"},
			[]string{"/api/v1/lists/12/allFollowing", "/api/v1/lists/12/following", "/api/v1/lists/12/searchFollowing"}, listRows},
		{"a bucket of users, where names are looked up", site.NamesLookup, []site.Key{"_search/users/0f", "api/v1/users/" + address + "/badges"},
			[]string{"/_search/users/0f"}, []string{"/api/v1/users/"}, []string{
				lists + "*/buttonState", lists + "*/followerState", lists + "allFollowers", lists + "allFollowing", lists + "followers", lists + "following", lists + "latestFollowers", lists + "searchFollowers",
			}},
		{"recommended accounts", "", []site.Key{"_search/recommended/0"}, []string{"/_search/recommended/0"}, nil, advice},
		{"ranked accounts", "", []site.Key{"_search/ranked/top8/0"}, []string{"/_search/ranked/top8/0"},
			[]string{"/api/v1/leaderboard/all", "/api/v1/leaderboard/ranked", "/api/v1/leaderboard/search"}, nil},
		{"a board", "", []site.Key{"_variants/leaderboard/mutes/limit=3"}, nil, []string{"/_variants/leaderboard/mutes/", "/api/v1/leaderboard/mutes"}, nil},
		{"discover", "", []site.Key{"_search/discover"}, []string{"/_search/discover"}, []string{"/api/v1/discover"}, nil},
		{"badges of unknown addresses", "", []site.Key{"_unknown/badges"}, []string{"/_unknown/badges"}, nil, []string{users + "badges"}},
		{"the explorer", "", []site.Key{"index.html", "_explore/index.html", "_explore/app-ABCD1234.js", "_explore/top"},
			[]string{"/_explore/app-ABCD1234.js", "/_explore/index.html", "/_explore/top", "/index.html"}, nil, nil},
		{"pages", "", []site.Key{page.Key("a.eth"), page.BadgeKey("a.eth"), page.SitemapKey},
			[]string{"/_badge/a.eth.svg", "/sitemap.xml", "/u/a.eth", "/u/a.eth/", "/u/a.eth/index.html"}, nil, nil},
		{"the description and the library", "", []site.Key{"openapi.json", "_client/shim.js"}, []string{"/_client/shim.js", "/openapi.json"}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.Names, c.Explorer, c.Pages = test.names, true, true
			got := purger.URLs(c, c, test.keys)
			want := append([]string{"/_site"}, test.exact...)
			slices.Sort(want)
			if got.All || !slices.Equal(got.Exact, want) || !slices.Equal(got.Wide, test.wide) || !slices.Equal(got.Each, test.each) {
				t.Errorf("purge: got %+v\nwant %q\n%q\n%q", got, want, test.wide, test.each)
			}
		})
	}
}

// Objects that may appear under any URL, and keys of another base path, purge
// everything.
func TestURLsOfWhatAnyURLShows(t *testing.T) {
	for _, key := range []site.Key{"_errors/no-such-list", "v2/lists/12/records", "elsewhere"} {
		if got := purger.URLs(config(t), config(t), []site.Key{"api/v1/lists/12/records", key}); !got.All {
			t.Errorf("%s: got %+v, want everything", key, got)
		}
	}
}

// Every route of a site has URLs: none is forgotten here.
func TestURLsOfEveryRoute(t *testing.T) {
	c, seen := config(t), map[*site.Route]bool{site.RouteBy(routes.Error): true, site.RouteBy(routes.Root): true}
	c.Explorer = true
	for _, key := range []site.Key{
		c.LeaderboardKey(site.Followers), c.ListKey("1", site.Records), c.ListKey("1", site.Details), c.ListKey("1", site.Badges),
		c.ListKey("1", site.SearchFollowing), c.UserKey("bob"), site.LeaderboardLimitKey(site.Following, 3), site.SearchShardKey("1", 0),
		site.UserBucketKey("a"), site.ManifestKey("a"), site.DeltaKey("a"), site.Key("_snapshot/index/" + strings.Repeat("0a", 32)), site.Key("_snapshot/" + strings.Repeat("0a", 32)),
		site.RefreshKey(site.Details, "1"), site.RefreshKey(site.Badges, "1"), site.RefreshCopyKey("a"),
		site.NoteKey, site.NextPrefix + site.NoteKey, site.NextKey(7, site.RootKey), site.NextKey(7, site.ManifestKey("a")), site.NextKey(7, site.DeltaKey("a")),
		site.IndexKey, site.ExplorerPageKey, site.ExplorerKey("sw.js"), site.ExplorerKey("app-ABCD1234.js"), site.ExplorerKey("app-ABCD1234.css"),
		site.TopKey, site.ExplorerKey("start"), site.NetworkKey, site.ReportsKey, site.ReportKey("2026-01-31", site.ReportPage), site.ReportKey("2026-01-31", site.ReportData),
	} {
		if got := purger.URLs(c, c, []site.Key{key}); got.All || len(got.Exact)+len(got.Wide) < 2 {
			t.Errorf("%s: got %+v, want URLs", key, got)
		}
		if route, ok := c.RouteOf(key); ok {
			seen[route] = true
		}
	}
	for _, route := range c.Routes() {
		if !seen[route] {
			t.Errorf("%s: got no key of this route, want one", route.Pattern)
		}
	}
}

// Tags name the lists and users of changed objects, and the groups of answers computed from those
// objects for everybody.
func TestTags(t *testing.T) {
	const address = "0x00000000000000000000000000000000000000aa"
	always := []string{"fp-absent", "fp-site"}
	listRows := []string{"fp-users-allfollowing", "fp-users-commonfollowers", "fp-users-following", "fp-users-searchfollowing"}
	for _, c := range []struct {
		name, api, names string
		keys             []site.Key
		most             int
		want             []string // in addition to always
	}{
		{"nothing", "", "", nil, 1000, nil},
		{"a list", "", "", []site.Key{"api/v1/lists/12/details", "api/v1/lists/12/records"}, 1000, []string{"fp-list-12"}},
		{"boards", "", "", []site.Key{"_variants/leaderboard/followers/limit=7", "api/v1/leaderboard/following"}, 1000, []string{"fp-boards"}},
		{"a shard", "", "", []site.Key{"_search/lists/12/3"}, 1000, []string{"fp-list-12", "fp-users-searchfollowing"}},
		{"a bucket", "", "", []site.Key{"_search/users/0f"}, 1000, []string{"fp-object--e96f5a12283f7a55", "fp-users-searchfollowing"}},
		{"shards of the manifest", "", "", []site.Key{"_manifest/0", "_manifest/a"}, 1000, []string{"fp-manifest"}},
		{"many ranks, few records", "", "", []site.Key{"api/v1/lists/1/details", "api/v1/lists/2/details", "api/v1/lists/3/details", "api/v1/lists/4/details", "api/v1/lists/4/records"}, 5,
			[]string{"fp-list-4", "fp-ranks"}},
		{"too many for that", "", "", []site.Key{"api/v1/lists/1/details", "api/v1/lists/2/records"}, 2, nil},
		{"an error", "", "", []site.Key{"_errors/no-such-list"}, 1000, nil},
		{"counts of a user", "efp", "", []site.Key{"api/v1/users/bob/stats"}, 1000, []string{"fp-user-bob"}},
		{"lists of a user", "efp", "", []site.Key{"api/v1/users/" + address + "/lists"}, 1000, []string{"fp-user-" + address}},
		{"an unknown user", "efp", "", []site.Key{"_unknown/stats"}, 1000, []string{"fp-object--d7ca03189102b83a", "fp-users-stats", "fp-users-simple-profile"}},
		{"counts of a user that names mean", "efp", "lookup", []site.Key{"api/v1/users/" + address + "/stats"}, 1000,
			[]string{"fp-names", "fp-user-" + address, "fp-users-simple-profile"}},
		{"what names mean", "efp", "lookup", []site.Key{"_search/users/0f"}, 1000, nil},
		{"a shard of a list", "efp", "", []site.Key{"_search/lists/7/0"}, 1000, append([]string{"fp-list-7"}, listRows...)},
		{"a bucket of lists", "efp", "", []site.Key{"_search/tokens/0f"}, 1000,
			append([]string{"fp-object--c2a67f42123bae72", "fp-lists-allfollowing", "fp-lists-following", "fp-lists-searchfollowing"}, listRows...)},
	} {
		config := config(t)
		config.API, config.Names, config.Tags = c.api, c.names, "fastly"
		got := purger.Tags(config, c.keys, c.most)
		switch c.name {
		case "too many for that", "an error":
			if got != nil {
				t.Errorf("%s: got %q, want none", c.name, got)
			}
			continue
		case "what names mean":
			if !slices.Contains(got, "fp-names") {
				t.Errorf("%s: got %q, want all names", c.name, got)
			}
			continue
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(append(c.want, always...))); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
		config.Tags = ""
		if got := purger.Tags(config, c.keys, c.most); got != nil {
			t.Errorf("%s, without tags: got %q, want none", c.name, got)
		}
	}
}
