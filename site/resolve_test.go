package site_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// describe formats a resolution as in the tables below:
//
//	KEY or PROBLEM                              the object KEY, or PROBLEM if there is none
//	KEY or empty                                the object KEY, or an empty search
//	fresh KEY or PROBLEM                        the same, to be refreshed first
//	untagged KEY or PROBLEM                     the records of KEY without their tags
//	search LIMIT+OFFSET "TERM" in KEY or …      a page of the search that begins with KEY
//	compute KEY?QUERY                           a computed answer; QUERY is in its normal form
//	STATUS PROBLEM                              the problem
//	preflight                                   the answer to OPTIONS
func describe(r site.Resolution) string {
	key := string(r.Key) + " or empty"
	if r.Absent != nil {
		key = string(r.Key) + " or " + r.Absent.Name
	}
	if r.Fresh {
		key = "fresh " + key
	}
	switch r.Action {
	case site.AnswerObject:
		return key
	case site.AnswerWithoutTags:
		return "untagged " + key
	case site.AnswerSearch:
		return fmt.Sprintf("search %d+%d %q in %s", r.Ask.Limit, r.Ask.Offset, r.Ask.Term, key)
	case site.AnswerComputed:
		return fmt.Sprintf("compute %s?%s", r.Key, r.Query)
	case site.AnswerPreflight:
		return "preflight"
	case site.AnswerProblem:
		return fmt.Sprintf("%d %s", r.Problem.Status, r.Problem.Name)
	}
	return fmt.Sprintf("action %d", r.Action)
}

// A resolveCase is a GET request, and the result of describe.
type resolveCase struct{ request, want string }

func testResolve(t *testing.T, c site.Config, cases []resolveCase) {
	t.Helper()
	for _, tc := range cases {
		path, query, _ := strings.Cut(tc.request, "?")
		r := c.Resolve("GET", path, query)
		if got := describe(r); got != tc.want {
			t.Errorf("GET %s\ngot  %s\nwant %s", tc.request, got, tc.want)
		}
		checkResolution(t, c, "GET", path, query, r)
	}
}

