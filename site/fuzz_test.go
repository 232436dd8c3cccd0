package site_test

import (
	"strings"
	"testing"

	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/scan"
)

// Every request has an answer, and reaches only objects of the site.
func FuzzResolve(f *testing.F) {
	for _, request := range []string{
		"GET /", "GET /_site", "GET /_manifest/0f", "GET /_search/lists/1/0", "GET /_search/users/a", "GET /_errors/no-such-list",
		"GET /_variants/leaderboard/followers/limit=5", "GET /_refresh/details/1",
		"GET /api/v2/users/a.eth/b.eth/followerState", "POST /api/v2/lists/1/buttonStateBatch", "GET /api/v2/lists/1/followers?include=ens&tags=,a",
		"GET /api/v1/leaderboard/followers?limit=101", "HEAD /api/v1/leaderboard/following?limit=10", "POST /api/v1/leaderboard/following",
		"GET /api/v1/lists/%31/records?includeTags=false", "GET /api/v1/lists/..%2f1/badges?cache=fresh", "GET /api/v1/lists/1%00/details",
		"GET /api/v1/lists/8/searchFollowing?offset=995&limit=10", "GET /api/v1/lists/8/searchFollowing?term=e%CC%81te%CC%81&term=x",
		"GET /api/v1/lists/8/searchFollowing?term=%FF%E2%80%83", "GET /api/v1/lists/8/searchFollowing?term=+%25%",
		"GET /api/v1/users/" + aliceUpper + "/searchFollowing?limit=999999999999999999", "OPTIONS /api/v1/users/x/searchFollowing",
		"GET /api/v1/users/CAF%C3%89.eth/searchFollowing", "GET /api/v1/users/%E2%9D%A4%EF%B8%8F/searchFollowing?offset=3",
		"GET /api/v1/users/..%2F..%2Fetc%2Fpasswd/searchFollowing", "GET /api/v1/users/%2e%2e/searchFollowing", "GET /x/users/%00/searchFollowing",
		"GET /x/lists/0/details", "GET /a/b/c/users/%zz/searchFollowing", "GET //api/v1/../_site",
		"GET /index.html", "GET /_explore/app-ABCD1234.js", "GET /_explore/%61pp-ABCD1234.css?x", "GET /_reports/2026-01-02.html", "GET /_reports/%00.json",
	} {
		method, target, _ := strings.Cut(request, " ")
		path, query, _ := strings.Cut(target, "?")
		f.Add(method, path, query)
	}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		for _, c := range configs(t) {
			checkResolution(t, c, method, path, query, c.Resolve(method, path, query))
			checkRouteOf(t, c, site.Key(strings.TrimPrefix(path, "/")))
		}
	})
}

// checkRouteOf checks that a key with a route is valid, and that a request reaches it.
func checkRouteOf(t testing.TB, c site.Config, key site.Key) {
	t.Helper()
	route, ok := c.RouteOf(key)
	if !ok {
		return
	}
	method, query := "GET", ""
	if route.Post {
		method = "POST"
	}
	if route.ID == routes.Relationships {
		query = "tag=x&direction=in"
	}
	if r := c.Resolve(method, escapedPath(key), query); !key.Valid() || r.Key != key || r.Route != route {
		t.Errorf("key %q of route %s: got %+v, want a resolution to itself", key, route.Pattern, r)
	}
}

func FuzzNormalizeName(f *testing.F) {
	for _, text := range []string{
		"alice.eth", "CAFE\u0301.eth", "❤\uFE0F.eth", ".\uFE0F.", "a/b", "\u200Fאב", "\u212A\u2126\u0130", alice, aliceUpper, "a\x00",
		strings.Repeat("x", 255), "a" + strings.Repeat("\u0301\u0323", 20), "\u1100\u1161\u11A8", "\xFF",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkName(t, text) })
}

// Entries are split and matched by their bytes as if they were decoded.
func FuzzEntries(f *testing.F) {
	for i, text := range pieces {
		f.Add(text, pieces[(i+7)%len(pieces)]+text, text+text, text)
	}
	f.Fuzz(func(t *testing.T, name, tag, recordType, term string) {
		record := answers.Record{Version: 1, RecordType: "address", Data: alice, Tags: []string{tag, name}}
		entries := []answers.SearchEntry{
			{Record: record, ENS: answers.SearchProfile{Name: name, Avatar: tag}},
			{Record: record, ENS: answers.SearchProfile{Name: tag + name, Avatar: recordType}},
		}
		other := answers.Record{Version: 2, RecordType: recordType, Data: tag, Tags: []string{recordType}}
		checkEntries(t, encode(t, answers.FollowingPage{Following: entries}), entries)
		checkEntries(t, encode(t, answers.ListRecords{Records: []answers.Record{other, record}}), []answers.Record{other, record})
		checkWithoutTags(t, []answers.Record{record, other, record})
		checkMatcher(t, site.Fold(strings.ToValidUTF8(term, "\uFFFD")), entries)
	})
}

// Arbitrary bytes from a bucket are refused or decoded, and never cause a panic.
func FuzzParse(f *testing.F) {
	root := encodeRoot(f, testRoot(f))
	for _, body := range []string{
		"", "null", root, root[:len(root)/2], `{"shard":"0","objects":[{"key":"a","size":1,"md5":"900150983cd24fb0d6963f7d28e17f72"}]}`,
		`{"bucket":"0","users":{"alice.eth":"7"}}`, `{"records":[{"version":1,"record_type":"address","data":"0x","tags":[]}]}`,
		`{"list":"1","total":20,"shard":0,"shards":1,"shard_size":1000,"entries":[{"version":1,"data":"","ens":{"name":"\`,
		`{"list":"1","total":1,"shard":0,"shards":1,"shard_size":1000,"entries":[{"version":1,"record_type":"address","data":"0x00000000000000000000000000000000000000a1","tags":[],"ens":{"name":"FÖX.eth","avatar":""}}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if root, err := site.ParseRoot(body); err == nil {
			encodeRoot(t, root)
		}
		if m, err := site.ParseManifest("0", body); err == nil {
			if again, err := site.ParseManifest("0", m.Append(nil)); err != nil || len(site.Diff(m.Objects, again.Objects)) > 0 {
				t.Errorf("a manifest that was read, read again: got %v, want the same", err)
			}
		}
		if h, err := scan.ParseShardHeader(body); err == nil && (h.Shard < 0 || h.Shard >= h.Shards) {
			t.Errorf("a search shard: got %+v, want one within its list", h)
		}
		m := scan.NewMatcher("fox")
		for entry := range scan.Entries(body) {
			m.Match(entry)
		}
		checkIndex(t, body, []string{"fox", "0", "\xff"})
		scan.AppendWithoutTags(nil, body)
		scan.FindUser(body, "alice.eth")
	})
}
