package generator_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// sparing is small with a spare.
var sparing = func() generator.Options {
	o := small
	o.KeepSpare = true
	return o
}()

// spareOf is where the spare of a site is.
func spareOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".followpress", "spare")
}

// spareOnly fails the test unless the work folder has a spare and nothing else.
func spareOnly(t testing.TB, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(spareOf(path)))
	if err != nil || len(entries) != 1 || entries[0].Name() != "spare" {
		t.Errorf("work folder: got %v, %v, want only the spare", entries, err)
	}
}

// plainFiles fails the test if there is anything but folders and files that are no links.
func plainFiles(t testing.TB, path string) {
	t.Helper()
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !entry.Type().IsRegular() {
			t.Errorf("%s: got a %v, want a file", name, entry.Type())
		}
		if entry.IsDir() && err == nil {
			if below, err := os.ReadDir(name); err == nil && len(below) == 0 {
				t.Errorf("%s: got an empty folder, want none", name)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSpareIsPatched: from the third site on, runs turn the spare into the new site. The result is what
// it would be without, and nothing changes what was exchanged out.
func TestSpareIsPatched(t *testing.T) {
	t.Parallel()
	a := syntheticSnapshot(t, graph.Options{Accounts: 30, Lists: 22, Records: 250, Seed: 1})
	b := shrunk(a)
	c := syntheticSnapshot(t, graph.Options{Accounts: 25, Lists: 20, Records: 150, Seed: 2})
	for name, o := range map[string]generator.Options{"spec": small, "efp": smallEFP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "site")
			sites := []objects{inMemory(t, a, o), inMemory(t, b, o), inMemory(t, c, o)}
			o.KeepSpare = true
			was := objects(nil)
			for i, n := range []int{0, 1, 0, 1, 2, 2, 0} {
				want := sites[n]
				report := onDisk(t, []snapshot{a, b, c}[n], path, o)
				if err := readFolder(t, path).Compare(want); err != nil {
					t.Fatalf("site %d: %v", i, err)
				}
				plainFiles(t, path)
				if report.Written.Unchanged {
					continue
				}
				if patched := report.Spare == "patched"; patched != (i >= 2) {
					t.Errorf("site %d: report: got spare %q, want it patched: %t", i, report.Spare, i >= 2)
				}
				if i > 0 {
					spareOnly(t, path)
					if err := readFolder(t, spareOf(path)).Compare(was); err != nil {
						t.Errorf("spare after site %d: %v", i, err)
					}
					if w := report.Written; w.Added+w.Altered+w.Kept != len(want) {
						t.Errorf("site %d: report: got %+v, want %d objects", i, w, len(want))
					}
				}
				was = want
			}
		})
	}
}

// TestSpareKeepsFiles: only what differs is written, also in the first site that is made of a spare,
// whose files are shared with the live one.
func TestSpareKeepsFiles(t *testing.T) {
	old, next := beforeAndAfter()
	want, was := inMemory(t, old, small), inMemory(t, next, small)
	path := filepath.Join(t.TempDir(), "site")
	for _, s := range []snapshot{old, next, old, next} {
		onDisk(t, s, path, sparing)
	}
	before := stateOf(t, spareOf(path)) // of the site of old
	live := stateOf(t, path)
	if report := onDisk(t, old, path, sparing); report.Spare != "patched" {
		t.Fatalf("report: got spare %q, want it patched", report.Spare)
	}
	keptAre(t, path, before, func(key site.Key) bool { return key != site.RootKey })
	for name, is := range stateOf(t, spareOf(path)) {
		if is != live[name] {
			t.Errorf("%s was live: got %+v, want %+v", name, is, live[name])
		}
	}
	if err := readFolder(t, path).Compare(want); err != nil {
		t.Error(err)
	}
	if err := readFolder(t, spareOf(path)).Compare(was); err != nil {
		t.Error(err)
	}
}

// withSpare makes a site and a spare, and returns what the next run over them should make.
func withSpare(t testing.TB, o generator.Options) (path string, next snapshot) {
	t.Helper()
	a, b := beforeAndAfter()
	path = filepath.Join(t.TempDir(), "site")
	onDisk(t, a, path, o)
	onDisk(t, b, path, o)
	spareOnly(t, path)
	return path, a.adding("lists", manyLists(1)...).
		adding("records", `{"token_id":"2","version":1,"record_type":"address","data":"`+alice+`"}`)
}

