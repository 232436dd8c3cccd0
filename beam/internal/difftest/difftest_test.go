package difftest_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/beam/internal/difftest"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
)

// All cases have a site, each case always the same one, and together they cover every feature.
func TestRandom(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(20) {
		c := difftest.Random(t, seed)
		want, report := c.Want(t)
		if seed < 4 {
			if again, _ := difftest.Random(t, seed).Want(t); difftest.Diff(again, want) != "" {
				t.Errorf("%s: two runs made different sites", c.Name)
			}
		}
		add := func(what string, n int) { seen[what] += n }
		for table, r := range report.Tables {
			add("skipped of "+table, r.Skipped)
			for reason, n := range r.WithoutEffect {
				add(table+" without effect: "+reason, n)
			}
		}
		if r := report.Refreshed; r != nil {
			add("refreshed profiles", r.Profiles)
			add("refreshed badges", r.Badges)
			add("older refreshes", r.Older)
			add("skipped refreshes", r.Skipped)
		}
		root, err := site.ParseRoot([]byte(want[site.RootKey]))
		if err != nil || root.Inputs == nil || len(root.Inputs.Tables) < 5 {
			t.Fatalf("%s: got %+v and the error %v, want its input tables", c.Name, root.Inputs, err)
		}
		add("chains in the root", len(root.Inputs.Chains))
		if seed < 4 {
			add("chains in the root, on Flink", len(root.Inputs.Chains)) // Flink covers this case
		}
		if root.Inputs.Refreshed != nil {
			add("refreshes in the root", 1)
		}
		add("repeated records", report.Repeated)
		add("long texts", report.LongTexts.LeftOut)
		add("entries that are not strings", report.NoTexts.Entries)
		add("dates in another form", report.OtherDates)
		add("operations that are shown", report.Operations)
		for key := range want {
			for part := range strings.SplitSeq(string(key), "/") {
				seen[part]++
			}
		}
		names, err := os.ReadDir(c.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			stem, ending, _ := strings.Cut(name.Name(), ".")
			add("files "+ending, 1)
			if strings.Contains(stem, "-") {
				add("parts", 1)
			}
		}
	}
	for _, what := range []string{
		"skipped of lists", "skipped of accounts", "skipped of records", "skipped of badges", "skipped of recommended", "skipped of ops",
		"refreshed profiles", "refreshed badges", "older refreshes", "skipped refreshes", "repeated records", "long texts",
		"entries that are not strings", "dates in another form",
		"files ndjson", "files ndjson.gz", "files ndjson.zst", "parts", "recommended", "taggedAs", "_explore", "some",
		"records without effect: unknown list", "ops without effect: unknown list", "notifications", "activity", "recent", "operations that are shown",
		"chains in the root", "chains in the root, on Flink", "refreshes in the root",
	} {
		if seen[what] == 0 {
			t.Errorf("%s: got no case with it, want at least one", what)
		}
	}
}

func TestDiff(t *testing.T) {
	c := difftest.Random(t, 1)
	want, _ := c.Want(t)
	if diff := difftest.Diff(want, want); diff != "" {
		t.Fatalf("a site and itself: got a difference, want none:\n%s", diff)
	}
	keys := want.Keys(t)
	got := want.With(t, func(objects memsite.Site, _ *site.Root) {
		delete(objects, keys[0])
		objects["api/v1/lists/999999/details"] = "{}"
		objects[keys[1]] += "more"
	})
	diff := difftest.Diff(got, want)
	for _, part := range []string{
		"1 of ", "objects are missing", "objects are extra: 1 api/v1/lists/*/details", string(keys[0]), "999999", string(keys[1]) + ": at byte", "more",
	} {
		if !strings.Contains(diff, part) {
			t.Errorf("got a difference without %q:\n%s", part, diff)
		}
	}
	got = maps.Clone(want)
	got[site.RootKey] += " "
	if diff := difftest.Diff(got, want); !strings.Contains(diff, "different: 1 _site") {
		t.Errorf("another root: got %q, want a difference", diff)
	}
}

func TestParts(t *testing.T) {
	c := difftest.Random(t, 3)
	want, _ := c.Want(t)
	folder := t.TempDir()
	write := func(name string, keys []site.Key, end bool) {
		var b bytes.Buffer
		archive := tar.NewWriter(&b)
		for _, key := range keys {
			header := &tar.Header{Typeflag: tar.TypeReg, Name: string(key), Size: int64(len(want[key])), Mode: 0o644, ModTime: time.Unix(5, 0)}
			if err := archive.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
			if _, err := archive.Write([]byte(want[key])); err != nil {
				t.Fatal(err)
			}
		}
		finish := archive.Flush
		if end {
			finish = archive.Close
		}
		if err := finish(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	keys := slices.Sorted(maps.Keys(want))
	keys = slices.DeleteFunc(keys, func(key site.Key) bool { return key == site.RootKey })
	half := len(keys) / 2
	write("part-00", keys[:half], false)
	write("part-01", keys[half:], false)
	write("part-root", []site.Key{site.RootKey}, true)
	c.Check(t, folder)
	if got := fmt.Sprint(len(difftest.Read(t, folder))); got != fmt.Sprint(len(want)) {
		t.Errorf("got %s objects, want %d", got, len(want))
	}
}
