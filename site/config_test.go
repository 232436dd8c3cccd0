package site_test

import (
	"fmt"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

func TestConfigDefaults(t *testing.T) {
	for _, tc := range []struct{ config, want site.Config }{
		{site.Config{}, site.Config{BasePath: "api/v1", BadgesField: "badges", LeaderboardMax: 100, MaxProfileText: 65536}},
		{site.Config{BasePath: "/x/"}, site.Config{BasePath: "x", BadgesField: "badges", LeaderboardMax: 100, MaxProfileText: 65536}},
		{site.Config{BasePath: "A/b-2/c_3/v1.4"}, site.Config{BasePath: "A/b-2/c_3/v1.4", BadgesField: "badges", LeaderboardMax: 100, MaxProfileText: 65536}},
		{site.Config{BasePath: "a/_site"}, site.Config{BasePath: "a/_site", BadgesField: "badges", LeaderboardMax: 100, MaxProfileText: 65536}},
		{site.Config{BadgesField: "poaps"}, site.Config{BasePath: "api/v1", BadgesField: "poaps", LeaderboardMax: 100, MaxProfileText: 65536}},
		{site.Config{LeaderboardMax: 10}, site.Config{BasePath: "api/v1", BadgesField: "badges", LeaderboardMax: 10, MaxProfileText: 65536}},
		{site.Config{LeaderboardMax: 10_000}, site.Config{BasePath: "api/v1", BadgesField: "badges", LeaderboardMax: 10_000, MaxProfileText: 65536}},
		{site.Config{MaxProfileText: 255}, site.Config{BasePath: "api/v1", BadgesField: "badges", LeaderboardMax: 100, MaxProfileText: 255}},
		{site.Config{MaxProfileText: 16 << 20}, site.Config{BasePath: "api/v1", BadgesField: "badges", LeaderboardMax: 100, MaxProfileText: 16 << 20}},
		{site.Config{API: "spec", Names: "copies"}, site.Config{BasePath: "api/v1", BadgesField: "badges", LeaderboardMax: 100, MaxProfileText: 65536}},
		{site.Config{API: "efp", Names: "copies"}, site.Config{BasePath: "api/v1", BadgesField: "poaps", LeaderboardMax: 100, MaxProfileText: 65536,
			API: "efp", ProfileURL: "https://efp.app/{address}"}},
		{site.Config{API: "efp", Names: "lookup", BadgesField: "badges", ProfileURL: "http://x.example/?of={address}&x={address}"},
			site.Config{BasePath: "api/v1", BadgesField: "badges", LeaderboardMax: 100, MaxProfileText: 65536,
				API: "efp", ProfileURL: "http://x.example/?of={address}&x={address}", Names: "lookup"}},
	} {
		got, err := tc.config.WithDefaults()
		if err != nil || got != tc.want {
			t.Errorf("%+v with defaults: got %+v, %v, want %+v", tc.config, got, err, tc.want)
		}
		if got.EFP() != (tc.config.API == site.APIEFP) {
			t.Errorf("%+v: got EFP %t", tc.config, got.EFP())
		}
		if again, err := got.WithDefaults(); err != nil || again != got {
			t.Errorf("%+v with defaults again: got %+v, %v, want no change", got, again, err)
		}
	}
}

// A refusal names the option and shows the value that was given.
func TestConfigRefuses(t *testing.T) {
	const path, field, maximum, longest = "base path", "badges field", "leaderboard maximum", "longest profile text"
	const api, profile, names = "api", "profile URL", "names"
	for _, tc := range []struct {
		config site.Config
		want   string
	}{
		{site.Config{BasePath: "."}, path},
		{site.Config{BasePath: ".."}, path},
		{site.Config{BasePath: "/"}, path},
		{site.Config{BasePath: "../x"}, path},
		{site.Config{BasePath: "a/../b"}, path},
		{site.Config{BasePath: "a/./b"}, path},
		{site.Config{BasePath: "a//b"}, path},
		{site.Config{BasePath: "a b"}, path},
		{site.Config{BasePath: " "}, path},
		{site.Config{BasePath: "a\x00"}, path},
		{site.Config{BasePath: "é"}, path},
		{site.Config{BasePath: "a%20b"}, path},
		{site.Config{BasePath: "{base}"}, path},
		{site.Config{BasePath: `a\b`}, path},
		{site.Config{BasePath: "a?b"}, path},
		{site.Config{BasePath: "https://example.org/api"}, path},
		{site.Config{BadgesField: strings.Repeat("x", 65)}, field},
		{site.Config{BadgesField: "\xff"}, field},
		{site.Config{LeaderboardMax: -1}, maximum},
		{site.Config{LeaderboardMax: 9}, maximum},
		{site.Config{LeaderboardMax: 10_001}, maximum},
		{site.Config{MaxProfileText: -1}, longest},
		{site.Config{MaxProfileText: 254}, longest},
		{site.Config{MaxProfileText: 16<<20 + 1}, longest},
		{site.Config{API: "EFP"}, api},
		{site.Config{API: "v2"}, api},
		{site.Config{ProfileURL: "https://x.example/{address}"}, profile},
		{site.Config{API: "spec", ProfileURL: "https://x.example/{address}"}, profile},
		{site.Config{API: "efp", ProfileURL: "https://x.example/"}, profile},
		{site.Config{API: "efp", ProfileURL: "x.example/{address}"}, profile},
		{site.Config{API: "efp", ProfileURL: "javascript:{address}"}, profile},
		{site.Config{API: "efp", ProfileURL: "https:///{address}"}, profile},
		{site.Config{API: "efp", ProfileURL: "https://x.example/\xff{address}"}, profile},
		{site.Config{API: "efp", ProfileURL: "https://x.example/{address}" + strings.Repeat("x", 1000)}, profile},
		{site.Config{Names: "lookup"}, names},
		{site.Config{API: "spec", Names: "lookup"}, names},
		{site.Config{API: "efp", Names: "both"}, names},
		{site.Config{Names: "both"}, names},
	} {
		if _, err := tc.config.WithDefaults(); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%+v: got the error %v, want one about the %s", tc.config, err, tc.want)
		}
	}
	for _, first := range site.Reserved() {
		for _, base := range []string{first, "/" + first, first + "/v1"} {
			if _, err := (site.Config{BasePath: base}).WithDefaults(); err == nil || !strings.Contains(err.Error(), first) {
				t.Errorf("base path %s: got the error %v, want one about %s", base, err, first)
			}
		}
	}
}