func TestResolveLeaderboards(t *testing.T) {
	const (
		followers = "api/v1/leaderboard/followers or no-such-route"
		following = "api/v1/leaderboard/following or no-such-route"
		variant   = "_variants/leaderboard/followers/limit="
		BadLimit  = "400 bad-limit"
	)
	testResolve(t, defaultConfig(t), []resolveCase{
		{"/api/v1/leaderboard/followers", followers},
		{"/api/v1/leaderboard/following", following},
		{"/api/v1/leaderboard/followers?", followers},
		{"/api/v1/leaderboard/followers?&&", followers},
		{"/api/v1/leaderboard/followers?limit=1", variant + "1 or no-such-route"},
		{"/api/v1/leaderboard/following?limit=99", "_variants/leaderboard/following/limit=99 or no-such-route"},
		{"/api/v1/leaderboard/followers?limit=010", followers}, // leading zeros are digits
		{"/api/v1/leaderboard/followers?limit=000000000000000007", variant + "7 or no-such-route"},

		// The default limit is the canonical object, a larger one than the maximum the maximum.
		{"/api/v1/leaderboard/followers?limit=10", followers},
		{"/api/v1/leaderboard/followers?limit=100", variant + "100 or no-such-route"},
		{"/api/v1/leaderboard/followers?limit=101", variant + "100 or no-such-route"},
		{"/api/v1/leaderboard/followers?limit=999999999999999999", variant + "100 or no-such-route"},

		// A limit is 1 to 18 digits and at least 1.
		{"/api/v1/leaderboard/followers?limit", BadLimit},
		{"/api/v1/leaderboard/followers?limit=", BadLimit},
		{"/api/v1/leaderboard/followers?limit=0", BadLimit},
		{"/api/v1/leaderboard/followers?limit=000", BadLimit},
		{"/api/v1/leaderboard/followers?limit=-1", BadLimit},
		{"/api/v1/leaderboard/followers?limit=+5", BadLimit}, // a space and 5
		{"/api/v1/leaderboard/followers?limit=%2B5", BadLimit},
		{"/api/v1/leaderboard/followers?limit=5%20", BadLimit},
		{"/api/v1/leaderboard/followers?limit=1.5", BadLimit},
		{"/api/v1/leaderboard/followers?limit=1e2", BadLimit},
		{"/api/v1/leaderboard/followers?limit=0x5", BadLimit},
		{"/api/v1/leaderboard/followers?limit=5_0", BadLimit},
		{"/api/v1/leaderboard/followers?limit=%D9%A5", BadLimit}, // Arabic-Indic five
		{"/api/v1/leaderboard/followers?limit=5%00", BadLimit},
		{"/api/v1/leaderboard/followers?limit=%35", variant + "5 or no-such-route"},
		{"/api/v1/leaderboard/followers?limit=5=5", BadLimit},
		{"/api/v1/leaderboard/followers?limit=5;limit=6", BadLimit},
		{"/api/v1/leaderboard/followers?limit=1000000000000000000", BadLimit},
		{"/api/v1/leaderboard/followers?limit=0000000000000000007", BadLimit},

		// Of a repeated parameter the first counts, good or bad.
		{"/api/v1/leaderboard/followers?limit=2&limit=5", variant + "2 or no-such-route"},
		{"/api/v1/leaderboard/followers?limit=2&limit=x", variant + "2 or no-such-route"},
		{"/api/v1/leaderboard/followers?limit=x&limit=2", BadLimit},
		{"/api/v1/leaderboard/followers?limit=&limit=2", BadLimit},

		// Names of parameters are decoded, and have one spelling.
		{"/api/v1/leaderboard/followers?%6Cimi%74=3", variant + "3 or no-such-route"},
		{"/api/v1/leaderboard/followers?Limit=3", followers},
		{"/api/v1/leaderboard/followers?+limit=3", followers},
		{"/api/v1/leaderboard/followers?=3", followers},

		// Parameters of other routes mean nothing here.
		{"/api/v1/leaderboard/followers?offset=x&term=y&includeTags=z&cache=fresh", followers},
		{"/api/v1/leaderboard/followers?utm_source=x&limit=3&%zz=%", variant + "3 or no-such-route"},

		{"/api/v1/leaderboard", "404 no-such-route"},
		{"/api/v1/leaderboard/", "404 no-such-route"},
		{"/api/v1/leaderboard/mutuals", "404 no-such-route"},
		{"/api/v1/leaderboard/Followers", "404 no-such-route"},
		{"/api/v1/leaderboard/followers/", "404 no-such-route"},
		{"/api/v1/leaderboard/followers/1", "404 no-such-route"},
		{"/api/v1/leaderboard/mutuals?limit=0", "404 no-such-route"},
	})
}

