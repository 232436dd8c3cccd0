package storage_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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

// TestUnreadable: a listing that must read a file or folder of somebody else fails and names it. The lost+found of a
// disk is no part of a bucket.
func TestUnreadable(t *testing.T) {
	folder := t.TempDir()
	for _, dir := range []string{filepath.Dir(folder), folder} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := storage.OpenLocal(folder)
	put(t, b, object("a/c", "2"), object("b", "2"), object("c/x", "3"), object("lost+found/x", "3"), object("z", "5"))
	closed := func(name string, is bool) string {
		mode := fs.FileMode(0o755)
		if is {
			mode = 0
		}
		name = filepath.Join(folder, name)
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	closed("lost+found", true)
	t.Cleanup(func() { closed("lost+found", false) }) // so that the folder can be removed
	list := func(prefix site.Key) (found []site.Key, err error) {
		asNobody(t, func() {
			err = b.List(t.Context(), prefix, "", func(info storage.Info) error {
				found = append(found, info.Key)
				return nil
			})
		})
		return found, err
	}
	for _, name := range []string{"b", "c"} {
		path := closed(name, true)
		if _, err := list(""); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "; let this user read it") {
			t.Errorf("got %v, want an error that names %s, and what to do", err, path)
		}
		if found, err := list("z"); !slices.Equal(found, []site.Key{"z"}) || err != nil {
			t.Errorf("below a prefix: got %q and %v, want z, and no error about other prefixes", found, err)
		}
		closed(name, false)
	}
	if found, err := list(""); !slices.Equal(found, []site.Key{"a/c", "b", "c/x", "z"}) || err != nil {
		t.Errorf("got %q and %v, want all but lost+found", found, err)
	}
}
