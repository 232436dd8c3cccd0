package purger_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/purger"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/tags"
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
		site.TopKey, site.ExplorerKey("start"), site.NetworkKey, site.ReportsKey, site.ReportKey("2026-01-31", "html"), site.ReportKey("2026-01-31", "json"),
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

// A snapshot has the rows of each table. meta.json is a table with one row.
type snapshot map[string][]map[string]any

func readSnapshot(t *testing.T, files fs.FS) snapshot {
	t.Helper()
	s := snapshot{}
	names, err := fs.Glob(files, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			packed, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if data, err = io.ReadAll(packed); err != nil {
				t.Fatal(err)
			}
		}
		table, _, _ := strings.Cut(name, ".")
		s[table] = []map[string]any{}
		for rows := json.NewDecoder(bufio.NewReader(bytes.NewReader(data))); ; {
			rows.UseNumber()
			var row map[string]any
			if err := rows.Decode(&row); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			s[table] = append(s[table], row)
		}
	}
	return s
}

func (s snapshot) files(t *testing.T) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for table, rows := range s {
		name := table + ".ndjson"
		if table == "meta" {
			name = "meta.json"
		}
		var text bytes.Buffer
		for _, row := range rows {
			if err := json.NewEncoder(&text).Encode(row); err != nil {
				t.Fatal(err)
			}
		}
		files[name] = &fstest.MapFile{Data: text.Bytes()}
	}
	return files
}

// changes are ways in which a snapshot may differ from the one before. Each returns false if it
// found nothing to change.
var changes = map[string]func(r *rand.Rand, s snapshot) bool{
	"a record less": func(r *rand.Rand, s snapshot) bool { return s.drop(r, "records") },
	"a record more": func(r *rand.Rand, s snapshot) bool {
		row := maps.Clone(s.one(r, "records"))
		if len(row) > 0 {
			row["data"] = s.one(r, "records")["data"]
			s["records"] = slices.Insert(s["records"], r.IntN(len(s["records"])), row)
		}
		return len(row) > 0
	},
	"another account followed": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "records", "data", fmt.Sprintf("0x%040x", 0x900000+r.IntN(3)))
	},
	"tags":   func(r *rand.Rand, s snapshot) bool { return s.set(r, "records", "tags", s.one(r, "records")["tags"]) },
	"a mute": func(r *rand.Rand, s snapshot) bool { return s.set(r, "records", "tags", []string{"mute"}) },
	"the time of a record": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "records", "added", fmt.Sprintf("20%02d-02-03T04:05:06Z", 10+r.IntN(30)))
	},
	"the order of records": func(r *rand.Rand, s snapshot) bool {
		r.Shuffle(len(s["records"]), func(i, j int) { s["records"][i], s["records"][j] = s["records"][j], s["records"][i] })
		return true
	},
	"a list less": func(r *rand.Rand, s snapshot) bool { return s.drop(r, "lists") },
	"a list that is lent": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "lists", "user", s.one(r, "lists")["owner"])
	},
	"a primary list": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "accounts", "primary_list", s.one(r, "lists")["token_id"])
	},
	"no primary list": func(r *rand.Rand, s snapshot) bool { return s.set(r, "accounts", "primary_list", nil) },
	"an account less": func(r *rand.Rand, s snapshot) bool { return s.drop(r, "accounts") },
	"a name": func(r *rand.Rand, s snapshot) bool {
		return s.setProfile(r, "name", []string{"new.eth", "alice.eth", "кот.eth", ""}[r.IntN(4)])
	},
	"an avatar":    func(r *rand.Rand, s snapshot) bool { return s.setProfile(r, "avatar", "https://img.example/new") },
	"a header":     func(r *rand.Rand, s snapshot) bool { return s.setProfile(r, "header", "https://img.example/new") },
	"a text":       func(r *rand.Rand, s snapshot) bool { return s.setProfile(r, "records", map[string]any{"new": "text"}) },
	"a fresh name": func(r *rand.Rand, s snapshot) bool { return s.setProfile(r, "fresh", 1800000000000) },
	"a badge": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "badges", "owner", fmt.Sprintf("0x%040x", 0x1000))
	},
	"an event": func(r *rand.Rand, s snapshot) bool { return s.drop(r, "events") },
	"a recommendation": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "recommended", "class", "new")
	},
	"a recommendation less": func(r *rand.Rand, s snapshot) bool { return s.drop(r, "recommended") },
	"a later time":          func(r *rand.Rand, s snapshot) bool { return s.set(r, "meta", "as_of", "2027-01-01T00:00:00Z") },
	"a count":               func(r *rand.Rand, s snapshot) bool { return s.set(r, "meta", "list_ops", 123456) },
}

// one returns a row of a table, or an empty row.
func (s snapshot) one(r *rand.Rand, table string) map[string]any {
	if len(s[table]) == 0 {
		return map[string]any{}
	}
	return s[table][r.IntN(len(s[table]))]
}

func (s snapshot) drop(r *rand.Rand, table string) bool {
	if len(s[table]) == 0 {
		return false
	}
	i := r.IntN(len(s[table]))
	s[table] = slices.Delete(s[table], i, i+1)
	return true
}

func (s snapshot) set(r *rand.Rand, table, member string, value any) bool {
	s.one(r, table)[member] = value
	return len(s[table]) > 0
}

func (s snapshot) setProfile(r *rand.Rand, member string, value any) bool {
	row := s.one(r, "accounts")
	profile, ok := row["ens"].(map[string]any)
	if !ok {
		profile = map[string]any{}
	}
	profile[member], row["ens"] = value, profile
	return len(s["accounts"]) > 0
}