func TestResolveLists(t *testing.T) {
	testResolve(t, defaultConfig(t), []resolveCase{
		{"/api/v1/lists/1/records", "api/v1/lists/1/records or no-such-list"},
		{"/api/v1/lists/1/details", "api/v1/lists/1/details or no-such-list"},
		{"/api/v1/lists/1/badges", "api/v1/lists/1/badges or no-such-list"},
		{"/api/v1/lists/1/searchFollowing", "api/v1/lists/1/searchFollowing or no-such-list"},
		{"/api/v1/lists/0/records", "api/v1/lists/0/records or no-such-list"},
		{"/api/v1/lists/" + largestTokenID + "/records", "api/v1/lists/" + largestTokenID + "/records or no-such-list"},

		// includeTags belongs to records, is true or false, and is true by default.
		{"/api/v1/lists/1/records?includeTags=true", "api/v1/lists/1/records or no-such-list"},
		{"/api/v1/lists/1/records?includeTags=false", "untagged api/v1/lists/1/records or no-such-list"},
		{"/api/v1/lists/1/records?includeTags=fals%65", "untagged api/v1/lists/1/records or no-such-list"},
		{"/api/v1/lists/1/records?includeTags=false&includeTags=true", "untagged api/v1/lists/1/records or no-such-list"},
		{"/api/v1/lists/1/records?includeTags=true&includeTags=no", "api/v1/lists/1/records or no-such-list"},
		{"/api/v1/lists/1/records?includetags=false", "api/v1/lists/1/records or no-such-list"},
		{"/api/v1/lists/1/records?includeTags", "400 bad-include-tags"},
		{"/api/v1/lists/1/records?includeTags=", "400 bad-include-tags"},
		{"/api/v1/lists/1/records?includeTags=TRUE", "400 bad-include-tags"},
		{"/api/v1/lists/1/records?includeTags=1", "400 bad-include-tags"},
		{"/api/v1/lists/1/records?includeTags=true+", "400 bad-include-tags"},
		{"/api/v1/lists/1/details?includeTags=no", "api/v1/lists/1/details or no-such-list"},
		{"/api/v1/lists/1/records?limit=0&offset=x", "api/v1/lists/1/records or no-such-list"},

		// cache=fresh belongs to details and badges; other values are ignored.
		{"/api/v1/lists/1/details?cache=fresh", "fresh api/v1/lists/1/details or no-such-list"},
		{"/api/v1/lists/1/badges?cache=fresh", "fresh api/v1/lists/1/badges or no-such-list"},
		{"/api/v1/lists/1/badges?cache=%66resh&cache=old", "fresh api/v1/lists/1/badges or no-such-list"},
		{"/api/v1/lists/1/details?cache=old&cache=fresh", "api/v1/lists/1/details or no-such-list"},
		{"/api/v1/lists/1/details?cache=Fresh", "api/v1/lists/1/details or no-such-list"},
		{"/api/v1/lists/1/details?cache=", "api/v1/lists/1/details or no-such-list"},
		{"/api/v1/lists/1/details?cache", "api/v1/lists/1/details or no-such-list"},
		{"/api/v1/lists/1/records?cache=fresh", "api/v1/lists/1/records or no-such-list"},
		{"/api/v1/lists/1/searchFollowing?cache=fresh", "api/v1/lists/1/searchFollowing or no-such-list"},

		// The token_id is a canonical decimal.
		{"/api/v1/lists/%31/records", "api/v1/lists/1/records or no-such-list"},
		{"/api/v1/lists/01/records", "400 bad-token-id"},
		{"/api/v1/lists//records", "400 bad-token-id"},
		{"/api/v1/lists//details", "400 bad-token-id"},
		{"/api/v1/lists//searchFollowing?term=x", "400 bad-token-id"},
		{"/api/v1/lists/./records", "400 bad-token-id"},
		{"/api/v1/lists/../records", "400 bad-token-id"},
		{"/api/v1/lists/%2e%2e/records", "400 bad-token-id"},
		{"/api/v1/lists/..%2f1/records", "400 bad-token-id"},
		{"/api/v1/lists/1%2f2/records", "400 bad-token-id"},
		{"/api/v1/lists/1%00/records", "400 bad-token-id"},
		{"/api/v1/lists/%EF%BC%91/records", "400 bad-token-id"}, // a full-width 1
		{"/api/v1/lists/%zz/records", "400 bad-token-id"},
		{"/api/v1/lists/1%/records", "400 bad-token-id"},
		{"/api/v1/lists/" + strings.Repeat("1", 79) + "/records", "400 bad-token-id"},

		{"/api/v1/lists", "404 no-such-route"},
		{"/api/v1/lists/1", "404 no-such-route"},
		{"/api/v1/lists/1/", "404 no-such-route"},
		{"/api/v1/lists/1/nothing", "404 no-such-route"},
		{"/api/v1/lists/1/Records", "404 no-such-route"},
		{"/api/v1/lists/1/records/", "404 no-such-route"},
		{"/api/v1/lists/1/records.json", "404 no-such-route"},
		{"/api/v1/lists/1/2/records", "404 no-such-route"},
		{"/api/v1/lists/1/../2/records", "404 no-such-route"},
		{"/api/v1/lists/x/nothing", "404 no-such-route"},
	})
}

