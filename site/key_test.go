package site_test

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// Every key that the constructors make belongs to the intended route.
func TestKeys(t *testing.T) {
	for _, c := range configs(t) {
		base := c.BasePath
		for _, tc := range []struct {
			key   site.Key
			want  string
			route routes.ID
		}{
			{c.LeaderboardKey(site.Followers), base + "/leaderboard/followers", routes.Leaderboard},
			{c.LeaderboardKey(site.Following), base + "/leaderboard/following", routes.Leaderboard},
			{c.ListKey("0", site.Records), base + "/lists/0/records", routes.Records},
			{c.ListKey("12", site.Details), base + "/lists/12/details", routes.Details},
			{c.ListKey("12", site.Badges), base + "/lists/12/badges", routes.Badges},
			{c.ListKey(largestTokenID, site.SearchFollowing), base + "/lists/" + largestTokenID + "/searchFollowing", routes.ListSearch},
			{c.UserKey(alice), base + "/users/" + alice + "/searchFollowing", routes.UserSearch},
			{c.UserKey("🦊fox.eth"), base + "/users/🦊fox.eth/searchFollowing", routes.UserSearch},
			{c.UserKey("searchfollowing"), base + "/users/searchfollowing/searchFollowing", routes.UserSearch},
			{site.LeaderboardLimitKey(site.Followers, 1), "_variants/leaderboard/followers/limit=1", routes.LeaderboardLimit},
			{site.LeaderboardLimitKey(site.Following, 100), "_variants/leaderboard/following/limit=100", routes.LeaderboardLimit},
			{site.SearchShardKey("12", 0), "_search/lists/12/0", routes.SearchShard},
			{site.SearchShardKey(largestTokenID, 99), "_search/lists/" + largestTokenID + "/99", routes.SearchShard},
			{site.UserBucketKey("0f"), "_search/users/0f", routes.UserBucket},
			{site.ManifestKey("beef"), "_manifest/beef", routes.Manifest},
			{site.NoSuchList.Key(), "_errors/no-such-list", routes.Error},
			{site.RootKey, "_site", routes.Root},
			{site.NoteKey, "_site.note", routes.Note},
			{site.NextPrefix + site.NoteKey, "_next/_site.note", routes.NextNote},
			{site.NextKey(7, site.RootKey), "_next/7/_site", routes.NextRoot},
			{site.NextKey(7, site.ManifestKey("beef")), "_next/7/_manifest/beef", routes.NextManifest},
			{site.NextKey(7, site.DeltaKey("be")), "_next/7/_manifest/delta/be", routes.NextDelta},
			{site.Key("_snapshot/index/" + anyDigest), "_snapshot/index/" + anyDigest, routes.KeptIndex},
			{site.Key("_snapshot/" + anyDigest), "_snapshot/" + anyDigest, routes.KeptPiece},
		} {
			equal(t, "key", string(tc.key), tc.want)
			checkKey(t, c, tc.key, tc.route)
		}
		for _, p := range (site.Config{}).Problems() {
			checkKey(t, c, p.Key(), routes.Error)
		}
		for digits := 1; digits <= 2; digits++ {
			for _, hash := range site.HashPrefixes(digits) {
				checkKey(t, c, site.ManifestKey(hash), routes.Manifest)
				checkKey(t, c, site.UserBucketKey(hash), routes.UserBucket)
			}
		}
		for _, board := range (site.Config{}).Boards() {
			for limit := 1; limit <= c.LeaderboardMax; limit++ {
				checkKey(t, c, site.LeaderboardLimitKey(board, limit), routes.LeaderboardLimit)
			}
		}
	}
}

