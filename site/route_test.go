package site_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

func TestRoutes(t *testing.T) {
	patterns := map[string]bool{}
	for i, r := range site.AllFeatures().Routes() {
		if int(r.ID) != i || site.RouteBy(r.ID) != r || patterns[r.Pattern] || r.Summary == "" {
			t.Errorf("route %d, %s: out of order, duplicate or without a summary", i, r.Pattern)
		}
		patterns[r.Pattern] = true
		if r.UnderAPI() != strings.HasPrefix(r.Pattern, "{base}/") {
			t.Errorf("route %s: UnderAPI: got %v", r.Pattern, r.UnderAPI())
		}
		if len(r.Params) > 0 && !r.UnderAPI() {
			t.Errorf("route %s: got parameters, want none outside of the API", r.Pattern)
		}
		// Entry points are revalidated every time; everything else may be cached for a limited
		// time.
		if r.Post {
			equal(t, "Cache-Control of "+r.Pattern, r.CacheControl, site.NoStore)
			continue
		}
		maxAge := strings.HasPrefix(r.CacheControl, "public, max-age=")
		entry := slices.Contains([]routes.ID{
			routes.Manifest, routes.ManifestDelta, routes.Root, routes.Note,
			routes.NextNote, routes.NextRoot, routes.NextManifest, routes.NextDelta, routes.KeptIndex, routes.RefreshedDetails, routes.RefreshedBadges, routes.RefreshedCopy, routes.Index, routes.Explorer, routes.ExplorerWorker,
			routes.Reports, routes.ReportPage, routes.ReportData, routes.Ranks,
		}, r.ID)
		if forever := strings.Contains(r.CacheControl, "immutable"); forever != (strings.Contains(r.Pattern, "{asset}") || r.ID == routes.KeptPiece) {
			t.Errorf("route %s: got Cache-Control %q, want that names with a hash of the content are immutable, and no others", r.Pattern, r.CacheControl)
		}
		if entry == maxAge || entry && r.CacheControl != "no-cache" {
			t.Errorf("route %s: got Cache-Control %q, want no-cache for entry points and a max-age for others", r.Pattern, r.CacheControl)
		}
	}
	equal(t, "NoStore", site.NoStore, "no-store")
}

func TestRoutePath(t *testing.T) {
	c := site.Config{BasePath: "a/b"}
	equal(t, "path", site.RouteBy(routes.UserSearch).Path(c), "/a/b/users/{user}/searchFollowing")
	equal(t, "path", site.RouteBy(routes.LeaderboardLimit).Path(c), "/_variants/leaderboard/{board}/limit={limit}")
	equal(t, "path", site.RouteBy(routes.Root).Path(c), "/_site")
}

// A base path cannot collide with the objects of the site itself.
func TestReserved(t *testing.T) {
	reserved := append(site.Reserved(), site.AllFeatures().TopLevel()...)
	for _, r := range site.AllFeatures().Routes() {
		if first, _, _ := strings.Cut(r.Pattern, "/"); !r.UnderAPI() && !slices.Contains(reserved, first) {
			t.Errorf("%s: not reserved", first)
		}
	}
	if !slices.Contains(reserved, "_refresh") {
		t.Error("_refresh is not reserved")
	}
}

