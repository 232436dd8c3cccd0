package refreshed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestRefreshed runs one suite against a folder and real servers. The site has a prefix.
func TestRefreshed(t *testing.T) {
	promises := []struct {
		name  string
		check func(t *testing.T, b storage.Bucket, at storage.Location, o storage.S3Options)
	}{
		{"all objects come in order", allRefreshed},
		{"what goes away meanwhile is left out", goneMeanwhile},
		{"reading stops where it is told to", stoppedReading},
		{"nothing at all is fine", nothingRefreshed},
	}
	t.Run("folder", func(t *testing.T) {
		for _, promise := range promises {
			t.Run(promise.name, func(t *testing.T) {
				folder := filepath.Join(t.TempDir(), "a bucket")
				at := storage.Location{Folder: filepath.Join(folder, "_refresh")}
				if err := os.MkdirAll(at.Folder, 0o755); err != nil {
					t.Fatal(err)
				}
				promise.check(t, storage.OpenLocal(folder), at, storage.S3Options{})
			})
		}
	})
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		for _, promise := range promises {
			t.Run(promise.name, func(t *testing.T) {
				at := storage.Location{Bucket: server.Bucket(t), Prefix: "a+site/ü/"}
				b := storetest.OpenS3(t, server, at)
				at.Prefix += "_refresh/"
				promise.check(t, b, at, storage.S3Options{Endpoint: server.Endpoint})
			})
		}
	})
}

// putRefreshed puts more objects below _refresh/ than are read concurrently, and unrelated ones next to it. It
// returns the sorted keys.
func putRefreshed(t *testing.T, b storage.Bucket) (keys []site.Key) {
	t.Helper()
	objects := []storage.Object{storetest.Object("_refreshed/details/1", "{}"), storetest.Object("_refresh-", "{}"), storetest.Object("details/1", "{}"), storetest.Object("_site", "{}")}
	for _, kind := range []string{"badges", "details"} {
		for i := range 300 {
			keys = append(keys, site.Key(fmt.Sprintf("%s/%d", kind, 1000+i)))
		}
	}
	keys = append(keys, "details/empty", "notes.txt") // foreign keys, which must be reported
	for _, key := range keys {
		objects = append(objects, storetest.Object("_refresh/"+key, bodyOf(key)))
	}
	storetest.Put(t, b, objects...)
	return keys
}

func bodyOf(key site.Key) string {
	if key == "details/empty" {
		return ""
	}
	return "the object at " + string(key)
}

