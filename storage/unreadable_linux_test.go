package storage_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// asNobody calls do as a user without root's permissions.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	const nobody = 65534
	runtime.LockOSThread() // the user of the file system belongs to the thread
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setfsuid(0); err != nil {
			t.Error(err)
		}
	}()
	do()
}

// Unreadable entries, such as the lost+found of a disk, are reported at the end, and everything else is listed.
func TestLocalListsAroundWhatCannotBeRead(t *testing.T) {
	folder := t.TempDir()
	for _, dir := range []string{filepath.Dir(folder), folder} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := storage.OpenLocal(folder)
	put(t, b, object("a/b", "1"), object("a/c", "2"), object("lost+found/x", "3"), object("n/o/p", "4"), object("z", "5"))
	for _, name := range []string{"a/b", "lost+found", "n/o"} {
		if err := os.Chmod(filepath.Join(folder, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, name := range []string{"lost+found", "n/o"} {
			if err := os.Chmod(filepath.Join(folder, name), 0o755); err != nil { // allows the cleanup to remove it
				t.Error(err)
			}
		}
	}()
	if err := os.Symlink("loop", filepath.Join(folder, "loop")); err != nil {
		t.Fatal(err)
	}
	list := func(prefix site.Key) (found []site.Key, err error) {
		asNobody(t, func() {
			err = b.List(t.Context(), prefix, "", func(info storage.Info) error {
				found = append(found, info.Key)
				return nil
			})
		})
		return found, err
	}
	found, err := list("")
	var unreadable *storage.UnreadableError
	if !errors.As(err, &unreadable) || !errors.Is(err, fs.ErrPermission) || !errors.Is(err, unix.ELOOP) || len(unreadable.Errs) != 4 {
		t.Fatalf("got %v, want an UnreadableError", err)
	}
	slices.Sort(unreadable.Keys)
	if want := []site.Key{"a/b", "loop", "lost+found/", "n/o/"}; !slices.Equal(unreadable.Keys, want) {
		t.Errorf("unreadable: got %q, want %q", unreadable.Keys, want)
	}
	if want := []site.Key{"a/c", "z"}; !slices.Equal(found, want) {
		t.Errorf("listed: got %q, want %q", found, want)
	}
	if found, err := list("z"); !slices.Equal(found, []site.Key{"z"}) || err != nil {
		t.Errorf("below a prefix: got %q and %v, want z, and no error about other prefixes", found, err)
	}
}
