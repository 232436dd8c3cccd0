package storage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/storage"
)

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