func openRefreshed(t *testing.T, at storage.Location, o storage.S3Options) *Data {
	t.Helper()
	r, err := Open(t.Context(), at, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// each reads and checks all objects; those in skip may be missing.
func each(t *testing.T, r *Data, keys []site.Key, meanwhile func(n int), skip ...site.Key) {
	t.Helper()
	gone := map[site.Key]bool{}
	for _, key := range skip {
		gone[key] = true
	}
	n := 0
	err := r.Each(t.Context(), func(key site.Key, body []byte) error {
		for n < len(keys) && gone[keys[n]] {
			n++
		}
		if n == len(keys) || key != keys[n] || string(body) != bodyOf(key) {
			return fmt.Errorf("object %d is %s: %.100q", n, key, body)
		}
		n++
		meanwhile(n)
		return nil
	})
	if err != nil || n != len(keys) {
		t.Errorf("objects: got %d, want %d: %v", n, len(keys), err)
	}
}

func allRefreshed(t *testing.T, b storage.Bucket, at storage.Location, o storage.S3Options) {
	keys := putRefreshed(t, b)
	r := openRefreshed(t, at, o)
	for range 2 {
		each(t, r, keys, func(int) {})
	}
}

func goneMeanwhile(t *testing.T, b storage.Bucket, at storage.Location, o storage.S3Options) {
	keys := putRefreshed(t, b)
	gone := keys[len(keys)-40 : len(keys)-30] // keys not read yet when the first one is
	each(t, openRefreshed(t, at, o), keys, func(n int) {
		if n != 1 {
			return
		}
		var all []site.Key
		for _, key := range gone {
			all = append(all, "_refresh/"+key)
		}
		if err := b.Delete(t.Context(), all); err != nil {
			t.Error(err)
		}
	}, gone...)
}

func stoppedReading(t *testing.T, b storage.Bucket, at storage.Location, o storage.S3Options) {
	putRefreshed(t, b)
	r := openRefreshed(t, at, o)
	errEnough, n := errors.New("enough"), 0
	err := r.Each(t.Context(), func(site.Key, []byte) error {
		if n++; n == 3 {
			return errEnough
		}
		return nil
	})
	if err != errEnough || n != 3 { //nolint:errorlint // must be exactly the error of found
		t.Errorf("error of found: got %v after %d objects, want that error after 3", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Each(ctx, func(site.Key, []byte) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: got %v, want Canceled", err)
	}
}

func nothingRefreshed(t *testing.T, b storage.Bucket, at storage.Location, o storage.S3Options) {
	storetest.Put(t, b, storetest.Object("_site", "{}"))
	each(t, openRefreshed(t, at, o), nil, func(int) {})
}

func TestRefreshedThatIsNotThere(t *testing.T) {
	folder := t.TempDir()
	for name, body := range map[string]string{"site/_site": "{}", "bucket/_refresh/details/1": "{}", "file": ""} {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, reason := range map[string]string{
		"bucket/_refesh":   "name the folder _refresh of a bucket, or create it if nothing was refreshed yet",
		"file":             "is a file",
		"file/_refresh":    "name the folder _refresh",
		"site":             "name its folder " + filepath.Join(folder, "site", "_refresh"),
		"bucket":           "name its folder " + filepath.Join(folder, "bucket", "_refresh"),
		"no/such/_refresh": "name the folder _refresh",
	} {
		path := filepath.Join(folder, name)
		if _, err := Open(t.Context(), storage.Location{Folder: path}, storage.S3Options{}); err == nil ||
			!strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q", name, err, reason)
		}
	}
	// A link to a folder works like the folder.
	link := filepath.Join(folder, "link")
	if err := os.Symlink(filepath.Join(folder, "bucket", "_refresh"), link); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := openRefreshed(t, storage.Location{Folder: link}, storage.S3Options{}).Each(t.Context(), func(site.Key, []byte) error { n++; return nil })
	if err != nil || n != 1 {
		t.Errorf("through a link: got %d objects, %v, want all", n, err)
	}
}

func TestRefreshedWithoutBucketSaysWhatToCheck(t *testing.T) {
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		at := storage.Location{Bucket: "no-such-bucket", Prefix: "_refresh/"}
		_, err := Open(t.Context(), at, storage.S3Options{Endpoint: server.Endpoint})
		if !errors.Is(err, storage.ErrNoBucket) || !strings.Contains(err.Error(), "s3://no-such-bucket/_refresh") ||
			!strings.Contains(err.Error(), "--endpoint") || strings.Contains(err.Error(), "--dest") {
			t.Errorf("error: got %v, want ErrNoBucket that says what to check", err)
		}
	})
}

// TestRefreshedPassesOverFolders: consoles make objects that stand for folders.
func TestRefreshedPassesOverFolders(t *testing.T) {
	// versitygw takes the last chunk of an empty chunked body, the library's default, for another request.
	whole := minio.PutObjectOptions{DisableContentSha256: true}
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		bucket := server.Bucket(t)
		for _, name := range []string{"_refresh/", "_refresh/details/", "_refresh/details/1"} {
			if _, err := server.Client().PutObject(t.Context(), bucket, name, bytes.NewReader(nil), 0, whole); err != nil {
				t.Fatal(err)
			}
		}
		var keys []site.Key
		r := openRefreshed(t, storage.Location{Bucket: bucket, Prefix: "_refresh/"}, storage.S3Options{Endpoint: server.Endpoint})
		err := r.Each(t.Context(), func(key site.Key, _ []byte) error { keys = append(keys, key); return nil })
		if err != nil || len(keys) != 1 || keys[0] != "details/1" {
			t.Errorf("keys: got %q, %v, want the keys put", keys, err)
		}
	})
}