// A site has the keys of the explorer only if its configuration includes it.
func TestKeysOfTheExplorer(t *testing.T) {
	for _, c := range configs(t) {
		with := withExplorer(c)
		for _, tc := range []struct {
			key   site.Key
			want  string
			route routes.ID
		}{
			{site.IndexKey, "index.html", routes.Index},
			{site.ExplorerKey("index.html"), "_explore/index.html", routes.Explorer},
			{site.ExplorerKey("sw.js"), "_explore/sw.js", routes.ExplorerWorker},
			{site.ExplorerKey("explorer-AB2DEF7H.js"), "_explore/explorer-AB2DEF7H.js", routes.ExplorerScript},
			{site.ExplorerKey("explorer-AB2DEF7H.css"), "_explore/explorer-AB2DEF7H.css", routes.ExplorerStyle},
			{site.TopKey, "_explore/top", routes.Top},
			{site.ExplorerKey("start"), "_explore/start", routes.Start},
			{site.NetworkKey, "_explore/network", routes.Network},
			{site.ReportsKey, "_reports/index", routes.Reports},
			{site.ReportKey("2026-01-31", "html"), "_reports/2026-01-31.html", routes.ReportPage},
			{site.ReportKey("2026-01-31", "json"), "_reports/2026-01-31.json", routes.ReportData},
		} {
			equal(t, "key", string(tc.key), tc.want)
			checkKey(t, with, tc.key, tc.route)
			equal(t, "kept "+tc.want, site.RouteBy(tc.route).Kept(), strings.HasPrefix(tc.want, "_reports/") || strings.HasPrefix(tc.want, "_next/") || tc.want == "_site.note")
			if route, ok := c.RouteOf(tc.key); ok && !c.Explorer {
				t.Errorf("%s without the explorer: got the route %s, want none", tc.key, route.Pattern)
			}
			first, _, _ := strings.Cut(tc.want, "/")
			if top := slices.Contains(c.TopLevel(), first); top != c.Explorer {
				t.Errorf("%s at the top of a site: got %v, want %v", first, top, c.Explorer)
			}
		}
	}
}

func checkKey(t *testing.T, c site.Config, key site.Key, want routes.ID) {
	t.Helper()
	route, ok := c.RouteOf(key)
	if !key.Valid() || !ok || route.ID != want {
		t.Errorf("key %s: got valid %v, route %+v, want that of %s", key, key.Valid(), route, site.RouteBy(want).Pattern)
	}
	equal(t, "GET "+string(key), c.Resolve("GET", escapedPath(key), "").Key, key)
}

func TestKeyValid(t *testing.T) {
	for key, want := range map[site.Key]bool{
		"a": true, "_site": true, "a/b": true, "a/.b": true, "a/..b": true, "a/b..": true, "...": true, " ": true, "é/🦊": true, `a\b`: true,
		"": false, "/": false, "/a": false, "a/": false, "a//b": false, ".": false, "..": false, "./a": false, "a/.": false, "a/./b": false,
		"../a": false, "a/..": false, "a/../b": false, "\x00": false, "a\x00b": false, "a/b\x00": false,
	} {
		equal(t, "valid "+string(key), key.Valid(), want)
	}
}

// The digests are those of sha256sum.
func TestHashPrefix(t *testing.T) {
	for text, digest := range map[string]string{
		"":          "e3b0c44298fc1c14",
		"abc":       "ba7816bf8f01cfea",
		"alice.eth": "c94d76bcf2f1134f",
		"_site":     "97a7725859d621de",
		"🦊fox.eth":  "be24562a6ce60534",
	} {
		for digits := 1; digits <= 4; digits++ {
			equal(t, "bucket of "+text, site.UserBucket(text, digits), digest[:digits])
			equal(t, "shard of "+text, site.ManifestShard(site.Key(text), digits), digest[:digits])
		}
	}
}

func TestHashDigits(t *testing.T) {
	for _, tc := range []struct{ n, size, want int }{
		{0, 4000, 1},
		{1, 4000, 1},
		{16 * 4000, 4000, 1},
		{16*4000 + 1, 4000, 2},
		{256 * 4000, 4000, 2},
		{256*4000 + 1, 4000, 3},
		{4096 * 4000, 4000, 3},
		{4096*4000 + 1, 4000, 4},
		{1<<31 - 1, 4000, 4}, // no more than that, however many there are
		{17, 1, 2},
	} {
		if got := site.HashDigits(tc.n, tc.size); got != tc.want {
			t.Errorf("HashDigits(%d, %d): got %d, want %d", tc.n, tc.size, got, tc.want)
		}
	}
	equal(t, "digits of 64,000 users", site.Config{}.BucketDigits(64_000), 1)
	equal(t, "digits of 64,001 users", site.Config{}.BucketDigits(64_001), 2)
	equal(t, "digits of 16,000 objects", site.ShardDigits(16_000), 1)
	equal(t, "digits of 16,001 objects", site.ShardDigits(16_001), 2)
}

