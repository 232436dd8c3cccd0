package generator_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/afero"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/followpress/followpress/generator"
)

// TestLinkToNowhereAbove: a link to an unmounted disk fails at once, wherever it is in the output's
// path.
func TestLinkToNowhereAbove(t *testing.T) {
	_, s := beforeAndAfter()
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk")
	links := map[string]string{
		"disk":        filepath.Join(dir, "no", "such", "disk"),
		"disk.tar":    "nowhere",
		"to-disk":     "disk",
		"over-a-disk": filepath.Join("disk", "folder"),
		"round":       "round",
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := stateOf(t, dir)
	for _, below := range []string{"", "site", "site.tar", "a/b/c/site"} {
		for name, reason := range map[string]string{
			"disk": disk + " is a link to nowhere: mount or make what it points to", "to-disk": " is a link to nowhere", "over-a-disk": " is a link to nowhere",
			"round": "too many links", "disk.tar": " is a link to nowhere",
		} {
			_, err := generator.ToPath(t.Context(), s.fs(), filepath.Join(dir, name, below), small)
			wantError(t, err, reason)
		}
	}
	untouched(t, dir, before)
}

// TestWorkFolderInTheWay: a link in place of the work folder is not followed.
func TestWorkFolderInTheWay(t *testing.T) {
	_, s := beforeAndAfter()
	for name, test := range map[string]struct {
		make   func(work string) error
		reason string
	}{
		"a file":            {func(work string) error { return os.WriteFile(work, nil, 0o644) }, "is not a folder: remove it"},
		"a link":            {func(work string) error { return os.Symlink(t.TempDir(), work) }, "is not a folder: remove it"},
		"a link to nowhere": {func(work string) error { return os.Symlink("nowhere", work) }, "is not a folder: remove it"},
		"its lock is a link": {func(work string) error {
			return errors.Join(os.Mkdir(work, 0o755), os.Symlink("no/where", filepath.Join(work, "lock")))
		}, "lock: too many levels of symbolic links"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := test.make(filepath.Join(dir, ".site.followpress")); err != nil {
				t.Fatal(err)
			}
			_, err := generator.ToPath(t.Context(), s.fs(), filepath.Join(dir, "site"), small)
			wantError(t, err, test.reason)
		})
	}
}

// TestCancelledBefore: a run canceled before it begins ends at once, whatever exists.
func TestCancelledBefore(t *testing.T) {
	_, s := beforeAndAfter()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, scene := range scenes(t) {
		_, err := generator.ToPath(ctx, s.fs(), scene.path, small)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got the error %v, want %v", err, context.Canceled)
		}
		untouched(t, filepath.Dir(scene.path), scene.state)
	}
}

// TestCancelledCleaningUp: removing many files can take a minute. A run canceled during it leaves
// the rest to the next run.
func TestCancelledCleaningUp(t *testing.T) {
	t.Cleanup(generator.SetPatience(0))
	old, next := beforeAndAfter()
	path := filepath.Join(t.TempDir(), "site")
	for stage, want := range map[string]snapshot{"write": old, "clean up": next} {
		onDisk(t, old, path, small)
		ctx, cancel := context.WithCancel(t.Context())
		o := small
		o.Progress = stages(func(name string) {
			if name == stage {
				cancel()
			}
		})
		_, err := generator.ToPath(ctx, next.fs(), path, o)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, generator.ErrLeftBehind) || !strings.Contains(err.Error(), ".site.followpress is left behind") {
			t.Errorf("cancelled in the stage %q: got the error %v, want one that names the leftovers", stage, err)
		}
		if err := readFolder(t, path).Compare(inMemory(t, want, small)); err != nil {
			t.Errorf("cancelled in the stage %q: got another site, want the expected one: %v", stage, err)
		}
		left := filepath.Join(filepath.Dir(path), ".site.followpress", "next", "_site")
		if _, err := os.Stat(left); stage == "clean up" && err != nil {
			t.Errorf("old site, which should be left: got %v, want it", err)
		}
		onDisk(t, next, path, small)
		alone(t, path)
	}
}

