package site_test

import (
	"strings"
	"testing"

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
	} {
		got, err := tc.config.WithDefaults()
		if err != nil || got != tc.want {
			t.Errorf("%+v with defaults: got %+v, %v, want %+v", tc.config, got, err, tc.want)
		}
		if again, err := got.WithDefaults(); err != nil || again != got {
			t.Errorf("%+v with defaults again: got %+v, %v, want no change", got, again, err)
		}
	}
}

// A refusal names the option and shows the value that was given.
func TestConfigRefuses(t *testing.T) {
	const path, field, maximum, longest = "base path", "badges field", "leaderboard maximum", "longest profile text"
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