func TestValidTokenID(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "1": true, "10": true, largestTokenID: true, strings.Repeat("9", 78): true,
		"": false, "00": false, "01": false, "-1": false, "+1": false, " 1": false, "1 ": false, "1.0": false, "1e3": false, "0x1": false,
		"1_000": false, "a": false, "1a": false, "1\x00": false, "１": false, "1/2": false, strings.Repeat("1", 79): false,
		"1:": false, "1/": false,
	} {
		if got := site.ValidTokenID(text); got != want {
			t.Errorf("ValidTokenID(%q): got %v, want %v", text, got, want)
		}
	}
}

func TestCompareTokenIDs(t *testing.T) {
	random := newRandom()
	ids := []string{"0", "1", "9", "10", "99", "100", "18446744073709551616", largestTokenID}
	for range 30 {
		id := new(big.Int).SetUint64(random.Uint64())
		ids = append(ids, id.Rsh(id, uint(random.IntN(64))).String())
	}
	for _, a := range ids {
		for _, b := range ids {
			x, _ := new(big.Int).SetString(a, 10)
			y, _ := new(big.Int).SetString(b, 10)
			if got := site.CompareTokenIDs(a, b); got != x.Cmp(y) {
				t.Errorf("CompareTokenIDs(%s, %s): got %d, want %d", a, b, got, x.Cmp(y))
			}
		}
	}
}

// Only keys of SearchShardKey can be parsed as such.
func TestParseSearchShardKey(t *testing.T) {
	if tokenID, n, ok := site.ParseSearchShardKey(site.SearchShardKey("12", 3)); tokenID != "12" || n != 3 || !ok {
		t.Errorf("got %q, %d, %v, want 12, 3", tokenID, n, ok)
	}
	for _, key := range []site.Key{"", "_search/lists/12", "_search/lists/12/03", "_search/lists/x/3", "_search/lists/12/3/4", "_search/users/12"} {
		if _, _, ok := site.ParseSearchShardKey(key); ok {
			t.Errorf("%q: got a search shard, want none", key)
		}
	}
}

func TestRefreshKeys(t *testing.T) {
	for _, object := range []site.ListObject{site.Details, site.Badges} {
		rest := strings.TrimPrefix(string(site.RefreshKey(object, "12")), string(site.RefreshPrefix))
		if got, tokenID, ok := site.ParseRefreshKey(site.Key(rest)); !ok || got != object || tokenID != "12" {
			t.Errorf("%s: got %s, %s, %v, want its parts", rest, got, tokenID, ok)
		}
	}
	for _, bad := range []string{"", "details", "details/", "details/01", "details/1/2", "records/1", "/details/1", "details/1 "} {
		if _, _, ok := site.ParseRefreshKey(site.Key(bad)); ok {
			t.Errorf("%q: got a key, want none", bad)
		}
	}
}

// Objects of lists are refreshed in their own place, or as copies of what another list shows; those of
// users and accounts are copies only.
func TestRefreshesOf(t *testing.T) {
	for _, c := range []struct {
		key       site.Key
		spec, efp []site.Key
	}{
		{"api/v1/lists/7/details", []site.Key{"_refresh/details/7"}, []site.Key{"_refresh/details/7", site.RefreshCopyKey("api/v1/lists/7/details")}},
		{"api/v1/lists/7/badges", []site.Key{"_refresh/badges/7"}, []site.Key{"_refresh/badges/7", site.RefreshCopyKey("api/v1/lists/7/badges")}},
		{"api/v1/lists/7/account", nil, []site.Key{site.RefreshCopyKey("api/v1/lists/7/account")}},
		{"api/v1/users/bob.eth/account", nil, []site.Key{site.RefreshCopyKey("api/v1/users/bob.eth/account")}},
		{"api/v1/users/bob.eth/badges", nil, []site.Key{site.RefreshCopyKey("api/v1/users/bob.eth/badges")}},
		{"api/v1/users/bob.eth/stats", nil, nil},
		{"api/v1/lists/7/records", nil, nil},
		{"api/v1/leaderboard/account", nil, nil},
		{"_unknown/account", nil, nil},
	} {
		for api, want := range map[string][]site.Key{site.APISpec: c.spec, site.APIEFP: c.efp} {
			config, err := site.Config{API: api}.WithDefaults()
			if err != nil {
				t.Fatal(err)
			}
			if got := config.RefreshesOf(c.key); !slices.Equal(got, want) {
				t.Errorf("%s, %s: got %q, want %q", api, c.key, got, want)
			}
		}
	}
}
