package storage_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// sites makes the same site as a folder and as a tar file.
func sites(t *testing.T) map[string]string {
	t.Helper()
	folder, file := filepath.Join(t.TempDir(), "site"), filepath.Join(t.TempDir(), "site.tar")
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "users/", Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	for _, key := range awkward() {
		body := "the object at " + string(key)
		name := filepath.Join(folder, filepath.FromSlash(string(key)))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: string(key), Size: int64(len(body)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, archive.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"folder": folder, "tar": file}
}

func TestOpenSiteReadsFoldersAndTarFiles(t *testing.T) {
	for kind, path := range sites(t) {
		t.Run(kind, func(t *testing.T) {
			s, err := storage.OpenSite(t.Context(), path, storage.S3Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range awkward() {
				if body, err := s.Get(t.Context(), key); err != nil || string(body) != "the object at "+string(key) {
					t.Errorf("%q: got %q, %v, want the body", key, body, err)
				}
			}
			for _, key := range []site.Key{"nothing", "users", "users/nobody/key", "_site/below", site.Key(strings.Repeat("n", 256))} {
				if _, err := s.Get(t.Context(), key); !errors.Is(err, storage.ErrNotFound) {
					t.Errorf("%q: got %v, want ErrNotFound", key, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenSiteSaysWhatIsWrong(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, body []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, err := os.ReadFile(sites(t)["tar"])
	if err != nil {
		t.Fatal(err)
	}
	inBody := bytes.LastIndexByte(whole, '{') + 1
	missing := filepath.Join(folder, "missing")
	if _, err := storage.OpenSite(t.Context(), missing, storage.S3Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing path: got %v, want ErrNotExist", err)
	}
	write("meta.json", []byte(`{"format":1}`))
	for path, want := range map[string]string{
		folder:                   "is a snapshot, not a site; use --snapshot",
		write("site.zip", whole): "neither a folder nor a .tar file",
		write("noise.tar", bytes.Repeat(whole, 1)[7:]): "invalid tar header",
		write("short.tar", whole[:len(whole)/2-100]):   fmt.Sprintf("truncated at %d bytes", len(whole)/2-100),
		write("body.tar", whole[:inBody]):              fmt.Sprintf("truncated at %d bytes", inBody),
		missing:                                        "name a folder or .tar file written by generate",
	} {
		if _, err := storage.OpenSite(t.Context(), path, storage.S3Options{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}
