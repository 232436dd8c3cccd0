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

func TestParseLocation(t *testing.T) {
	for text, want := range map[string]storage.Location{
		"s3://bucket":              {Bucket: "bucket"},
		"s3://bucket/":             {Bucket: "bucket"},
		"s3://my.bucket-1/a/b":     {Bucket: "my.bucket-1", Prefix: "a/b/"},
		"s3://bucket/a/b/":         {Bucket: "bucket", Prefix: "a/b/"},
		"s3://bucket//a":           {Bucket: "bucket", Prefix: "a/"},
		"s3://bucket/a%20b/%C3%BC": {Bucket: "bucket", Prefix: "a b/ü/"},
		"s3://bucket/a b/ü+1":      {Bucket: "bucket", Prefix: "a b/ü+1/"},
		"file:///srv/site":         {Folder: "/srv/site"},
		"file:///srv/site/":        {Folder: "/srv/site"},
		"file:///srv//./a/../site": {Folder: "/srv/site"},
		"file:///srv/a%20b":        {Folder: "/srv/a b"},
		"file:///":                 {Folder: "/"},
	} {
		if got, err := storage.ParseLocation(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestParseLocationSaysWhatToUse(t *testing.T) {
	for _, text := range []string{
		"", "bucket", "/srv/site", "./site", "file://site", "file://host/site", "file:site", "s3:bucket", "s3://", "s3:///prefix",
		"s3://bucket/a//b", "s3://bucket/../b", "s3://bucket/%00", "s3://bucket/%ff", "s3://bu cket", "s3://b", "http://host/bucket", "S4://bucket", "s3://bucket/%zz", "://",
	} {
		location, err := storage.ParseLocation(text)
		if err == nil {
			t.Errorf("%q: got %+v, want an error", text, location)
		} else if !strings.Contains(err.Error(), "s3://BUCKET") && !strings.Contains(err.Error(), "file:///FOLDER") {
			t.Errorf("%q: got %q, want an error that says what to use", text, err)
		}
	}
}

func TestParseLocationRepeatsNoSecret(t *testing.T) {
	for _, text := range []string{
		"s3://somebody:a-secret-key@bucket/site", "s3://bucket/site?secret=a-secret-key", "s3://bucket/site#a-secret-key", "file://u:a-secret-key@/srv",
		"s3://somebody:a-secret-key@bucket/%zz", "http://somebody:a-secret-key@host/bucket",
	} {
		location, err := storage.ParseLocation(text)
		if err == nil {
			t.Errorf("%q: got %+v, want an error", text, location)
			continue
		}
		holdsNoSecret(t, err.Error(), "a-secret-key")
	}
}

// Errors name what the path holds instead of a bucket.
func TestWhatIsNoBucket(t *testing.T) {
	folder := t.TempDir()
	for name, body := range map[string]string{"site.tar": "x", "snapshot/meta.json": "{}", "both/meta.json": "{}", "both/_site": "{}"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		folder:                                "is a folder; name it as file://" + folder,
		filepath.Join(folder, "site.tar"):     "is a file; use s3://BUCKET",
		"file://" + folder + "/site.tar":      "is a file, not a folder",
		"file://" + folder + "/snapshot":      "is a snapshot, not a bucket",
		"file://" + folder + "/both":          "",
		"file://" + folder + "/not-there-yet": "",
	} {
		at, err := storage.ParseLocation(text)
		if err == nil {
			_, err = storage.OpenBucket(t.Context(), at, storage.S3Options{})
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestWebPlaces: invalid places are rejected before any request.
func TestWebPlaces(t *testing.T) {
	for _, text := range []string{"https://", "https:///path", "https://host?query", "https://host#fragment", "ftp://host", "host", "https://host:port"} {
		if err := storage.CheckPublished(text); err == nil || !strings.Contains(err.Error(), "https://HOST") {
			t.Errorf("%s: got %v, want it refused", text, err)
		}
	}
	for _, text := range []string{"https://host", "http://host:1/prefix/", "s3://bucket/prefix", "file:///folder"} {
		if err := storage.CheckPublished(text); err != nil {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