func TestResolveSearches(t *testing.T) {
	const (
		canonical = "api/v1/lists/1/searchFollowing or no-such-list"
		in        = " in " + canonical
	)
	long := strings.Repeat("a", 255)
	cases := []resolveCase{
		{"", canonical},
		{"limit=3", `search 3+0 ""` + in},
		{"offset=3", `search 10+3 ""` + in},
		{"term=fox", `search 10+0 "fox"` + in},
		{"term=fox&limit=5&offset=20", `search 5+20 "fox"` + in},

		// Defaults that are spelled out are the canonical object.
		{"limit=10&offset=0&term=", canonical},
		{"limit=010&offset=000&term=%20+", canonical},
		{"term", canonical},
		{"limit=10&offset=1", `search 10+1 ""` + in},

		{"limit=1", `search 1+0 ""` + in},
		{"limit=100", `search 100+0 ""` + in},
		{"limit=101", `search 100+0 ""` + in},
		{"limit=0", "400 bad-limit"},

		{"offset=00000000000000007", `search 10+7 ""` + in},
		{"offset=999999999999999999", `search 10+2147483647 ""` + in},
		{"offset=1000000000000000000", "400 bad-offset"},
		{"offset=-1", "400 bad-offset"},
		{"offset=+5", "400 bad-offset"},
		{"offset=", "400 bad-offset"},
		{"offset=x", "400 bad-offset"},

		// A term is trimmed, and letter case and composition do not matter.
		{"term=+fox%09", `search 10+0 "fox"` + in},
		{"term=%C2%A0fox%E3%80%80", `search 10+0 "fox"` + in}, // no-break and ideographic space
		{"term=red+fox", `search 10+0 "red fox"` + in},
		{"term=red%2Bfox", `search 10+0 "red+fox"` + in},
		{"term=FOX.eth", `search 10+0 "fox.eth"` + in},
		{"term=0XABC", `search 10+0 "0xabc"` + in},
		{"term=%D0%9A%D0%9E%D0%A2", `search 10+0 "кот"` + in},
		{"term=%C3%89t%C3%A9", `search 10+0 "été"` + in},
		{"term=e%CC%81te%CC%81", `search 10+0 "été"` + in},
		{"term=%F0%9F%A6%8A", `search 10+0 "🦊"` + in},

		// Characters that are special elsewhere are literal here.
		{"term=%25", `search 10+0 "%"` + in},
		{"term=%", `search 10+0 "%"` + in},
		{"term=%2", `search 10+0 "%2"` + in},
		{"term=%zz", `search 10+0 "%zz"` + in},
		{"term=%zz%41", `search 10+0 "%zza"` + in},
		{"term=%2541", `search 10+0 "%41"` + in}, // decoded once
		{"term=_", `search 10+0 "_"` + in},
		{"term=*", `search 10+0 "*"` + in},
		{"term=a=b", `search 10+0 "a=b"` + in},
		{"term=a?b", `search 10+0 "a?b"` + in},
		{"term=a;b", `search 10+0 "a;b"` + in},
		{"term=a%26b", `search 10+0 "a&b"` + in},
		{"term=%22%5C", `search 10+0 "\"\\"` + in},
		{"term=%00", `search 10+0 "\x00"` + in},

		// Invalid UTF-8 is in no name: it matches neither part of a character nor the replacement character, which a
		// name may contain. All such terms are equal.
		{"term=%FF", `search 10+0 "\xff"` + in},
		{"term=a%C3", `search 10+0 "\xff"` + in},
		{"term=%20%FF%20", `search 10+0 "\xff"` + in},
		{"term=%ED%A0%80", `search 10+0 "\xff"` + in}, // half of a surrogate pair
		{"term=%EF%BF%BD", `search 10+0 "` + "\uFFFD" + `"` + in},

		{"term=" + long, `search 10+0 "` + long + `"` + in},
		{"term=" + long + "a", "400 bad-term"},
		{"term=" + strings.Repeat("%61", 255), `search 10+0 "` + long + `"` + in}, // bytes are counted decoded
		{"term=" + strings.Repeat("%C3%A9", 127), `search 10+0 "` + strings.Repeat("é", 127) + `"` + in},
		{"term=" + strings.Repeat("%C3%A9", 128), "400 bad-term"},

		{"term=fox&term=nobody", `search 10+0 "fox"` + in},
		{"term=&term=fox", canonical},
		{"limit=3&limit=0", `search 3+0 ""` + in},
		{"offset=3&offset=x", `search 10+3 ""` + in},
		{"unknown=%zz&limit=3", `search 3+0 ""` + in},
		{"includeTags=no&cache=fresh", canonical},
	}
	for i := range cases {
		cases[i].request = "/api/v1/lists/1/searchFollowing?" + cases[i].request
	}
	testResolve(t, defaultConfig(t), cases)
}