// The root of a site of the specification does not mention what only the other API has.
func TestConfigOfTheSpec(t *testing.T) {
	config, err := site.Config{API: site.APISpec, Names: site.NamesCopies}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "configuration", string(body), `{"base_path":"api/v1","badges_field":"badges","leaderboard_max":100,"max_profile_text":65536}`)
	config.Explorer = true
	body, err = json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "configuration with the explorer", string(body), `{"base_path":"api/v1","badges_field":"badges","leaderboard_max":100,"max_profile_text":65536,"explorer":true}`)
}

func TestExplorerKeys(t *testing.T) {
	const one, two = "a.example+1a2b3c4d+AbCd+/=", "ü.example+00000000+x=="
	c, err := site.Config{Explorer: true, ExplorerKeys: two + "\n" + one + " " + two}.WithDefaults()
	if want := one + " " + two; err != nil || c.ExplorerKeys != want {
		t.Errorf("got %q, %v, want %q", c.ExplorerKeys, err, want)
	}
	if c, err := (site.Config{ExplorerKeys: one}).WithDefaults(); err != nil || c.ExplorerKeys != "" {
		t.Errorf("without the explorer: got %q, %v, want none", c.ExplorerKeys, err)
	}
	for _, given := range []string{"x", "PRIVATE+KEY+a.example+1a2b3c4d+AbCd", "a+1A2B3C4D+AbCd", "a+1a2b3c4d+", "a\u202eb+1a2b3c4d+AbCd", strings.Repeat("a", 256) + "+1a2b3c4d+AbCd"} {
		if _, err := (site.Config{Explorer: true, ExplorerKeys: given}).WithDefaults(); err == nil || !strings.Contains(err.Error(), "explorer keys") {
			t.Errorf("%q: got %v, want an error about the explorer's keys", given, err)
		}
	}
	var many strings.Builder
	for i := range 17 {
		fmt.Fprintf(&many, "a%d+1a2b3c4d+AbCd ", i)
	}
	if _, err := (site.Config{Explorer: true, ExplorerKeys: many.String()}).WithDefaults(); err == nil {
		t.Error("17 keys: got no error")
	}
}

