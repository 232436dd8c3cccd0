package generator_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
)

// TestKindsAddUp: the kinds cover all objects and bytes, ordered by bytes, and there are few of
// them.
func TestKindsAddUp(t *testing.T) {
	t.Parallel()
	for _, api := range []string{site.APISpec, site.APIEFP} {
		files, report, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{Config: site.Config{API: api}})
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
		want := summary.KindReport{Keys: "api/v1/lists/*/details", Objects: details, Bytes: detailsBytes}
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