func TestResolveUsers(t *testing.T) {
	const (
		prefix, suffix = "/api/v1/users/", "/searchFollowing"
		byAddress      = "api/v1/users/" + alice + "/searchFollowing or empty"
		byName         = "api/v1/users/alice.eth/searchFollowing or no-such-name"
		noName         = "404 no-such-name"
	)
	cases := []resolveCase{
		// An address in any letter case, which may well be unknown.
		{alice, byAddress},
		{aliceUpper, byAddress},
		{"0x" + strings.ToUpper(alice[2:]), byAddress},
		{"%30%58" + alice[2:], byAddress},
		{alice[:41], "api/v1/users/" + alice[:41] + "/searchFollowing or no-such-name"},
		{alice + "0", "api/v1/users/" + alice + "0/searchFollowing or no-such-name"},
		{"0x" + strings.Repeat("G", 40), "api/v1/users/0x" + strings.Repeat("g", 40) + "/searchFollowing or no-such-name"},
		{alice + "%EF%B8%8F", noName}, // an address only once U+FE0F is gone

		// A name: lower case, NFC, without U+FE0F.
		{"alice.eth", byName},
		{"ALICE.Eth", byName},
		{"%61lice%2Eeth", byName},
		{"alice%EF%B8%8F.eth", byName},
		{"cafe%CC%81.eth", "api/v1/users/café.eth/searchFollowing or no-such-name"},
		{"CAFÉ.eth", "api/v1/users/café.eth/searchFollowing or no-such-name"}, // raw UTF-8
		{"%E2%9D%A4%EF%B8%8F.eth", "api/v1/users/❤.eth/searchFollowing or no-such-name"},
		{"%E2%80%8Falice.eth", "api/v1/users/\u200falice.eth/searchFollowing or no-such-name"}, // a right-to-left mark is a character
		{"a+b", "api/v1/users/a+b/searchFollowing or no-such-name"},                            // a plus is a plus in a path
		{strings.Repeat("%78", 255), "api/v1/users/" + strings.Repeat("x", 255) + "/searchFollowing or no-such-name"},

		// Invalid names belong to no account.
		{strings.Repeat("x", 256), noName},
		{strings.Repeat("%C3%A9", 128), noName},
		{"", noName},
		{".", noName},
		{"..", noName},
		{"%EF%B8%8F", noName},
		{"a%2fb", noName},
		{"50%25off.eth", noName},
		{"sp%20ace.eth", noName},
		{"%00", noName},
		{"%FF", noName},
		{"%zz", noName},
		{"a%", noName},
	}
	for i := range cases {
		cases[i].request = prefix + cases[i].request + suffix
	}
	testResolve(t, defaultConfig(t), cases)

	testResolve(t, defaultConfig(t), []resolveCase{
		{"/api/v1/users/ALICE.eth/searchFollowing?term=Bob&limit=2", `search 2+0 "bob" in ` + byName},
		{"/api/v1/users/" + aliceUpper + "/searchFollowing?offset=20", `search 10+20 "" in ` + byAddress},
		{"/api/v1/users/alice.eth/searchFollowing?limit=10&offset=0&term=", byName},
		{"/api/v1/users/alice.eth/searchFollowing?limit=0", "400 bad-limit"},
		{"/api/v1/users/alice.eth/searchFollowing?cache=fresh", byName},
		{"/api/v1/users", "404 no-such-route"},
		{"/api/v1/users/alice.eth", "404 no-such-route"},
		{"/api/v1/users/alice.eth/", "404 no-such-route"},
		{"/api/v1/users/alice.eth/records", "404 no-such-route"},
		{"/api/v1/users/a/b/searchFollowing", "404 no-such-route"},
		{"/api/v1/users/../searchFollowing/", "404 no-such-route"},
	})
}