// Equal settings have one form, so that they give equal bytes.
func TestPictures(t *testing.T) {
	for _, tc := range []struct {
		given, want, hosts string
		all                bool
	}{
		{"", "", "[]", true},
		{"ask", "", "[]", true},
		{" off ", "off", "[]", false},
		{"img.example", "img.example", "[https://img.example]", false},
		{"b.example, A.example\n*.c.example b.example:8443 a.example", "*.c.example a.example b.example b.example:8443",
			"[https://*.c.example https://a.example https://b.example https://b.example:8443]", false},
		{"xn--80ak6aa92e.com,localhost", "localhost xn--80ak6aa92e.com", "[https://localhost https://xn--80ak6aa92e.com]", false},
		{"https://proxy.example/{url}", "https://proxy.example/{url}", "[https://proxy.example]", false},
		{"https://proxy.example:8443/w?u={url}&w=1", "https://proxy.example:8443/w?u={url}&w=1", "[https://proxy.example:8443]", false},
	} {
		c, err := site.Config{Explorer: true, Pictures: tc.given}.WithDefaults()
		hosts, all := c.PictureHosts()
		if err != nil || c.Pictures != tc.want || fmt.Sprint(hosts) != tc.hosts || all != tc.all {
			t.Errorf("%q: got %q, %v, %t (%v), want %q, %s, %t", tc.given, c.Pictures, hosts, all, err, tc.want, tc.hosts, tc.all)
		}
		if again, err := c.WithDefaults(); err != nil || again != c {
			t.Errorf("%q again: got %+v, %v, want no change", tc.given, again, err)
		}
	}
	if c, err := (site.Config{Pictures: "off"}).WithDefaults(); err != nil || c.Pictures != "" {
		t.Errorf("without the explorer: got %q (%v), want nothing", c.Pictures, err)
	}
}

// Only host names get into the policy of a page.
func TestPicturesRefuses(t *testing.T) {
	for _, given := range []string{
		"off img.example", "ask img.example", "*", "*.", "https:", "img.example; script-src *", "'self'", "'unsafe-inline'", "data:", "img.example/path", "\"><script>",
		"a..b", "-a.example", "a.example:0", "a.example:", "аррӏе.com", "*.*.example", "user@a.example", "a.example;", strings.Repeat("a", 64) + ".example", strings.Repeat("a.example ", 500),
		"http://proxy.example/{url}", "https://proxy.example/", "https://proxy.example/{url}{url}", "https://{url}/", "https://{url}.example/x", "https:///{url}", "https://a@b.example/{url}",
		"https://proxy.example/{url}#x", "https://proxy.example/ {url}", "https://proxy.example/{url}'", "https://proxy.example;x/{url}", "https://*.proxy.example/{url}", "https://proxy.example{url}",
		"https://proxy.example/{url}\nx", "javascript://proxy.example/{url}", "https://a.example/{url} b.example", "https://PROXY.example;/{url}",
	} {
		_, err := site.Config{Explorer: true, Pictures: given}.WithDefaults()
		if given == strings.Repeat("a.example ", 500) {
			if err != nil {
				t.Errorf("the same host often: %v", err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "pictures") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want an error that names pictures", given, err)
		}
	}
}
