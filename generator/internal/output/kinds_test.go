package output

import (
	"testing"

	"github.com/followpress/followpress/site"
)

// TestKindOf for keys inside and outside of the API, with any base path.
func TestKindOf(t *testing.T) {
	for _, c := range []struct{ base, key, want string }{
		{"api/v1", "api/v1/users/alice.eth/details", "api/v1/users/*/details"},
		{"api/v1", "api/v1/lists/7/recommended/details", "api/v1/lists/*/recommended/details"},
		{"api/v1", "api/v1/leaderboard/followers", "api/v1/leaderboard/*"},
		{"api/v1", "api/v1/stats", "api/v1/stats"},
		{"users/lists/x", "users/lists/x/users/0x1/details", "users/lists/x/users/*/details"},
		{"api/v1", "_search/lists/7/3", "_search/lists/*"},
		{"api/v1", "_search/users/0ab", "_search/users/*"},
		{"api/v1", "_variants/leaderboard/mutuals/limit=3", "_variants/leaderboard/*"},
		{"api/v1", "_errors/none", "_errors/*"},
		{"api/v1", "openapi.json", "openapi.json"},
	} {
		if got := kindOf(site.Key(c.key), c.base+"/").String(); got != c.want {
			t.Errorf("%s below %s: got %s, want %s", c.key, c.base, got, c.want)
		}
	}
}
