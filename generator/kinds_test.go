package generator

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/site"
)

// TestKindOf: also for keys outside of the API, and whatever the base path.
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

// TestKindsAddUp: kinds have all objects and bytes, the most bytes first, each object that has a key like theirs, and
// there are few of them.
func TestKindsAddUp(t *testing.T) {
	t.Parallel()
	for _, api := range []string{site.APISpec, site.APIEFP} {
		files, report, err := ToMemory(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, Options{Config: site.Config{API: api}})
		if err != nil {
			t.Fatal(err)
		}
		var objects, bytes int64
		for i, k := range report.Kinds {
			objects, bytes = objects+k.Objects, bytes+k.Bytes
			if i > 0 && k.Bytes > report.Kinds[i-1].Bytes {
				t.Errorf("%s: %s is not in the order of bytes", api, k.Keys)
			}
		}
		if objects != int64(report.Counts.Objects) || bytes != report.Counts.Bytes || len(report.Kinds) > 60 {
			t.Errorf("%s: got %d kinds with %d objects and %d bytes, want all %d and %d", api, len(report.Kinds), objects, bytes, report.Counts.Objects, report.Counts.Bytes)
		}
		var details, detailsBytes int64
		if err := afero.Walk(files, "", func(path string, info fs.FileInfo, err error) error {
			if err == nil && !info.IsDir() && strings.Contains(path, "/lists/") && filepath.Base(path) == "details" {
				details, detailsBytes = details+1, detailsBytes+info.Size()
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		want := KindReport{"api/v1/lists/*/details", details, detailsBytes}
		found := false
		for _, k := range report.Kinds {
			found = found || k == want
		}
		if !found || details == 0 {
			t.Errorf("%s: got the kinds %v, want among them %v", api, report.Kinds, want)
		}
		if !strings.Contains(report.String(), "\nbytes     ") || !strings.Contains(report.String(), "% "+report.Kinds[0].Keys) {
			t.Errorf("%s: the report does not name %s:\n%s", api, report.Kinds[0].Keys, report)
		}
	}
}
