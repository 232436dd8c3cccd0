package publicdir_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/internal/publicdir"
)

// Everybody can read new folders and files, regardless of the umask. Existing ones stay unchanged.
func TestEverybodyCanRead(t *testing.T) {
	for _, mask := range []int{0o022, 0o077, 0o027, 0o002} {
		top := t.TempDir()
		private, shared := filepath.Join(top, "private"), filepath.Join(top, "shared")
		for dir, mode := range map[string]fs.FileMode{private: 0o700, shared: 0o775 | fs.ModeSetgid} {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
		}
		before := unix.Umask(mask)
		for _, dir := range []string{private, shared, filepath.Join(private, "a", "b"), filepath.Join(shared, "a"), filepath.Join(private, "a")} {
			if err := publicdir.Make(afero.NewOsFs(), dir); err != nil {
				t.Error(err)
			}
		}
		file, err := publicdir.Create(afero.NewOsFs(), filepath.Join(private, "a", "b", "file"))
		unix.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]fs.FileMode{
			"private": fs.ModeDir | 0o700, "private/a": fs.ModeDir | 0o755, "private/a/b": fs.ModeDir | 0o755, "private/a/b/file": 0o644,
			"shared/a": fs.ModeDir | fs.ModeSetgid | 0o755,
		} {
			if info, err := os.Stat(filepath.Join(top, name)); err != nil || info.Mode() != want {
				t.Errorf("umask %03o, %s: got %v, %v, want %v", mask, name, info.Mode(), err, want)
			}
		}
	}
}

// A file is not taken for a folder.
func TestMakeRefusesAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{name, filepath.Join(name, "below")} {
		if err := publicdir.Make(afero.NewOsFs(), dir); err == nil {
			t.Errorf("%s: got no error, want one", dir)
		}
	}
	if _, err := publicdir.Create(afero.NewOsFs(), name); err == nil {
		t.Error("a file that exists: got no error, want one")
	}
}
