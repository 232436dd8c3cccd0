package generator_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// beforeAndAfter returns a snapshot, and the same with a small change: one more record, one list
// and one name less.
func beforeAndAfter() (before, after snapshot) {
	const a, b, c = "0x0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a", "0x0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
		"0x0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c"
	list := func(token, owner string) string { return `{"token_id":"` + token + `","owner":"` + owner + `"}` }
	follow := func(token, account string) string {
		return `{"token_id":"` + token + `","version":1,"record_type":"address","data":"` + account + `"}`
	}
	account := func(address, primary, name string) string {
		return `{"address":"` + address + `","primary_list":"` + primary + `","ens":{"name":"` + name + `"}}`
	}
	all := emptySnapshot().adding("lists", list("1", a), list("2", b)).
		adding("accounts", account(a, "1", "a.eth"), account(b, "2", "b.eth")).
		adding("records", follow("1", b), follow("2", a))
	before = all.adding("lists", list("3", c)).adding("accounts", account(c, "3", "gone.eth"))
	return before, all.adding("records", follow("1", c))
}

// A place is an output to test: a folder or a tar file.
type place struct {
	name string
	path string
	read func(testing.TB, string) objects
}

func places(t testing.TB) []place {
	t.Helper()
	return []place{
		{"folder", filepath.Join(t.TempDir(), "site"), readFolder},
		{"tar", filepath.Join(t.TempDir(), "site.tar"), readTar},
	}
}

func TestUnchangedSiteIsNotWritten(t *testing.T) {
	s, _ := beforeAndAfter()
	for _, p := range places(t) {
		t.Run(p.name, func(t *testing.T) {
			first := onDisk(t, s, p.path, small)
			if w, n := first.Written, len(p.read(t, p.path)); w != (summary.WriteReport{Added: n}) {
				t.Errorf("report of the first run: got %+v, want %d added", w, n)
			}
			state := stateOf(t, filepath.Dir(p.path))
			again := onDisk(t, s, p.path, small)
			untouched(t, filepath.Dir(p.path), state)
			if w := again.Written; !w.Unchanged || w.Kept != first.Written.Added || w.Added+w.Altered+w.Removed != 0 {
				t.Errorf("report of the second run: got %+v, want %d kept and unchanged", w, first.Written.Added)
			}
			if again.Counts != first.Counts {
				t.Errorf("counts of the second run: got %+v, want %+v", again.Counts, first.Counts)
			}
		})
	}
}

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	old, next := beforeAndAfter()
	want, was := inMemory(t, next, small), inMemory(t, old, small)
	var expected summary.WriteReport
	for key, body := range want {
		switch body {
		case was[key]:
			expected.Kept++
		default:
			expected.Altered++
			if _, ok := was[key]; !ok {
				expected.Added, expected.Altered = expected.Added+1, expected.Altered-1
			}
		}
	}
	expected.Removed = len(was) - expected.Kept - expected.Altered
	if expected.Kept == 0 || expected.Altered == 0 || expected.Removed == 0 {
		t.Fatalf("expected changes: got %+v, want some of each", expected)
	}
	for _, p := range places(t) {
		t.Run(p.name, func(t *testing.T) {
			onDisk(t, old, p.path, small)
			before := stateOf(t, p.path)
			report := onDisk(t, next, p.path, small)
			if report.Written != expected {
				t.Errorf("report: got %+v, want %+v", report.Written, expected)
			}
			if err := p.read(t, p.path).Compare(want); err != nil {
				t.Error(err)
			}
			alone(t, p.path)
			if p.name == "folder" {
				keptAre(t, p.path, before, func(key site.Key) bool { return want[key] == was[key] })
			}
		})
	}
}

// keptAre fails the test unless exactly the objects selected by keep are the same files as before.
func keptAre(t testing.TB, path string, before map[string]fileState, keep func(site.Key) bool) {
	t.Helper()
	for name, is := range stateOf(t, path) {
		key := site.Key(strings.TrimPrefix(name, "/"))
		if is.body == "" {
			continue // a folder
		}
		was := before[name]
		if same := is.inode == was.inode && is.changed.Equal(was.changed); same != keep(key) {
			t.Errorf("%s: the same file as before: got %t, want %t", key, same, keep(key))
		}
	}
}