// settings are the ways in which its operator may change a site, on which computed answers depend.
var settings = map[string]func(*site.Config){
	"where profiles are":        func(c *site.Config) { c.ProfileURL = "https://people.example/{address}" },
	"the limit of leaderboards": func(c *site.Config) { c.LeaderboardMax = 20 },
	"the name of badges":        func(c *site.Config) { c.BadgesField = "tokens" },
	"an explorer":               func(c *site.Config) { c.Explorer = !c.Explorer },
	"pages":                     func(c *site.Config) { c.Pages, c.PublicURL = true, "https://graph.example" },
}

// An edition is one of two sites, and its wanted answers.
type edition struct {
	graph *naive.Graph
	site  memsite.Site
}

func newEdition(t *testing.T, s snapshot, c site.Config) edition {
	t.Helper()
	files := s.files(t)
	graph, err := naive.Load(files, naive.Config{BadgesField: c.BadgesField, LeaderboardMax: c.LeaderboardMax, ProfileURL: c.ProfileURL})
	if err != nil {
		t.Fatal(err)
	}
	memory, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: files}, generator.Options{Config: c, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := memsite.Read(memory)
	if err != nil {
		t.Fatal(err)
	}
	return edition{graph, objects}
}

// changedKeys returns the keys that a publish of one site over the other puts and deletes.
func changedKeys(before, after memsite.Site) (keys []site.Key) {
	for key, body := range after {
		if was, ok := before[key]; key != site.RootKey && (!ok || was != body) {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// A forgotten describes which URLs a purge covers.
type forgotten struct {
	purger.Purge
	each []*regexp.Regexp
}

func forget(p purger.Purge) forgotten {
	f := forgotten{Purge: p}
	for _, pattern := range p.Each {
		f.each = append(f.each, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, "[^/]+")+"$"))
	}
	return f
}

func (f forgotten) covers(url string) bool {
	path, _, _ := strings.Cut(url, "?")
	return f.All || slices.Contains(f.Exact, url) || slices.Contains(f.Wide, path) ||
		slices.ContainsFunc(f.Wide, func(w string) bool { return strings.HasSuffix(w, "/") && strings.HasPrefix(path, w) }) ||
		slices.ContainsFunc(f.each, func(e *regexp.Regexp) bool { return e.MatchString(path) })
}

// TestEveryAnswerThatChangedIsPurged changes random graphs or the settings of their sites, and compares the answers before and
// after with the purge of the objects that changed.
func TestEveryAnswerThatChangedIsPurged(t *testing.T) {
	t.Parallel()
	names := slices.Concat(slices.Sorted(maps.Keys(changes)), slices.Sorted(maps.Keys(settings)))
	different := map[string]int{}
	rounds, most := servers.Rounds(1, 2)*len(names), servers.Rounds(100, 500)
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := site.Config{API: site.APIEFP}
		if r.IntN(3) == 0 {
			c.Names = site.NamesLookup
		}
		c, err := c.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		s := readSnapshot(t, naive.Random(uint64(r.IntN(servers.Rounds(2, 40)))))
		before := newEdition(t, s, c)
		change, next := names[int(seed)%len(names)], c
		set, isSetting := settings[change]
		if isSetting {
			set(&next)
		} else if !changes[change](r, s) {
			continue
		}
		after := newEdition(t, s, next)
		keys := changedKeys(before.site, after.site)
		purge := forget(purger.URLs(c, next, keys))
		if purge.All != isSetting {
			t.Errorf("seed %d, %s: purges everything: got %v, want that of a changed setting only", seed, change, purge.All)
		}
		tagged := c
		tagged.Tags = "fastly"
		few, all := purger.Tags(tagged, keys, 20+r.IntN(60)), purger.Tags(tagged, keys, 10_000)
		requests := append(naive.Requests(r, before.graph, most), naive.Requests(r, after.graph, most)...)
		for _, request := range requests {
			_, _, was := before.graph.Answer(request.Method, request.Path, request.RawQuery, request.Body)
			_, _, is := after.graph.Answer(request.Method, request.Path, request.RawQuery, request.Body)
			if request.Method != "GET" || bytes.Equal(was, is) {
				continue
			}
			resolution := c.Resolve(request.Method, request.Path, request.RawQuery)
			if resolution.Route == nil || resolution.Key == "" {
				t.Errorf("seed %d, %s, %s: got no route, want one whose answer changed", seed, change, request)
				continue
			}
			url := resolution.Key.URLPath()
			if resolution.Query != "" {
				url += "?" + resolution.Query
			}
			different[resolution.Route.Pattern]++
			for _, purged := range [][]string{few, all} {
				has := tags.Of(tagged, resolution.Route, resolution.Key)
				if !isSetting && purged != nil && !slices.ContainsFunc(has, func(tag string) bool { return slices.Contains(purged, tag) }) {
					t.Errorf("seed %d, %s: the changed answer %s has the tags %q, none of which is purged: %q", seed, change, url, has, purged)
				}
			}
			if !purge.covers(url) {
				t.Errorf("seed %d, %s: %s is not purged, but its answer changed.\nbefore %.300s\nafter  %.300s\nobjects %.600q", seed, change, url, was, is, keys)
				break
			}
		}
	}
	if len(different) < servers.Rounds(20, 40) {
		t.Errorf("routes with answers that changed: got %d, want nearly all: %v", len(different), different)
	}
}