// Clients without a server also read the site's other objects.
func TestResolveOtherObjects(t *testing.T) {
	var cases []resolveCase
	for _, key := range []string{
		"_site", "_manifest/0", "_manifest/00ff", "_search/users/a", "_search/users/beef", "_search/lists/1/0", "_search/lists/0/12",
		"_variants/leaderboard/followers/limit=1", "_variants/leaderboard/following/limit=100", "_errors/no-such-list",
		"_errors/method-not-allowed",
	} {
		cases = append(cases, resolveCase{"/" + key, key + " or no-such-route"})
	}
	for _, key := range []string{ // TestRouteOfRefuses has more
		"", "/", "//", "/_site", "_site/", "_SITE", "_manifest/..", "_manifest/%00", "_search/users/%2e%2e", "_search/lists/../0",
		"_variants/leaderboard/followers/limit=0", "_variants/leaderboard/followers/limit=101", "_variants/leaderboard/../limit=5", "_errors/..", "_refresh/records/1",
		"api", "api/v1", "api/v1/", "api/v1/_site", "api/v2/leaderboard/followers", "API/v1/leaderboard/followers", "api%2Fv1/leaderboard/followers",
		"api//v1/leaderboard/followers", "api/v1//leaderboard/followers", "./api/v1/leaderboard/followers", "api/v1/../v1/leaderboard/followers",
		"index.html", "robots.txt", "favicon.ico", "%", "%zz", "%00", "%2F", "..", "\xff",
	} {
		cases = append(cases, resolveCase{"/" + key, "404 no-such-route"})
	}
	testResolve(t, defaultConfig(t), append(cases, []resolveCase{
		{"", "404 no-such-route"},
		{"/%5Fsite", "_site or no-such-route"},
		{"/_site?limit=0&cache=fresh&includeTags=no", "_site or no-such-route"},
		{"/_variants/leaderboard/followers/limit%3D5?limit=0", "_variants/leaderboard/followers/limit=5 or no-such-route"},
		{"/%61pi/v%31/leader%62oard/f%6Fllowers", "api/v1/leaderboard/followers or no-such-route"},
	}...))
}

func TestResolveOtherBasePaths(t *testing.T) {
	for _, base := range []string{"x", "a/b/c", "v1.2_b-c", "users"} {
		c, err := site.Config{BasePath: base}.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		testResolve(t, c, []resolveCase{
			{"/" + base + "/leaderboard/followers", base + "/leaderboard/followers or no-such-route"},
			{"/" + base + "/leaderboard/followers?limit=3", "_variants/leaderboard/followers/limit=3 or no-such-route"},
			{"/" + base + "/lists/1/details?cache=fresh", "fresh " + base + "/lists/1/details or no-such-list"},
			{"/" + base + "/lists/x/details", "400 bad-token-id"},
			{"/" + base + "/users/ALICE.eth/searchFollowing", base + "/users/alice.eth/searchFollowing or no-such-name"},
			{"/" + base + "/users/" + alice + "/searchFollowing?limit=3", `search 3+0 "" in ` + base + "/users/" + alice + "/searchFollowing or empty"},
			{"/_site", "_site or no-such-route"},
			{"/_errors/bad-limit", "_errors/bad-limit or no-such-route"},
			{"/" + base, "404 no-such-route"},
			{"/" + base + "/", "404 no-such-route"},
			{"/" + base + "/_site", "404 no-such-route"},
			{"/" + base + "/" + base + "/leaderboard/followers", "404 no-such-route"},
			{"/api/v1/leaderboard/followers", "404 no-such-route"},
			{"/leaderboard/followers", "404 no-such-route"},
		})
	}
}

