package tags_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/tags"
)

// The tags of an object name its list or its user and what changes together, in the header of each service.
func TestTags(t *testing.T) {
	spec := site.Config{BasePath: "api/v1", LeaderboardMax: 100}
	efp, lookup := spec, spec
	efp.API, lookup.API, lookup.Names = site.APIEFP, site.APIEFP, site.NamesLookup
	for _, c := range []struct {
		config site.Config
		key    site.Key
		want   string
	}{
		{spec, "api/v1/lists/7/details", "fp-list-7 fp-ranks"},
		{spec, "api/v1/lists/7/records", "fp-list-7 fp-lists-records"},
		{spec, site.Key("api/v1/lists/" + strings.Repeat("9", 78) + "/badges"), "fp-list--b03b97d3ee8e669d fp-lists-badges"},
		{spec, "api/v1/users/vitalik.eth/searchFollowing", "fp-user-vitalik.eth fp-users-searchfollowing"},
		{spec, "api/v1/users/кот.eth/searchFollowing", "fp-user--c7a83a7fbc3f8688 fp-users-searchfollowing"},
		{spec, "api/v1/users/bub&o'n/searchFollowing", "fp-user--7a87073d13342fc0 fp-users-searchfollowing"},
		{spec, "api/v1/leaderboard/followers", "fp-boards"},
		{spec, "_variants/leaderboard/followers/limit=7", "fp-boards"},
		{spec, "_search/lists/7/3", "fp-list-7 fp-search-lists"},
		{spec, "_search/users/0f", "fp-object--e96f5a12283f7a55 fp-search-users"},
		{spec, "_manifest/a", "fp-manifest"},
		{spec, "_site", "fp-site"},
		{efp, "api/v1/users/0x00000000000000000000000000000000000000aa/details", "fp-user-0x00000000000000000000000000000000000000aa fp-ranks"},
		{efp, "_search/followers/0x00000000000000000000000000000000000000aa/head", "fp-user-0x00000000000000000000000000000000000000aa fp-search-followers-head"},
		{efp, "_search/ranked/top8/3", "fp-boards"},
		{lookup, "api/v1/users/bob.eth/stats", "fp-names fp-users-stats"},
		{lookup, "api/v1/users/0x00000000000000000000000000000000000000aa/stats", "fp-user-0x00000000000000000000000000000000000000aa fp-users-stats"},
	} {
		route, ok := c.config.RouteOf(c.key)
		if !ok {
			t.Fatalf("%s: not a key", c.key)
		}
		if got := strings.Join(tags.Of(c.config, route, c.key), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.key, got, c.want)
		}
	}
}

// The metadata is that of each service, once, and a site without tags has none.
func TestTagMetadata(t *testing.T) {
	for services, want := range map[string]string{
		"": "", "fastly": "surrogate-key=fp-list-7 fp-ranks", "cloudflare": "cache-tag=fp-list-7,fp-ranks",
		"cloudflare cloudfront fastly": "cache-tag=fp-list-7,fp-ranks surrogate-key=fp-list-7 fp-ranks",
	} {
		c, err := site.Config{Tags: services}.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		var all, headers []string
		for name, value := range tags.Metadata(c, "api/v1/lists/7/details") {
			all = append(all, name+"="+value)
		}
		for _, h := range tags.Headers(c, c.Resolve("GET", "/api/v1/lists/7/details", "cache=fresh")) {
			headers = append(headers, strings.TrimPrefix(h.Name, "x-amz-meta-")+"="+h.Value)
		}
		slices.Sort(all)
		slices.Sort(headers)
		if got := strings.Join(all, " "); got != want || !slices.Equal(all, headers) {
			t.Errorf("%q: got %q, and headers %q, want %q in both", services, got, headers, want)
		}
		if got := tags.Headers(c, c.Resolve("GET", "/api/v1/lists/seven/details", "")); got != nil {
			t.Errorf("an answer that no site changes: got %v, want no tags", got)
		}
		if route := site.RouteBy(routes.Details); services != "" && c.HeaderRules()[route.Pattern] == (site.Config{}).HeaderRules()[route.Pattern] {
			t.Errorf("%q: got the rules of headers without tags, want others", services)
		}
	}
	for _, bad := range []string{"akamai", "fastly cloudfront", "fastly fastly", " fastly"} {
		if _, err := tags.Normal(strings.Split(bad, " ")); err == nil && bad != "fastly cloudfront" && bad != "fastly fastly" {
			t.Errorf("%q: got no error, want one", bad)
		}
		if _, err := (site.Config{Tags: bad}).WithDefaults(); err == nil && bad != "akamai" {
			t.Errorf("%q: got no error, want one", bad)
		}
	}
}

// Tags are within the limits of all services, regardless of the key, and of characters that all
// take.
func TestTagsAreWithinLimits(t *testing.T) {
	for _, c := range []site.Config{{}, {API: site.APIEFP, Explorer: true}, {API: site.APIEFP, Names: site.NamesLookup}} {
		c, err := c.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Routes() {
			for _, user := range []string{"a", "0x00000000000000000000000000000000000000aa", strings.Repeat("ü,", 100), "\"\x7f\n ", "AB"} {
				path := r.Path(c)[1:]
				for variable, value := range map[string]string{"{user}": user, "{other}": user, "{token_id}": strings.Repeat("7", 78), "{address}": "0x00000000000000000000000000000000000000aa"} {
					path = strings.ReplaceAll(path, variable, value)
				}
				got := tags.Of(c, r, site.Key(path))
				if len(got) > tags.Most {
					t.Errorf("%s: got %d tags, want at most %d", path, len(got), tags.Most)
				}
				for _, tag := range got {
					if len(tag) > 64 || !strings.HasPrefix(tag, "fp-") || strings.Trim(tag, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
						t.Errorf("%s: got tag %q, want a short one of plain characters", path, tag)
					}
				}
			}
		}
	}
}