// TestLargeRefreshed: an object larger than any refreshed one is an error that names it, and is not decoded.
func TestLargeRefreshed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "_refresh")
	if err := os.MkdirAll(filepath.Join(folder, "details"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "details", "7")
	if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, worst.Size); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), storage.Location{Folder: folder}, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	worst.Check(t, "a large object", worst.Size+(1<<20), func() { // a folder reads it once, for its MD5
		err := r.Each(t.Context(), func(site.Key, []byte) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "details/7 has 67108864 bytes") {
			t.Errorf("got %v, want that the object is too large", err)
		}
	})
}

func TestParseRefreshed(t *testing.T) {
	for text, want := range map[string]storage.Location{
		"s3://bucket/_refresh":       {Bucket: "bucket", Prefix: "_refresh/"},
		"s3://bucket/a/b/_refresh/":  {Bucket: "bucket", Prefix: "a/b/_refresh/"},
		"file:///srv/a%20b/_refresh": {Folder: "/srv/a b/_refresh"},
		"file:///srv/copy":           {Folder: "/srv/copy"},
		"/srv/site/_refresh":         {Folder: "/srv/site/_refresh"},
		"copy/of it/":                {Folder: "copy/of it"},
		"a%20b":                      {Folder: "a%20b"},
		".":                          {Folder: "."},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, reason := range map[string]string{
		"":                              "use a folder, or s3://BUCKET/_refresh",
		"s3://bucket":                   "use s3://bucket/_refresh",
		"s3://bucket/site/":             "use s3://bucket/site/_refresh",
		"s3://bucket/my_refresh":        "use s3://bucket/my_refresh/_refresh",
		"file://srv/_refresh":           "file:///FOLDER",
		"gs://bucket/_refresh":          "s3://BUCKET",
		"s3://k:secret@bucket/_refresh": "AWS_SECRET_ACCESS_KEY",
	} {
		at, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %+v, %v, want an error that says %q", text, at, err, reason)
		}
	}
}

func TestRefreshedIsTriedAgain(t *testing.T) {
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		at := storage.Location{Bucket: server.Bucket(t), Prefix: "_refresh/"}
		direct := storetest.OpenS3(t, server, storage.Location{Bucket: at.Bucket})
		var keys []site.Key
		for i := range 20 {
			key := site.Key(fmt.Sprintf("details/%d", 10+i))
			storetest.Put(t, direct, storetest.Object("_refresh/"+key, bodyOf(key)))
			keys = append(keys, key)
		}
		proxy := server.Proxy(t)
		r := openRefreshed(t, at, storage.S3Options{Endpoint: proxy.Endpoint})
		for range 3 { // whatever goes wrong in between, all of it comes or an error
			proxy.Break(1500, true)
			mended := time.AfterFunc(10*time.Millisecond, proxy.Mend)
			err := r.Each(t.Context(), func(site.Key, []byte) error { return nil })
			if err != nil && !storage.Temporary(err) {
				t.Errorf("a connection that breaks: got %v, want no error or a temporary one", err)
			}
			mended.Stop()
			proxy.Mend()
			each(t, r, keys, func(int) {})
		}
		proxy.Break(0, true)
		if err := r.Each(t.Context(), func(site.Key, []byte) error { return nil }); !storage.Temporary(err) ||
			!strings.Contains(err.Error(), "tried 7 times: check --endpoint") {
			t.Errorf("an unreachable server: got %v, want an error that says what to check", err)
		}
		// One request at a time, to make the failing attempts deterministic.
		one := storage.Location{Bucket: server.Bucket(t), Prefix: "_refresh/"}
		storetest.Put(t, storetest.OpenS3(t, server, storage.Location{Bucket: one.Bucket}), storetest.Object("_refresh/details/1", bodyOf("details/1")))
		each(t, openRefreshed(t, one, storage.S3Options{Endpoint: server.Endpoint, Transport: &storetest.Busy{}}), []site.Key{"details/1"}, func(int) {})
	})
}