// TestLockBeforeLook: another run may replace the output until this one has the lock, so the old
// site is read after locking.
func TestLockBeforeLook(t *testing.T) {
	old, next := beforeAndAfter()
	for _, p := range places(t) {
		onDisk(t, old, p.path, small)
		var looks atomic.Int32 // several goroutines check files of the old site
		o := small
		o.Files = lookedAt{afero.NewOsFs(), p.path, func() {
			if looks.Add(1) > 1 {
				return
			}
			_, err := generator.ToPath(t.Context(), next.fs(), p.path, small)
			if !errors.Is(err, generator.ErrBusy) {
				t.Errorf("%s: another run while this one reads the old site: got the error %v, want %v", p.name, err, generator.ErrBusy)
			}
		}}
		onDisk(t, old, p.path, o)
		if looks.Load() == 0 {
			t.Errorf("%s: got no reads, want some", p.name)
		}
		if err := p.read(t, p.path).Compare(inMemory(t, old, small)); err != nil {
			t.Errorf("%s: got another site, want the old one: %v", p.name, err)
		}
	}
}

// lookedAt calls back before anything at or below a path is read.
type lookedAt struct {
	afero.Fs
	path string
	call func()
}

func (l lookedAt) see(name string) {
	if strings.HasPrefix(name, l.path) {
		l.call()
	}
}

func (l lookedAt) Stat(name string) (fs.FileInfo, error) { l.see(name); return l.Fs.Stat(name) }
func (l lookedAt) Open(name string) (afero.File, error)  { l.see(name); return l.Fs.Open(name) }

// TestFoldedNames: if the file system does not distinguish two names of the site, the run fails and
// leaves nothing. Names that it distinguishes are accepted.
func TestFoldedNames(t *testing.T) {
	full := func(text string) string { return norm.NFD.String(cases.Fold().String(text)) }
	for _, test := range []struct {
		name   string
		fold   func(string) string
		names  []string
		refuse bool
	}{
		{"letter case, in full", full, []string{"b.eth", "σ.eth", "ς.eth"}, true},
		{"letter case, in full", full, []string{"a.eth", "b.eth", "é.eth", "e.eth", "👩‍🚀.eth", "👩🚀.eth"}, false},
		{"lower case", strings.ToLower, []string{"σ.eth", "ς.eth", "straße.eth", "strasse.eth"}, false},
		{"compatible forms", norm.NFKC.String, []string{"ﬁ.eth", "fi.eth"}, true},
	} {
		t.Run(fmt.Sprint(test.name, test.names), func(t *testing.T) {
			s := named(test.names...)
			dir := t.TempDir()
			path := filepath.Join(dir, "site")
			o := small
			o.Files = foldingFiles{afero.NewOsFs(), dir, test.fold}
			_, err := generator.ToPath(t.Context(), s.fs(), path, o)
			if !test.refuse {
				if err != nil {
					t.Fatal(err)
				}
				if got, want := len(readFolder(t, path)), len(inMemory(t, s, small)); got != want {
					t.Errorf("got %d objects, want %d", got, want)
				}
				return
			}
			wantError(t, err, "the file system of the output treats another name as equal to "+dir, "use a .tar file")
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("output: got %v (%v), want nothing", entries, err)
			}
			// A tar file distinguishes them.
			onDisk(t, s, path+".tar", o)
		})
	}
}

// named returns a snapshot of accounts with these names.
func named(names ...string) snapshot {
	s := emptySnapshot()
	for i, name := range names {
		address := fmt.Sprintf("0x%040x", i+1)
		s = s.adding("lists", fmt.Sprintf(`{"token_id":"%d","owner":"%s"}`, i, address)).
			adding("accounts", fmt.Sprintf(`{"address":"%s","primary_list":"%d","ens":{"name":%s}}`, address, i, quote(name)))
	}
	return s
}

// foldingFiles is a file system that folds names below a folder. (Not every kernel has casefold on
// ext4 and tmpfs.)
type foldingFiles struct {
	afero.Fs
	dir  string
	fold func(string) string
}

func (f foldingFiles) name(name string) string {
	if rel, ok := strings.CutPrefix(name, f.dir); ok {
		return f.dir + f.fold(rel)
	}
	return name
}

func (f foldingFiles) Mkdir(name string, mode fs.FileMode) error {
	return f.Fs.Mkdir(f.name(name), mode)
}
func (f foldingFiles) MkdirAll(name string, mode fs.FileMode) error {
	return f.Fs.MkdirAll(f.name(name), mode)
}
func (f foldingFiles) Stat(name string) (fs.FileInfo, error) { return f.Fs.Stat(f.name(name)) }
func (f foldingFiles) Open(name string) (afero.File, error)  { return f.Fs.Open(f.name(name)) }
func (f foldingFiles) OpenFile(name string, flag int, mode fs.FileMode) (afero.File, error) {
	return f.Fs.OpenFile(f.name(name), flag, mode)
}

// stageNames records the stages of a run.
type stageNames []string

func (s *stageNames) Stage(name string, _ int64) { *s = append(*s, name) }
func (s *stageNames) AddBytes(int64, int64)      {}