// TestTamperedSpare: whatever somebody does to the folders of a spare, the new site is what it should be,
// and nothing outside of the work folder changes but it. What was written into a file stays there if the
// object did not change, as it does in a live site.
func TestTamperedSpare(t *testing.T) {
	const records = "api/v1/lists/1/records"
	edit := func(name string, change func(string) string) func(testing.TB, string) {
		return func(t testing.TB, spare string) {
			t.Helper()
			name := filepath.Join(spare, name)
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			// As a tool that restores times: nothing shows but ctime. Another file than the live one.
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			dir, err := os.Stat(filepath.Dir(name))
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, name, change(string(body)))
			setTime(t, name, info.ModTime())
			setTime(t, filepath.Dir(name), dir.ModTime())
		}
	}
	other := func(body string) string { return strings.Repeat("x", len(body)) }
	empty := func(string) string { return "" }
	at := func(name string, do func(string) error) func(testing.TB, string) {
		return func(t testing.TB, spare string) {
			t.Helper()
			if err := do(filepath.Join(spare, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		do      func(t testing.TB, spare string)
		patched bool                // whether the spare is used nevertheless
		stays   func(string) string // what becomes of the edited file; nil for what it should be
	}{
		"nothing":              {func(testing.TB, string) {}, true, nil},
		"a file edited":        {edit(records, other), false, nil},
		"a file emptied":       {edit(records, empty), false, nil},
		"edited in place":      {inPlace(records, other), true, other},
		"emptied in place":     {inPlace(records, empty), true, empty},
		"what changes, edited": {inPlace("api/v1/lists/2/records", other), true, nil},
		"the same, written":    {inPlace(records, func(body string) string { return body }), true, nil},
		"mode changed":         {at(records, func(name string) error { return os.Chmod(name, 0o600) }), true, nil},
		"a file gone":          {at(records, os.Remove), false, nil},
		"a folder gone":        {at("api/v1/lists/1", os.RemoveAll), false, nil},
		"everything gone":      {at("", os.RemoveAll), false, nil},
		"a foreign file":       {at("api/v1/lists/1/mine", func(name string) error { return os.WriteFile(name, nil, 0o644) }), false, nil},
		"a foreign folder":     {at("api/v1/lists/mine", func(name string) error { return os.Mkdir(name, 0o755) }), false, nil},
		"foreign at the top":   {at("mine", func(name string) error { return os.WriteFile(name, nil, 0o644) }), false, nil},
		"refreshed":            {at("_refresh", func(name string) error { return os.Mkdir(name, 0o755) }), false, nil},
		"a bucket":             {at(".followpress", func(name string) error { return os.Mkdir(name, 0o755) }), false, nil},
		"folder mode changed":  {at("api/v1/lists/1", func(name string) error { return os.Chmod(name, 0o700) }), false, nil},
		"no root":              {at("_site", os.Remove), false, nil},
		"root empty":           {edit("_site", empty), false, nil},
		"root of the future":   {edit("_site", func(body string) string { return strings.Replace(body, `"format":2`, `"format":99`, 1) }), false, nil},
		"root touched": {at("_site", func(name string) error {
			now := time.Now()
			return os.Chtimes(name, now, now)
		}), false, nil},
		"shards edited": {func(t testing.TB, spare string) {
			t.Helper()
			files, err := os.ReadDir(filepath.Join(spare, "_manifest"))
			if err != nil {
				t.Fatal(err)
			}
			for _, shard := range files {
				inPlace(filepath.Join("_manifest", shard.Name()), func(body string) string {
					text := manifestText(t, body)
					return string(shards.Pack([]byte(strings.ReplaceAll(text, `"size":1`, `"size":2`))))
				})(t, spare)
			}
		}, false, nil},
		"another file system's link": {at(records, func(name string) error {
			if err := os.Remove(name); err != nil {
				return err
			}
			return os.Symlink("/etc/hostname", name)
		}), false, nil},
		"a folder that is a link": {at("api/v1/lists/1", func(name string) error {
			live := strings.Replace(name, ".site.followpress/spare", "site", 1)
			if err := os.RemoveAll(name); err != nil {
				return err
			}
			return os.Symlink(live, name)
		}), false, nil},
		"a link to the live site": {at("", func(name string) error {
			if err := os.RemoveAll(name); err != nil {
				return err
			}
			return os.Symlink("../site", name)
		}), false, nil},
		"a copy of the live site": {func(t testing.TB, spare string) {
			t.Helper()
			if err := os.RemoveAll(spare); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(spare, os.DirFS(filepath.Join(filepath.Dir(spare), "..", "site"))); err != nil {
				t.Fatal(err)
			}
		}, false, nil},
		"a file": {at("", func(name string) error {
			if err := os.RemoveAll(name); err != nil {
				return err
			}
			return os.WriteFile(name, []byte("x"), 0o644)
		}), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, next := withSpare(t, sparing)
			time.Sleep(20 * time.Millisecond) // the clock of files is coarse
			test.do(t, spareOf(path))
			old := readFolder(t, path)
			report := onDisk(t, next, path, sparing)
			if patched := report.Spare == "patched"; patched != test.patched {
				t.Errorf("report: got spare %q, want it patched: %t", report.Spare, test.patched)
			}
			want := inMemory(t, next, small)
			if test.stays != nil {
				want[records] = test.stays(want[records])
			}
			if err := readFolder(t, path).Compare(want); err != nil {
				t.Error(err)
			}
			plainFiles(t, path)
			spareOnly(t, path)
			if err := readFolder(t, spareOf(path)).Compare(old); err != nil {
				t.Errorf("what was live: %v", err)
			}
		})
	}
}

// inPlace writes to a file of the spare that no other site shares, and restores its time.
func inPlace(name string, change func(string) string) func(testing.TB, string) {
	return func(t testing.TB, spare string) {
		t.Helper()
		name := filepath.Join(spare, name)
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		unshare(t, name, filepath.Join(filepath.Dir(spare), "..", "site"), spare)
		overwrite(t, name, change(string(body)))
		setTime(t, name, info.ModTime())
	}
}

// unshare removes the live site's link to a file, and gives that its own one.
func unshare(t testing.TB, name, live, spare string) {
	t.Helper()
	at := filepath.Join(live, strings.TrimPrefix(name, spare))
	body, err := os.ReadFile(at)
	if err != nil {
		return // the live site does not have it
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	overwrite(t, at, string(body))
}

func setTime(t testing.TB, name string, to time.Time) {
	t.Helper()
	if err := os.Chtimes(name, to, to); err != nil {
		t.Fatal(err)
	}
}

// TestTamperedLiveSite: what somebody did to a live site does not come back when that is a spare.
func TestTamperedLiveSite(t *testing.T) {
	path, next := withSpare(t, sparing)
	time.Sleep(20 * time.Millisecond)
	overwrite(t, filepath.Join(path, "api/v1/lists/1/mine"), "foreign")
	if err := os.RemoveAll(filepath.Join(path, "_errors")); err != nil {
		t.Fatal(err)
	}
	_, b := beforeAndAfter()
	for i, s := range []snapshot{next, b, next} {
		onDisk(t, s, path, sparing)
		if err := readFolder(t, path).Compare(inMemory(t, s, small)); err != nil {
			t.Errorf("site %d: %v", i, err)
		}
	}
}

// TestSpareOfAnotherConfiguration: its site is not turned into one of another API or path.
func TestSpareOfAnotherConfiguration(t *testing.T) {
	path, next := withSpare(t, sparing)
	for i, c := range []site.Config{{BasePath: "v2"}, {API: site.APIEFP, LeaderboardMax: 10}, {LeaderboardMax: 12}, small.Config} {
		o := sparing
		o.Config = c
		report := onDisk(t, next, path, o)
		if !strings.Contains(report.Spare, "another configuration") {
			t.Errorf("run %d: report: got spare %q, want why it was not used", i, report.Spare)
		}
		if !strings.Contains(report.String(), "all folders made again because the spare is not used: ") {
			t.Errorf("run %d: got %s, want why the spare was not used", i, report)
		}
		if err := readFolder(t, path).Compare(inMemory(t, next, o)); err != nil {
			t.Error(err)
		}
	}
}

// TestSpareIsRemoved: by runs that do not want one, that rebuild, or have no live site. A run that
// changes nothing, or fails before it writes, leaves it.
func TestSpareIsRemoved(t *testing.T) {
	rebuild := sparing
	rebuild.Rebuild = true
	_, live := beforeAndAfter()
	for name, o := range map[string]generator.Options{"no spare": small, "rebuild": rebuild} {
		for _, changed := range []bool{false, true} {
			path, next := withSpare(t, sparing)
			if !changed {
				next = live
			}
			onDisk(t, next, path, o)
			alone(t, path)
			if err := readFolder(t, path).Compare(inMemory(t, next, small)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	path, next := withSpare(t, sparing)
	before := stateOf(t, spareOf(path))
	onDisk(t, live, path, sparing)
	if _, err := generator.ToPath(t.Context(), next.without("lists.ndjson").fs(), path, sparing); err == nil {
		t.Error("run without lists: got no error, want one")
	}
	spareOnly(t, path)
	untouched(t, spareOf(path), before)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	onDisk(t, next, path, sparing)
	alone(t, path)
	if err := readFolder(t, path).Compare(inMemory(t, next, small)); err != nil {
		t.Error(err)
	}
}

// TestSpareOnFullDisk: a disk that is full while the spare is changed leaves the live site as it is.
func TestSpareOnFullDisk(t *testing.T) {
	a, b := beforeAndAfter()
	disk := mountSmallDisk(t, "size=2m")
	path := filepath.Join(disk, "site")
	for _, s := range []snapshot{a, b} {
		onDisk(t, s, path, sparing)
	}
	before := stateOf(t, path)
	for range 2 {
		_, err := generator.ToPath(t.Context(), a.adding("lists", manyLists(400)...).fs(), path, sparing)
		wantError(t, err, unix.ENOSPC.Error())
		untouched(t, path, before)
	}
	onDisk(t, a, path, sparing)
	if err := readFolder(t, path).Compare(inMemory(t, a, small)); err != nil {
		t.Error(err)
	}
}