func TestResolveLeaderboardMaximum(t *testing.T) {
	const canonical = "api/v1/leaderboard/followers or no-such-route"
	smallest, err := site.Config{LeaderboardMax: 10}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	testResolve(t, smallest, []resolveCase{
		{"/api/v1/leaderboard/followers?limit=9", "_variants/leaderboard/followers/limit=9 or no-such-route"},
		{"/api/v1/leaderboard/followers?limit=10", canonical},
		{"/api/v1/leaderboard/followers?limit=500", canonical}, // the maximum is the default here
		{"/api/v1/lists/1/searchFollowing?limit=500", `search 100+0 "" in api/v1/lists/1/searchFollowing or no-such-list`},
	})
	large, err := site.Config{LeaderboardMax: 5000}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	testResolve(t, large, []resolveCase{
		{"/api/v1/leaderboard/followers?limit=5000", "_variants/leaderboard/followers/limit=5000 or no-such-route"},
		{"/api/v1/leaderboard/followers?limit=5001", "_variants/leaderboard/followers/limit=5000 or no-such-route"},
	})
}

func TestResolveMethods(t *testing.T) {
	c := defaultConfig(t)
	for _, request := range []string{"/api/v1/leaderboard/followers", "/api/v1/lists/x/records", "/nothing", "", "/_site"} {
		get := describe(c.Resolve("GET", request, "limit=3"))
		for method, want := range map[string]string{
			"HEAD":    get,
			"OPTIONS": "preflight",
			"POST":    "405 method-not-allowed",
			"PUT":     "405 method-not-allowed",
			"PATCH":   "405 method-not-allowed",
			"DELETE":  "405 method-not-allowed",
			"TRACE":   "405 method-not-allowed",
			"CONNECT": "405 method-not-allowed",
			"QUERY":   "405 method-not-allowed",
			"get":     "405 method-not-allowed",
			"":        "405 method-not-allowed",
		} {
			r := c.Resolve(method, request, "limit=3")
			equal(t, method+" "+request, describe(r), want)
			checkResolution(t, c, method, request, "limit=3", r)
		}
	}
	equal(t, "Allow", site.MethodNotAllowed.Allow(), "GET, HEAD, OPTIONS")
}

