package storage_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/folder"
)

func TestLocalWithoutAFolderHoldsNothing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "not yet")
	b := storage.OpenLocal(folder)
	lacks(t, b, "key")
	listsOnly(t, b, "", "")
	if err := b.Delete(t.Context(), []site.Key{"key", "folder/key"}); err != nil {
		t.Error(err)
	}
	if err := b.CleanUp(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder after reads: got %v, want that it does not exist", err)
	}
	if created, err := b.Create(t.Context()); !created || err != nil {
		t.Errorf("Create: got %v, %v, want true and no error", created, err)
	}
}

func TestLocalLeavesNoEmptyFoldersAndNoOtherFiles(t *testing.T) {
	folder := t.TempDir()
	b := storage.OpenLocal(folder)
	put(t, b, object("a/b/c", "{}"), object("a/d", "{}"))
	if err := b.Delete(t.Context(), []site.Key{"a/b/c"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "a", "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty folder a/b: got %v, want that it does not exist", err)
	}
	holds(t, b, object("a/d", "{}"))
	if err := b.Delete(t.Context(), []site.Key{"a/d"}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != ".followpress" {
			t.Errorf("work folder: got %s, want no such file", entry.Name())
		}
	}
}

// Reading a site in memory does not modify it: the root does not look newly written.
func TestReadingMemoryChangesNothing(t *testing.T) {
	files := afero.NewBasePathFs(afero.NewMemMapFs(), "/")
	if err := afero.WriteFile(files, string(site.RootKey), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	folder := storage.NewFolder(files)
	_, first, err := folder.Read(t.Context(), site.RootKey)
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := folder.Read(t.Context(), site.RootKey)
	if err != nil || again != first {
		t.Errorf("read again: got %+v, %v, want %+v", again, err, first)
	}
}

// Another process may hold the lock while suspended. The error must name it.
func TestLocalSaysThatAnotherProcessHoldsIt(t *testing.T) {
	folder := t.TempDir()
	b := storage.OpenLocal(folder)
	put(t, b, object("key", "{}"))
	file, err := os.Open(filepath.Join(folder, ".followpress", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil { // a lock belongs to an open file
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = b.Put(ctx, object("key", "[]"), storage.Always)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another process on this machine holds") {
		t.Errorf("Put: got %v, want that another process holds the lock", err)
	}
}

// endsWhenLocked is a context that ends once the lock of a folder is held.
type endsWhenLocked struct {
	context.Context
	lock *os.File
}

func (c endsWhenLocked) Err() error {
	if unix.Flock(int(c.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return context.Canceled
	}
	return unix.Flock(int(c.lock.Fd()), unix.LOCK_UN)
}

// A process that is suspended beyond its lease, while it waits for the lock, puts nothing.
func TestLocalPutsNothingIfTheContextEndedMeanwhile(t *testing.T) {
	folder := t.TempDir()
	b := storage.OpenLocal(folder)
	put(t, b, object("key", "{}"))
	lock, err := os.Open(filepath.Join(folder, ".followpress", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := b.Put(endsWhenLocked{t.Context(), lock}, object("key", "[]"), storage.Always); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: got the error %v, want that of the context", err)
	}
	if body, _, err := b.Read(t.Context(), "key"); err != nil || string(body) != "{}" {
		t.Errorf("key: got %q, %v, want {} as before", body, err)
	}
}

func TestCleanUpRemovesOnlyWhatAKilledProcessLeft(t *testing.T) {
	folder := t.TempDir()
	b := storage.OpenLocal(folder)
	put(t, b, object("key", "{}"))
	if _, err := b.Put(t.Context(), object("_lock", "{}"), storage.IfAbsent); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for name, modified := range map[string]time.Time{"left": old, "lock": old, "fresh": time.Now()} {
		path := filepath.Join(folder, ".followpress", name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.CleanUp(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(folder, ".followpress"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 || entries[0].Name() != "fresh" || entries[1].Name() != "lock" {
		t.Errorf("work folder after CleanUp: got %v, want fresh and lock", entries)
	}
	listsOnly(t, b, "", "", object("key", "{}"), object("_lock", "{}"))
}

// Whatever the umask, a web server can read a local bucket, folders and files.
func TestLocalCanBeReadByEverybody(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	top := t.TempDir()
	for name, make := range map[string]func(b *storage.Local) error{
		"put":    func(b *storage.Local) error { return nil },
		"create": func(b *storage.Local) error { _, err := b.Create(t.Context()); return err },
	} {
		b := storage.OpenLocal(filepath.Join(top, name, "www", "bucket"))
		if err := make(b); err != nil {
			t.Fatal(err)
		}
		put(t, b, object("a/b/c", "{}"), object("_site", "{}"))
		for key, want := range map[string]fs.FileMode{"": 0o755, "a": 0o755, "a/b": 0o755, "a/b/c": 0o644, "_site": 0o644} {
			if info, err := os.Stat(filepath.Join(top, name, "www", "bucket", key)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s, %q: got %v, %v, want %v", name, key, info.Mode(), err, want)
			}
		}
	}
}

// Put syncs only the root, before its rename; Sync syncs the file system of the folder. A failure is an error, and
// leaves the root unchanged.
func TestLocalSyncsTheRootAndWhenItIsTold(t *testing.T) {
	dir := t.TempDir()
	var synced []string // the bytes of a file, or the name of a folder
	var fails error
	file, fileSystem := folder.SyncFile, folder.SyncFileSystem
	t.Cleanup(func() { folder.SyncFile, folder.SyncFileSystem = file, fileSystem })
	folder.SyncFile = func(what *os.File) error {
		body, err := os.ReadFile(what.Name())
		if err != nil {
			body = []byte(what.Name())
		}
		synced = append(synced, string(body))
		if at, _ := os.ReadFile(filepath.Join(dir, string(site.RootKey))); string(at) == string(body) {
			t.Errorf("%s: got its name before its sync", body)
		}
		return fails
	}
	folder.SyncFileSystem = folder.SyncFile
	b := storage.OpenLocal(dir)
	put(t, b, object("key", "{}"), object(site.RootKey, "root"))
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"root", dir}; !slices.Equal(synced, want) {
		t.Errorf("synced: got %q, want %q", synced, want)
	}
	fails = errors.New("the disk is broken")
	if _, err := b.Put(t.Context(), object(site.RootKey, "next"), storage.Always); !errors.Is(err, fails) {
		t.Errorf("Put of the root: got %v, want %v", err, fails)
	}
	if err := b.Sync(t.Context()); !errors.Is(err, fails) {
		t.Errorf("Sync: got %v, want %v", err, fails)
	}
	holds(t, b, object(site.RootKey, "root"))
	b.NoSync, synced = true, nil
	put(t, b, object(site.RootKey, "last"))
	if err := b.Sync(t.Context()); err != nil || len(synced) > 0 {
		t.Errorf("NoSync: got %v and synced %q, want nothing", err, synced)
	}
}

// A folder reached through symbolic links, in its path or inside it, is the same bucket.
func TestLocalFollowsLinks(t *testing.T) {
	top := t.TempDir()
	elsewhere, link := filepath.Join(top, "elsewhere"), filepath.Join(top, "link")
	for _, name := range []string{"disk", "elsewhere"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"link": "disk", "disk/b": elsewhere, "disk/gone": "nowhere", "disk/file": filepath.Join(elsewhere, "kept"),
	} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	b := storage.OpenLocal(link)
	all := []storage.Object{object("a/x", "1"), object("b/kept", "2"), object("b/y/z", "3"), object("c", "4")}
	put(t, b, all...)
	listsOnly(t, b, "", "", append(all, object("file", "2"))...)
	listsOnly(t, b, "b/", "b/kept", all[2])
	lacks(t, b, "gone")
	if err := b.Delete(t.Context(), []site.Key{"b/y/z", "b/kept", "a/x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(top, "disk", "b")); err != nil {
		t.Errorf("link to a folder that became empty: got %v, want it unchanged", err)
	}
	listsOnly(t, b, "", "", all[3])
	// A link to a file is followed by reads, replaced by a put and removed by a delete.
	kept := filepath.Join(top, "real")
	if err := os.WriteFile(kept, []byte("5"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"replaced", "removed"} {
		if err := os.Symlink(kept, filepath.Join(top, "disk", name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, b, object("replaced", "6"))
	if err := b.Delete(t.Context(), []site.Key{"removed"}); err != nil {
		t.Fatal(err)
	}
	listsOnly(t, b, "", "", all[3], object("replaced", "6"))
	if body, err := os.ReadFile(kept); err != nil || string(body) != "5" {
		t.Errorf("the targets of the links: got %q, %v, want them unchanged", body, err)
	}
	if err := errors.Join(b.Delete(t.Context(), []site.Key{"replaced"}), os.Remove(kept)); err != nil {
		t.Fatal(err)
	}

	pinned, err := b.Pinned()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", link); err != nil {
		t.Fatal(err)
	}
	listsOnly(t, pinned, "", "", all[3])
	listsOnly(t, b, "", "")

	for name, says := range map[string]string{"gone": "not mounted", "there": "", "not yet": ""} {
		path := filepath.Join(top, "disk", name)
		if name == "there" {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := storage.OpenLocal(path).Pinned(); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", name, err, says)
		}
	}
}

// A link to a parent folder would be listed forever.
func TestLocalRefusesCircles(t *testing.T) {
	folder := t.TempDir()
	b := storage.OpenLocal(folder)
	put(t, b, object("a/b/c", "{}"))
	for _, to := range []string{folder, "..", "../b"} {
		link := filepath.Join(folder, "a", "b", "circle")
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		err := b.List(t.Context(), "", "", func(storage.Info) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "a/b/circle is a link to a folder that contains it") {
			t.Errorf("link to %s: got %v, want an error that names it", to, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWorkFolderIsReserved: no site has objects where a bucket keeps its lock and unfinished files.
func TestWorkFolderIsReserved(t *testing.T) {
	folder := t.TempDir()
	b := storage.OpenLocal(folder)
	if _, err := b.Put(t.Context(), object("a", "x"), storage.IfAbsent); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "a" && !slices.Contains(site.Reserved(), e.Name()) {
			t.Errorf("%s: must not be a valid base path", e.Name())
		}
	}
	if len(entries) < 2 {
		t.Errorf("got %v, want a work folder too", entries)
	}
}

// TestPipeIsNoObject: a pipe in a bucket's folder is an error, without waiting.
func TestPipeIsNoObject(t *testing.T) {
	folder := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(folder, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.OpenLocal(folder).Get(t.Context(), "pipe"); err == nil || !strings.Contains(err.Error(), "is a pipe, a socket or a device") {
		t.Errorf("got the error %v, want that it is a pipe", err)
	}
	tar := filepath.Join(folder, "pipe.tar")
	if err := os.Rename(filepath.Join(folder, "pipe"), tar); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.OpenSite(t.Context(), tar, storage.S3Options{}); err == nil || !strings.Contains(err.Error(), "is a pipe, a socket or a device") {
		t.Errorf("as a tar file: got the error %v, want that it is a pipe", err)
	}
}