// TestDryRun: a dry run reports what the next run does, and changes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"site", "site.tar"} {
		dir := t.TempDir()
		out := filepath.Join(dir, name)
		dry := small
		dry.DryRun = true
		for step, s := range []snapshot{beforeRefreshes(), beforeRefreshes(), beforeRefreshes().adding("records", recordRow("1", carol, `"new"`))} {
			before := namesIn(t, dir)
			got := onDisk(t, s, out, dry)
			if after := namesIn(t, dir); !slices.Equal(before, after) {
				t.Fatalf("%s, step %d: a dry run left %q, want %q", name, step, after, before)
			}
			want := onDisk(t, s, out, small)
			if got.Written != want.Written || got.Counts != want.Counts || !got.DryRun || want.DryRun {
				t.Errorf("%s, step %d: got %+v, want %+v", name, step, got, want)
			}
		}
	}
}

// namesIn returns the names in a folder.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRebuildWritesEverything(t *testing.T) {
	s, _ := beforeAndAfter()
	o := small
	o.Rebuild = true
	for _, p := range places(t) {
		t.Run(p.name, func(t *testing.T) {
			onDisk(t, s, p.path, small)
			before := stateOf(t, p.path)
			if w := onDisk(t, s, p.path, o).Written; w.Unchanged || w.Kept > 0 {
				t.Errorf("report: got %+v, want everything written again", w)
			}
			keptAre(t, p.path, before, func(site.Key) bool { return false })
			if err := p.read(t, p.path).Compare(inMemory(t, s, small)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOtherManifestDigits runs over a site whose manifest has more shards than the next one, like
// the site of a graph that shrank.
func TestOtherManifestDigits(t *testing.T) {
	old, next := beforeAndAfter()
	want, was := inMemory(t, next, small), inMemory(t, old, small)
	path := filepath.Join(t.TempDir(), "site")
	onDisk(t, old, path, small)
	reshard(t, path, was, 2)
	before := stateOf(t, path)
	report := onDisk(t, next, path, small)
	if err := readFolder(t, path).Compare(want); err != nil {
		t.Error(err)
	}
	keptAre(t, path, before, func(key site.Key) bool {
		return want[key] == was[key] && !strings.HasPrefix(string(key), "_manifest/")
	})
	if w := report.Written; w.Removed < 256 || w.Added < 16 || w.Added+w.Altered+w.Kept != len(want) {
		t.Errorf("report: got %+v, want 256 shards removed, 16 added, of %d objects", w, len(want))
	}
}

// reshard gives a site a manifest with another number of digits.
func reshard(t testing.TB, path string, o objects, digits int) {
	t.Helper()
	root := decode[site.Root](t, o[site.RootKey])
	root.ShardDigits = digits
	if err := os.RemoveAll(filepath.Join(path, "_manifest")); err != nil {
		t.Fatal(err)
	}
	for key, body := range memsite.New(t, root, o.WithoutIndex()) {
		if _, ok := o.WithoutIndex()[key]; !ok {
			overwrite(t, filepath.Join(path, string(key)), body)
		}
	}
	if err := check(readFolder(t, path)); err != nil {
		t.Fatalf("site with %d digits: got %v, want no error", digits, err)
	}
}

func overwrite(t testing.TB, path, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedSiteIsWrittenAnew: a site without a readable manifest is replaced completely.
func TestDamagedSiteIsWrittenAnew(t *testing.T) {
	old, next := beforeAndAfter()
	want := inMemory(t, next, small)
	damages := map[string]func(t testing.TB, path string){
		"root empty":           damage(site.RootKey, func(string) string { return "" }),
		"root cut off":         damage(site.RootKey, func(body string) string { return body[:len(body)/2] }),
		"root of another kind": damage(site.RootKey, func(body string) string { return strings.Replace(body, `"format":2`, `"format":99`, 1) }),
		"root of an older one": damage(site.RootKey, func(body string) string { return strings.Replace(body, `"format":2`, `"format":1`, 1) }),
		"manifest cut off":     damage("_manifest/", func(body string) string { return body[:len(body)/2] }),
		"manifest empty":       damage("_manifest/", func(string) string { return "" }),
		"manifest of another":  damage("_manifest/", func(string) string { return string(shards.Pack([]byte(`{"shard":"00","objects":[]}`))) }),
		"manifest gone": func(t testing.TB, path string) {
			if err := os.RemoveAll(filepath.Join(path, "_manifest")); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, do := range damages {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "site")
			onDisk(t, old, path, small)
			do(t, path)
			onDisk(t, next, path, small)
			if err := readFolder(t, path).Compare(want); err != nil {
				t.Error(err)
			}
			alone(t, path)
		})
	}
}

// damage rewrites every object of a site whose key begins with prefix.
func damage(prefix site.Key, change func(string) string) func(testing.TB, string) {
	return func(t testing.TB, path string) {
		t.Helper()
		for key, body := range readFolder(t, path) {
			if strings.HasPrefix(string(key), string(prefix)) {
				overwrite(t, filepath.Join(path, string(key)), change(body))
			}
		}
	}
}

// TestMissingObjectsAreWrittenAgain: whatever is deleted from a folder between runs, each run makes
// the same folder as a run into an empty one, even if nothing else changed. The same holds if a
// file was truncated, or replaced by a folder or a link.
func TestMissingObjectsAreWrittenAgain(t *testing.T) {
	t.Parallel()
	const seed = 20261128
	random := rand.New(rand.NewPCG(seed, 1))
	a, b := beforeAndAfter()
	snapshots := []snapshot{a, b}
	for name, o := range map[string]generator.Options{
		"spec": {Config: site.Config{LeaderboardMax: 10, Explorer: true}, NoSync: true}, "efp": smallEFP,
	} {
		fresh := []objects{inMemory(t, a, o), inMemory(t, b, o)}
		path := filepath.Join(t.TempDir(), "site")
		onDisk(t, a, path, o)
		var tops []string
		for _, top := range namesIn(t, path) {
			if top != string(site.RootKey) {
				tops = append(tops, top)
			}
		}
		was := 0
		run := func(lost []string, do func(path string) error) {
			t.Helper()
			for _, name := range lost {
				if err := do(filepath.Join(path, name)); err != nil {
					t.Fatal(err)
				}
			}
			is := random.IntN(2)
			dry := o
			dry.DryRun = true
			told := onDisk(t, snapshots[is], path, dry).Written
			w := onDisk(t, snapshots[is], path, o).Written
			if err := readFolder(t, path).Compare(fresh[is]); err != nil {
				t.Fatalf("%s, seed %d: without %q, site %d over %d: %v", name, seed, lost, is, was, err)
			}
			if told != w || w.Unchanged || w.Added+w.Altered+w.Kept+w.Restored != len(fresh[is]) || is == was && w.Restored == 0 {
				t.Errorf("%s: without %q, site %d over %d: got %+v, want those restored, and the same of a dry run: %+v", name, lost, is, was, w, told)
			}
			alone(t, path)
			was = is
		}
		for _, top := range tops {
			for range 2 { // the second run also replaces the result of the first
				run([]string{top}, os.RemoveAll)
			}
		}
		spoil := []func(name string) error{os.RemoveAll, func(name string) error { return os.Truncate(name, 0) }, func(name string) error {
			return errors.Join(os.Remove(name), os.Mkdir(name, 0o755))
		}, func(name string) error {
			return errors.Join(os.Remove(name), os.Symlink("/dev/null", name))
		}}
		for range servers.Rounds(10, 25) {
			var lost []string
			for key := range fresh[was] {
				if key != site.RootKey && !strings.HasPrefix(string(key), "_manifest/") && random.IntN(len(fresh[was])) < 3 {
					lost = append(lost, string(key))
				}
			}
			if len(lost) == 0 {
				lost = tops[:1]
				run(lost, os.RemoveAll)
				continue
			}
			run(lost, spoil[random.IntN(len(spoil))])
		}
	}
}

// TestTarThatIsNoSite: a file without a readable site may be anything, so it stays. An empty file
// has nothing to lose.
func TestTarThatIsNoSite(t *testing.T) {
	s, _ := beforeAndAfter()
	path := filepath.Join(t.TempDir(), "site.tar")
	onDisk(t, s, path, small)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"no tar file", string(whole[:len(whole)/2]), strings.Repeat("\x00", 1024)} {
		overwrite(t, path, body)
		_, err := generator.ToPath(t.Context(), s.fs(), path, small)
		wantError(t, err, "holds no site that this version can read", path)
		if now, err := os.ReadFile(path); err != nil || string(now) != body {
			t.Errorf("file of %d bytes: got %d (%v), want it unchanged", len(body), len(now), err)
		}
	}
	overwrite(t, path, "")
	onDisk(t, s, path, small)
	if err := readTar(t, path).Compare(inMemory(t, s, small)); err != nil {
		t.Error(err)
	}
}

// TestPermissionsStay: the next site has the permissions of the old one.
func TestPermissionsStay(t *testing.T) {
	old, next := beforeAndAfter()
	for _, name := range []string{"site", "site.tar"} {
		path := filepath.Join(t.TempDir(), name)
		onDisk(t, old, path, small)
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
		onDisk(t, next, path, small)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: got %v, %v, want 0700", name, info.Mode(), err)
		}
	}
}

// TestEverybodyCanRead: whatever the umask, a web server can read the site.
func TestEverybodyCanRead(t *testing.T) {
	old, next := beforeAndAfter()
	top := t.TempDir()
	path := filepath.Join(top, "www", "site")
	defer unix.Umask(unix.Umask(0o077))
	for i, s := range []snapshot{old, next} {
		onDisk(t, s, path, small)
		err := filepath.WalkDir(filepath.Dir(path), func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			want := fs.FileMode(0o644)
			if entry.IsDir() {
				want = fs.ModeDir | 0o755
			}
			if info, err := entry.Info(); err != nil || info.Mode() != want {
				t.Errorf("site %d, %s: got %v, %v, want %v", i, name, info.Mode(), err, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestTarIsReadOnce: the manifest of a tar file is at its end. Seeking it for each shard would take
// minutes with a large site.
func TestTarIsReadOnce(t *testing.T) {
	old, next := beforeAndAfter()
	path := filepath.Join(t.TempDir(), "site.tar")
	onDisk(t, old, path, small)
	files := &openCounter{Fs: afero.NewOsFs(), path: path}
	o := small
	o.Files = files
	onDisk(t, next, path, o)
	if n := files.opened.Load(); n > 3 {
		t.Errorf("times that the old site was opened: got %d, want at most 3", n)
	}
}

// An openCounter counts how often a file is opened.
type openCounter struct {
	afero.Fs
	path   string
	opened atomic.Int64
}

func (c *openCounter) Open(name string) (afero.File, error) {
	if name == c.path {
		c.opened.Add(1)
	}
	return c.Fs.Open(name)
}

// TestOtherConfig: a site under another base path replaces the old one completely.
func TestOtherConfig(t *testing.T) {
	s, _ := beforeAndAfter()
	path := filepath.Join(t.TempDir(), "site")
	onDisk(t, s, path, small)
	o := generator.Options{Config: site.Config{LeaderboardMax: 12, BasePath: "v2"}}
	onDisk(t, s, path, o)
	if err := readFolder(t, path).Compare(inMemory(t, s, o)); err != nil {
		t.Error(err)
	}
	onDisk(t, s, path, small)
	if err := readFolder(t, path).Compare(inMemory(t, s, small)); err != nil {
		t.Error(err)
	}
}

func TestOutputThatIsRefused(t *testing.T) {
	s, _ := beforeAndAfter()
	inside := func(name string) func(testing.TB, string) {
		return func(t testing.TB, path string) {
			t.Helper()
			onDisk(t, s, path, small)
			overwrite(t, filepath.Join(path, name), "precious")
		}
	}
	for name, test := range map[string]struct {
		out     string
		prepare func(t testing.TB, path string)
		reason  string
	}{
		"a foreign file in the site":   {"site", inside("notes.txt"), "holds notes.txt, which is not part of a site"},
		"a foreign folder in the site": {"site", inside("private/notes.txt"), "holds private, which is not part of a site"},
		"refreshed answers": {"site", inside("_refresh/details/1"), "holds _refresh, refreshed data, which would be lost; " +
			"generate into another folder, and update this one with followpress publish --dest file:///"},
		"a bucket with refreshed answers": {"site", func(t testing.TB, path string) {
			inside("_refresh/details/1")(t, path)
			overwrite(t, filepath.Join(path, ".followpress", "lock"), "")
		}, "holds _refresh, refreshed data, which would be lost"},
		"reports": {"site", inside("_reports/2026-01-31.html"), "holds _reports, reports, which would be lost; " +
			"generate into another folder, and update this one with followpress publish --dest file:///"},
		"a signed note": {"site", inside("_site.note"), "holds _site.note, the signed note of a bucket, which would be about another site; " +
			"generate into another folder, and update this one with followpress publish --dest file:///"},
		"what sites were made of": {"site", inside("_snapshot/index.json"), "holds _snapshot, inputs of sites, which would be lost; " +
			"generate into another folder, and update this one with followpress publish --dest file:///"},
		"a page in a site without explorer":   {"site", inside("index.html"), "holds index.html, which is not part of a site"},
		"a folder in a site without explorer": {"site", inside("_explore/mine"), "holds _explore, which is not part of a site"},
		"a bucket":                            {"site", inside(".followpress/lock"), "update this one with followpress publish --dest file:///"},
		"next to the base path":               {"site", inside("api/v2/mine"), "api holds v2, which is not part of a site"},
		"next to the endpoints":               {"site", inside("api/v1/mine"), "v1 holds mine, which is not part of a site"},
		"a folder named _site": {"site", func(t testing.TB, path string) {
			overwrite(t, filepath.Join(path, "_site", "index.html"), "precious")
			overwrite(t, filepath.Join(path, "thesis.txt"), "precious")
		}, "is not empty and holds no site"},
		"a file named _site": {"site", func(t testing.TB, path string) {
			overwrite(t, filepath.Join(path, "_site"), "precious")
			overwrite(t, filepath.Join(path, "docs", "a"), "precious")
		}, "holds docs, which is not part of a site"},
		"a folder of something else": {"site", func(t testing.TB, path string) {
			overwrite(t, filepath.Join(path, "notes.txt"), "precious")
		}, "is not empty and holds no site"},
		"a file":              {"site", func(t testing.TB, path string) { overwrite(t, path, "precious") }, "is a file"},
		"a folder named .tar": {"site.tar", func(t testing.TB, path string) { overwrite(t, filepath.Join(path, "x"), "") }, "is not a file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), test.out)
			test.prepare(t, path)
			state := stateOf(t, filepath.Dir(path))
			_, err := generator.ToPath(t.Context(), s.fs(), path, small)
			wantError(t, err, test.reason, path)
			untouched(t, filepath.Dir(path), state)
		})
	}
	t.Run("the root folder", func(t *testing.T) {
		_, err := generator.ToPath(t.Context(), s.fs(), "/", small)
		wantError(t, err, "the output cannot be /")
	})
}

func TestOutputThatIsAccepted(t *testing.T) {
	old, s := beforeAndAfter()
	want := inMemory(t, s, small)
	for name, prepare := range map[string]func(t testing.TB, dir string) (out, at string){
		"an empty folder": func(t testing.TB, dir string) (string, string) {
			path := filepath.Join(dir, "site")
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
			return path, path
		},
		"folders that are not there": func(_ testing.TB, dir string) (string, string) {
			path := filepath.Join(dir, "a", "b", "site")
			return path, path
		},
		"a trailing slash": func(_ testing.TB, dir string) (string, string) {
			return dir + "/site/", filepath.Join(dir, "site")
		},
		"a link to a site": func(t testing.TB, dir string) (string, string) {
			onDisk(t, old, filepath.Join(dir, "elsewhere", "real"), small)
			return link(t, filepath.Join("elsewhere", "real"), filepath.Join(dir, "site")), filepath.Join(dir, "elsewhere", "real")
		},
		"a link to an empty folder": func(t testing.TB, dir string) (string, string) {
			if err := os.MkdirAll(filepath.Join(dir, "elsewhere", "real"), 0o755); err != nil {
				t.Fatal(err)
			}
			return link(t, filepath.Join("elsewhere", "real"), filepath.Join(dir, "site")), filepath.Join(dir, "elsewhere", "real")
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, at := prepare(t, t.TempDir())
			report := onDisk(t, s, out, small)
			if report.Out != out {
				t.Errorf("output in the report: got %q, want %q", report.Out, out)
			}
			if err := readFolder(t, at).Compare(want); err != nil {
				t.Error(err)
			}
			alone(t, at)
			if info, err := os.Lstat(out); strings.HasPrefix(name, "a link") && (err != nil || info.Mode()&os.ModeSymlink == 0) {
				t.Errorf("link: got %v, %v, want a link still", info, err)
			}
		})
	}
}

// TestLinksInTheSiteAreNotFollowed: the old site is removed with foreign links in it, but not their
// targets.
func TestLinksInTheSiteAreNotFollowed(t *testing.T) {
	old, next := beforeAndAfter()
	for _, at := range []string{"_errors/link", "api/v1/lists/1/link", "_search"} {
		elsewhere := t.TempDir()
		overwrite(t, filepath.Join(elsewhere, "folder", "precious"), "precious")
		state := stateOf(t, elsewhere)
		path := filepath.Join(t.TempDir(), "site")
		onDisk(t, old, path, small)
		name := filepath.Join(path, at)
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		link(t, elsewhere, name)
		onDisk(t, next, path, small)
		untouched(t, elsewhere, state)
		if err := readFolder(t, path).Compare(inMemory(t, next, small)); err != nil {
			t.Error(err)
		}
		alone(t, path)
	}
}

func link(t testing.TB, to, name string) string {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
	return name
}