// checkResolution checks the promises that hold for every resolution.
func checkResolution(t testing.TB, c site.Config, method, path, query string, r site.Resolution) {
	t.Helper()
	broken := func(promise string) {
		t.Helper()
		t.Errorf("%q %q ? %q (base path %s): want that %s, got\n%+v", method, path, query, c.BasePath, promise, r)
	}
	canRead := method == "GET" || method == "HEAD"
	switch r.Action {
	case site.AnswerPreflight:
		if method != "OPTIONS" || r != (site.Resolution{Action: site.AnswerPreflight}) {
			broken("a preflight is the answer to OPTIONS and nothing else")
		}
		return
	case site.AnswerProblem:
		if !slices.Contains(c.Problems(), r.Problem) || r.Key != "" || r.Ask != (site.Ask{}) || r.Fresh {
			broken("a problem is one of the problems and has no object")
		}
		if canRead && r.Problem == site.MethodNotAllowed || !c.EFP() && !canRead && r.Problem != site.MethodNotAllowed {
			broken("other methods are not allowed, GET and HEAD are")
		}
		return
	case site.AnswerComputed:
		if r.Route == nil || r.Problem != nil || r.Route.Post == canRead || !c.EFP() {
			broken("a computed answer has a route and no problem, and its method is that of the route")
			return
		}
		if _, most := c.Limits(r.Route); r.Ask.Limit < 1 || r.Ask.Limit > most || r.Ask.Offset < 0 {
			broken("limit and offset are within their bounds")
		}
	case site.AnswerObject, site.AnswerWithoutTags, site.AnswerSearch:
		if !canRead || r.Route == nil || r.Problem != nil {
			broken("an answer has a route and no problem, and answers GET or HEAD")
			return
		}
	default:
		broken("the action is one of the actions")
		return
	}

	if !r.Key.Valid() || !utf8.ValidString(string(r.Key)) || strings.ContainsRune(string(r.Key), 0) {
		broken("the key is valid")
	}
	for segment := range strings.SplitSeq(string(r.Key), "/") {
		if segment == "" || segment == "." || segment == ".." || len(segment) > 255 {
			broken("every segment of the key is the name of a file")
		}
	}
	of, ok := c.RouteOf(r.Key)
	if variant := r.Route.ID == routes.Leaderboard && ok && of.ID == routes.LeaderboardLimit; !ok || of != r.Route && !variant {
		broken("the key is an object of the route, or of its variants")
	}
	if r.Route.UnderAPI() == (strings.HasPrefix(string(r.Key), "_") || r.Key == site.OpenAPIKey || r.Key == site.IndexKey) && of.ID != routes.LeaderboardLimit {
		broken("the key is below the base path if its route is")
	}
	// A key is a path: asking for it gives it.
	again := c.Resolve("GET", escapedPath(r.Key), "")
	hasObject := !r.Route.Computed && (c.Names != site.NamesLookup || r.Absent != site.NoSuchName)
	if hasObject && (again.Action != site.AnswerObject || again.Key != r.Key) {
		broken("the key resolves to itself, not to " + describe(again))
	}

	refreshed := []routes.ID{routes.Details, routes.Badges, routes.UserDetails, routes.UserBadges}
	if r.Fresh && !slices.Contains(refreshed, r.Route.ID) {
		broken("only details and badges are refreshed")
	}
	if r.Action == site.AnswerWithoutTags && r.Route.ID != routes.Records {
		broken("only records have tags to leave out")
	}
	if r.TokenID != "" && (!site.ValidTokenID(r.TokenID) || r.Route.ID != routes.ExportState && !strings.HasPrefix(string(r.Key), c.BasePath+"/lists/"+r.TokenID+"/")) {
		broken("the token id is that of the key")
	}
	if r.Absent == nil && r.Route.ID != routes.UserSearch && r.Unknown == "" && !r.Route.Computed {
		broken("only a user without an object may follow nobody")
	}
	if (r.Unknown != "" || r.Address != "") && (!c.EFP() && r.Unknown != "" || r.Absent != nil) {
		broken("only the object of an address has an answer for unknown ones, and only under efp")
	}
	checkSearch(c, r, broken)
}

func checkSearch(c site.Config, r site.Resolution, broken func(string)) {
	s := r.Ask
	if r.Action != site.AnswerSearch {
		if r.Action != site.AnswerComputed && s != (site.Ask{}) {
			broken("only a computed answer is asked for anything")
		}
		return
	}
	if s.Limit < 1 || s.Limit > 100 || s.Offset < 0 {
		broken("limit and offset are within their bounds")
	}
	if s.Limit == site.DefaultLimit && s.Offset == 0 && s.Term == "" {
		broken("the default search is an object")
	}
	if s.Term != "\xff" && (!utf8.ValidString(s.Term) || s.Term != strings.TrimSpace(s.Term) || s.Term != site.Fold(s.Term)) {
		broken("the term is folded and trimmed UTF-8, or the one that matches nothing")
	}
	switch {
	case r.Route.ID == routes.ListSearch && s.User == "" && s.TokenID == r.TokenID && r.Key == c.ListKey(s.TokenID, site.SearchFollowing):
	case r.Route.ID == routes.UserSearch && s.TokenID == "" && r.Key == c.UserKey(s.User):
	default:
		broken("a search is that of the key's list or user")
	}
}