func TestRouteOfRefuses(t *testing.T) {
	long := strings.Repeat("x", 256)
	for _, c := range configs(t) {
		for _, key := range []string{
			"", "/", "/_site", "_site/", "_site/x", "_Site",
			"leaderboard/followers", "{base}", "{base}/", "{base}/leaderboard", "{base}/leaderboard/", "{base}/leaderboard/nothing",
			"/{base}/leaderboard/followers", "{base}/leaderboard/followers/", "{base}//leaderboard/followers", "{base}/_site",
			"{base}/{base}/leaderboard/followers",
			"{base}/lists//records", "{base}/lists/./records", "{base}/lists/../records", "{base}/lists/01/records", "{base}/lists/x/records",
			"{base}/lists/1/2/records", "{base}/lists/1/nothing", "{base}/lists/1", "{base}/lists/1/records/x", "{base}/lists/1\x00/records",
			"{base}/users//searchFollowing", "{base}/users/../searchFollowing", "{base}/users/Alice.eth/searchFollowing",
			"{base}/users/" + aliceUpper + "/searchFollowing", "{base}/users/a b/searchFollowing", "{base}/users/a%20b/searchFollowing",
			"{base}/users/e\u0301/searchFollowing", "{base}/users/\xff/searchFollowing", "{base}/users/a\x00/searchFollowing",
			"{base}/users/" + long + "/searchFollowing", "{base}/users/a", "{base}/users/a/records",
			"_errors", "_errors/", "_errors/x", "_errors/..", "_manifest/", "_manifest/x", "_manifest/A", "_manifest/00000", "_manifest/0/0",
			"_search/users/", "_search/users/alice.eth", "_search/lists/1", "_search/lists/1/x", "_search/lists/01/0", "_search/lists/1/-1",
			"_variants/leaderboard/followers/limit=", "_variants/leaderboard/followers/limit=x", "_variants/leaderboard/followers/limit=05",
			"_variants/leaderboard/nothing/limit=5", "_refresh", "_refresh/details", "_refresh/details/01", "_refresh/records/1", "_refresh/copies/" + anyDigest + "/x", "_refresh/copies/api/v1/lists/1/details",
			"_explore", "_explore/", "_explore/index", "_explore/Index.html", "_explore/index.html/", "_explore/x.js", "_explore/sw.css", "_explore/app-ABCD123.js",
			"_explore/app-ABCD12345.js", "_explore/app-abcd1234.js", "_explore/App-ABCD1234.js", "_explore/-ABCD1234.js", "_explore/app-ABCD1234.jsx", "_explore/app-ABCD1234",
			"_explore/../app-ABCD1234.js", "_explore/a/app-ABCD1234.js", "_explore/app-ABCD1234.css/x", "_explore/top/", "_explore/topx", "_explore/" + long + "-ABCD1234.js",
			"_snapshot", "_snapshot/", "_snapshot/index", "_snapshot/index/", "_snapshot/index/0a", "_snapshot/0a", "_snapshot/" + anyDigest + "0", "_snapshot/" + strings.ToUpper(anyDigest),
			"_snapshot/index/" + anyDigest + "/x", "_snapshot/x/" + anyDigest, "_log/0", "_log/index", "_reports", "_reports/", "_reports/index.html", "_reports/2026-01-02", "_reports/2026-1-2.html", "_reports/2026-01-02.htm", "_reports/2026-01-02.html.html",
			"_reports/x2026-01-02.json", "_reports/2026-01-02\n.json", "_reports/2026/01-02.json", "index.htm", "index.html/", "x/index.html",
			"u", "u/", "u/index.html", "u/a.eth", "u/a.eth/", "u//index.html", "u/A/index.html", "u/../index.html", "u/./index.html", "u/_x/index.html", "u/-/index.html",
			"u/a_b/index.html", "u/é/index.html", "u/a/b/index.html", "u/a/index.htm", "u/" + long + "/index.html", "u/" + long[:101] + "/index.html",
			"u/_page.css/x", "u/_sitemap-.xml", "u/_sitemap-g.xml", "u/_sitemap-00000.xml", "_badge/.svg", "_badge/A.svg", "_badge/a", "_badge/dark/_.svg", "_badge/light/a.svg",
			"_badge/" + long[:101] + ".svg", "robots.txt/", "sitemap.xml.gz", "sitemap", "embed.mjs",
			"_data", "_data/", "_data/index", "_data/lists.parquet", "_data/follows", "_data/follows.parquet/", "_data/follows-1.parquet", "_data/follows-00001.parquet",
			"_data/follows-000x.parquet", "_data/Follows.parquet", "_data/follows.parquet.parquet", "_data/x/follows.parquet", "_data/datapackage", "_data/datapackage.json/x",
		} {
			key := site.Key(strings.ReplaceAll(key, "{base}", c.BasePath))
			if route, ok := c.RouteOf(key); ok {
				t.Errorf("RouteOf(%q): got %s, want none", key, route.Pattern)
			}
		}
	}
}

