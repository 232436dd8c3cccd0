package storage_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
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
		t.Errorf("looking made the folder: %v", err)
	}
	if created, err := b.Create(t.Context()); !created || err != nil {
		t.Errorf("%v, %v", created, err)
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
		t.Errorf("a/b is there still: %v", err)
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
			t.Errorf("%s is left", entry.Name())
		}
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
		t.Errorf("%v are left", entries)
	}
	listsOnly(t, b, "", "", object("key", "{}"), object("_lock", "{}"))
}
