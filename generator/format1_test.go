package generator_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
)

// TestGenerateReplacesFormat1: a site that a version before format 2 has made is replaced, as a folder and as a tar file, and the
// files of objects that are the same are kept.
func TestGenerateReplacesFormat1(t *testing.T) {
	old := memsite.ReadTar(t, "../fixtures/format1/site.tar.gz")
	snapshot := afero.NewBasePathFs(afero.NewOsFs(), "../fixtures/format1/snapshot")
	o := generator.Options{Config: site.Config{LeaderboardMax: 10}}
	files, _, err := generator.ToMemory(t.Context(), snapshot, o)
	if err != nil {
		t.Fatal(err)
	}
	want, err := memsite.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for key, body := range want.WithoutIndex() {
		if old[key] == body {
			same++
		}
	}
	for _, name := range []string{"site", "site.tar"} {
		path := old.Write(t, filepath.Join(t.TempDir(), name))
		before := map[string]fileState{}
		if name == "site" {
			before = stateOf(t, path)
		}
		report, err := generator.ToPath(t.Context(), snapshot, path, o)
		if err != nil {
			t.Fatal(err)
		}
		if w := report.Written; w.Kept != same || w.Added+w.Altered+w.Kept != len(want) {
			t.Errorf("%s: got %+v, want %d of %d objects kept", name, w, same, len(want))
		}
		if name != "site" {
			continue
		}
		if err := readFolder(t, path).Compare(want); err != nil {
			t.Error(err)
		}
		keptAre(t, path, before, func(key site.Key) bool {
			return want[key] == old[key] && !strings.HasPrefix(string(key), "_manifest/")
		})
		if report, err = generator.ToPath(t.Context(), snapshot, path, o); err != nil || !report.Written.Unchanged {
			t.Errorf("again: got %+v, %v, want it unchanged", report, err)
		}
	}
}
