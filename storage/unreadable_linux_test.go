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

// TestUnreadableFolder: a listing that must read a folder of somebody else, such as the lost+found of a disk, fails and
// names the folder.
func TestUnreadableFolder(t *testing.T) {
	folder := t.TempDir()
	for _, dir := range []string{filepath.Dir(folder), folder} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := storage.OpenLocal(folder)
	put(t, b, object("a/c", "2"), object("lost+found/x", "3"), object("z", "5"))
	closed := filepath.Join(folder, "lost+found")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o755) }) // so that the folder can be removed
	list := func(prefix site.Key) (found []site.Key, err error) {
		asNobody(t, func() {
			err = b.List(t.Context(), prefix, "", func(info storage.Info) error {
				found = append(found, info.Key)
				return nil
			})
		})
		return found, err
	}
	if _, err := list(""); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), closed) || !strings.Contains(err.Error(), "; let this user read it") {
		t.Errorf("got %v, want an error that names %s, and what to do", err, closed)
	}
	if found, err := list("z"); !slices.Equal(found, []site.Key{"z"}) || err != nil {
		t.Errorf("below a prefix: got %q and %v, want z, and no error about other prefixes", found, err)
	}
}