// anyDigest is like a SHA-256.
var anyDigest = strings.Repeat("0a", 32)

// Routes have the same digest if and only if their headers are the same.
func TestHeaderRules(t *testing.T) {
	rules := site.AllFeatures().HeaderRules()
	// Routes of notes, inputs and refreshes are omitted: their objects are not part of a site.
	all := slices.DeleteFunc(slices.Clone(site.AllFeatures().Routes()), func(r *site.Route) bool { return routes.Note <= r.ID && r.ID <= routes.RefreshedCopy })
	equal(t, "routes with rules", len(rules), len(all))
	for _, one := range all {
		for _, other := range all {
			same := one.ContentType == other.ContentType && one.CacheControl == other.CacheControl
			if (rules[one.Pattern] == rules[other.Pattern]) != same {
				t.Errorf("%s and %s: got %v for equal headers, want the reverse for the digests", one.Pattern, other.Pattern, same)
			}
		}
	}
}

// The status codes are part of the interface: clients decide by them.
func TestProblemStatus(t *testing.T) {
	want := map[string]int{
		"bad-token-id": 400, "bad-limit": 400, "bad-offset": 400, "bad-include-tags": 400, "bad-term": 400,
		"no-such-list": 404, "no-such-name": 404, "no-such-route": 404,
		"method-not-allowed": 405, "too-many-refreshes": 429, "internal-error": 500, "unavailable": 503,
	}
	equal(t, "problems", len(site.Config{}.Problems()), len(want))
	for _, p := range (site.Config{}).Problems() {
		equal(t, p.Name, p.Status, want[p.Name])
		// Only problems that are the same for everyone, for a while, may be cached.
		equal(t, "cached "+p.Name, p.CacheControl != site.NoStore, p.Status == 400 || p.Status == 404)
	}
}

func TestProblemBody(t *testing.T) {
	equal(t, "body", string(site.NoSuchList.Body()),
		`{"type":"about:blank","title":"Not Found","status":404,`+
			`"detail":"There is no list with this token_id.","response":"There is no list with this token_id."}`)

	titles := map[int]string{
		400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 429: "Too Many Requests",
		500: "Internal Server Error", 503: "Service Unavailable",
	}
	for _, p := range (site.Config{}).Problems() {
		detail, err := json.Marshal(p.Detail)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"detail":%s,"response":%s}`, titles[p.Status], p.Status, detail, detail)
		equal(t, p.Name, string(p.Body()), want)
		if !strings.HasSuffix(p.Detail, ".") || p.Key() != site.Key("_errors/"+p.Name) {
			t.Errorf("%s: got another detail or key %s, want a sentence and its own key", p.Name, p.Key())
		}
	}
}

// Every rule of the table can be satisfied, and every parameter of a route has one.
func TestParams(t *testing.T) {
	used := map[site.Param]bool{}
	for _, r := range site.AllFeatures().Routes() {
		if !slices.IsSorted(r.Params) {
			t.Errorf("parameters of %s: got %v, want them sorted by name", r.Pattern, r.Params)
		}
		for _, p := range r.Params {
			used[p] = true
		}
	}
	equal(t, "parameters of the routes", len(used), len(site.Params()))
	for name, rule := range site.Params() {
		if !used[name] || rule.About == "" {
			t.Errorf("%s: got %+v, want a route that has it and a description", name, rule)
		}
		words := rule.Kind == site.ParamBool || rule.Kind == site.ParamChoice || rule.Kind == site.ParamWords
		if words != (len(rule.Values) > 0) || words && slices.Contains(rule.Values, rule.Neutral) || words && rule.Least+rule.Default+rule.Most != 0 {
			t.Errorf("%s: got %+v, want Values for ParamBool and ParamChoice alone, without Neutral", name, rule)
		}
		if rule.Kind == site.ParamNumber && (rule.Problem == nil) != (rule.Default < rule.Least) || rule.Kind == site.ParamText && (rule.Problem == nil || rule.Most == 0) {
			t.Errorf("%s: got %+v, want a problem, unless it has no default, and bounds", name, rule)
		}
	}
}
