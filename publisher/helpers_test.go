package publisher

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

// dead is the time to wait after a publisher that has stopped sending.
const dead = -time.Hour

type memorySite = memsite.Site

// siteOf adds manifest and root to objects.
func siteOf(t testing.TB, objects map[site.Key]string, change ...func(*site.Root)) memorySite {
	t.Helper()
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	root := site.Root{Format: site.Format, AsOf: "2026-11-20T00:00:00Z", Config: config, BucketDigits: 1, ShardDigits: 1,
		HeaderRules: site.Config{}.HeaderRules()}
	for _, c := range change {
		c(&root)
	}
	return memsite.New(t, root, objects)
}

// objectsOf returns n lists with three objects each, and the leaderboards.
func objectsOf(n int, text string) map[site.Key]string {
	config, _ := site.Config{}.WithDefaults()
	objects := map[site.Key]string{}
	for i := range n {
		for _, object := range []site.ListObject{site.Records, site.Details, site.Badges} {
			objects[config.ListKey(fmt.Sprint(i), object)] = fmt.Sprint(object, i, text)
		}
	}
	for _, board := range (site.Config{}).Boards() {
		objects[config.LeaderboardKey(board)] = string(board) + text
	}
	return objects
}

func listKey(n int, object site.ListObject) site.Key {
	config, _ := site.Config{}.WithDefaults()
	return config.ListKey(fmt.Sprint(n), object)
}

// openLocal opens a folder as a bucket, without syncing it to disk, which would wait for the writes
// of all tests.
func openLocal(folder string) *storage.Local {
	b := storage.OpenLocal(folder)
	b.NoSync = true
	return b
}

// inBucket returns all objects of a local bucket, except a free lock and its mark.
func inBucket(t testing.TB, folder string) memorySite {
	t.Helper()
	return withoutFreeLock(readAll(t, folder))
}

// readAll returns all files of a local bucket.
func readAll(t testing.TB, folder string) memorySite {
	t.Helper()
	found := memorySite{}
	err := openLocal(folder).List(context.Background(), "", "", func(info storage.Info) error {
		body, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(string(info.Key))))
		found[info.Key] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// withoutFreeLock drops a free lock and the mark left by a doubt.
func withoutFreeLock(m memorySite) memorySite {
	var lock lock.Body
	if json.Unmarshal([]byte(m[site.LockKey]), &lock) == nil && lock.Released {
		delete(m, site.LockKey)
		if lock.Doubted() {
			delete(m, site.MarkKey)
		}
	}
	return m
}

// put replaces an object of a bucket that is a folder, unnoticed by any run.
func put(t testing.TB, folder string, key site.Key, body string) {
	t.Helper()
	object := storage.Object{Entry: site.NewEntry(key, []byte(body)), Body: []byte(body)}
	if _, err := openLocal(folder).Put(context.Background(), object, storage.Always); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, folder string, key site.Key) {
	t.Helper()
	if err := openLocal(folder).Delete(context.Background(), []site.Key{key}); err != nil {
		t.Fatal(err)
	}
}

// equalSites reports each key in which a bucket differs from a site.
func equalSites(t testing.TB, bucket, want memorySite) {
	t.Helper()
	if err := bucket.CompareStored(want); err != nil {
		t.Error(err)
	}
}

func publish(t testing.TB, from Site, to Bucket, o Options) *Report {
	t.Helper()
	report, err := Publish(context.Background(), from, to, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// retrying sends requests to a bucket without a lease or a window.
func retrying(bucket Bucket, patience time.Duration) *requests.Bucket {
	o := Options{Patience: patience, Log: slog.New(slog.DiscardHandler)}
	return requests.New(context.Background(), bucket, o.requests(new(atomic.Int64))).WithoutWindow()
}

// readManifest reads the manifest from objects, however it is stored.
func readManifest(t testing.TB, root *site.Root, objects memorySite) *shards.Reader {
	t.Helper()
	manifest, err := shards.Open(t.Context(), root, func(_ context.Context, key site.Key) ([]byte, error) {
		body, ok := objects[key]
		if !ok {
			return nil, site.ErrNotFound
		}
		return []byte(body), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}
