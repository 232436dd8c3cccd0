package staging

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyATargetIsRestored: a run without a target restores the one that a killed run left between
// two renames, and nothing else.
func TestOnlyATargetIsRestored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		folder   bool
		left     func(last string) error
		restored bool
	}{
		"a folder":                 {true, func(last string) error { return os.MkdirAll(filepath.Join(last, "api"), 0o755) }, true},
		"a file":                   {false, func(last string) error { return os.WriteFile(last, []byte("old"), 0o644) }, true},
		"nothing":                  {true, func(string) error { return nil }, false},
		"what the probe leaves":    {true, func(last string) error { return os.MkdirAll(filepath.Join(last, probeEntry), 0o755) }, false},
		"a file, not a folder":     {true, func(last string) error { return os.WriteFile(last, nil, 0o644) }, false},
		"a folder, not a file":     {false, func(last string) error { return os.Mkdir(last, 0o755) }, false},
		"a link to a folder":       {true, func(last string) error { return os.Symlink(os.TempDir(), last) }, false},
		"a link, not a file":       {false, func(last string) error { return os.Symlink("/dev/null", last) }, false},
		"a folder without entries": {true, func(last string) error { return os.Mkdir(last, 0o755) }, true},
	} {
		target := filepath.Join(t.TempDir(), "out")
		last := filepath.Join(filepath.Dir(target), ".out.work", "last")
		if err := errors.Join(os.Mkdir(filepath.Dir(last), 0o755), test.left(last)); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), Options{Target: target, Folder: test.folder, What: "site", Suffix: ".work"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if Exists(target) != test.restored {
			t.Errorf("%s: restored: got %t, want %t", name, Exists(target), test.restored)
		}
		if Exists(last) {
			t.Errorf("%s: %s is left, want nothing", name, last)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestProbeLeavesNothing: after the probe the target is as it was, and a probe that is cut off at any step leaves nothing
// that a later run takes for a target.
func TestProbeLeavesNothing(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "out")
	if err := os.MkdirAll(filepath.Join(target, "api"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Target: target, Folder: true, What: "site", Suffix: ".work"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckReplaceable(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 1 || entries[0].Name() != "lock" {
		t.Errorf("after the probe: got %v, %v, want only the lock", entries, err)
	}
	// As if the run had been killed within the probe, and the target removed afterwards.
	if err := errors.Join(os.MkdirAll(filepath.Join(s.last(), probeEntry), 0o755), os.RemoveAll(target), s.recover(t.Context())); err != nil {
		t.Fatal(err)
	}
	if Exists(target) {
		t.Error("the probe was restored as the target")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(target))
	if err != nil || len(entries) > 0 {
		t.Errorf("in the end: got %v, %v, want nothing", entries, err)
	}
}

// TestOldTargetIsPutBack: where two folders cannot be exchanged and the second of two renames fails, the old target is in
// its place again.
func TestOldTargetIsPutBack(t *testing.T) {
	t.Cleanup(func() { swap, move = exchange, rename })
	target := filepath.Join(t.TempDir(), "out")
	if err := os.MkdirAll(filepath.Join(target, "old"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Target: target, Folder: true, What: "site", Suffix: ".work", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.Next(), "new"), 0o755); err != nil {
		t.Fatal(err)
	}
	swap = func(string, string) error { return unix.ENOSYS }
	move = func(from, to string) error {
		if from == s.Next() {
			return unix.EIO
		}
		return rename(from, to)
	}
	if err := s.Commit(); !errors.Is(err, unix.EIO) {
		t.Errorf("got the error %v, want %v", err, unix.EIO)
	}
	if !Exists(filepath.Join(target, "old")) {
		t.Error("the old target is not in its place")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestMadeFoldersAreSynced: the names of the target and of all folders that the run made are durable before the run ends.
func TestMadeFoldersAreSynced(t *testing.T) {
	t.Cleanup(func() { syncPath = syncOne })
	top := t.TempDir()
	target := filepath.Join(top, "a", "b", "out")
	s, err := Open(t.Context(), Options{Target: target, Folder: true, What: "site", Suffix: ".work"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.Next(), 0o755); err != nil {
		t.Fatal(err)
	}
	var synced []string
	syncPath = func(path string) error {
		if !Exists(target) {
			t.Errorf("%s is synced before the target is in its place", path)
		}
		synced = append(synced, path)
		return syncOne(path)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(top, "a", "b"), filepath.Join(top, "a"), top}; !slices.Equal(synced, want) {
		t.Errorf("synced: got %q, want %q", synced, want)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
