package publisher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// errDead is the error of a bucket that a publisher can no longer reach.
var errDead = errors.New("the publisher is dead")

// A mortal bucket simulates a publisher that dies after a number of writes: later requests do not
// arrive. It counts the others.
type mortal struct {
	Bucket
	mu     sync.Mutex
	left   int // writes; negative means unlimited
	put    []site.Key
	lists  int
	during func() // called before every tenth write
}

func (m *mortal) write(key site.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 {
		return errDead
	}
	m.left--
	if m.during != nil && m.left%10 == 0 {
		m.during()
	}
	if key != "" && key != site.LockKey && key != site.MarkKey && key != site.RootKey {
		m.put = append(m.put, key)
	}
	return nil
}

func (m *mortal) Put(ctx context.Context, o storage.Object, c storage.Condition) (string, error) {
	if err := m.write(o.Key); err != nil {
		return "", err
	}
	return m.Bucket.Put(ctx, o, c)
}

func (m *mortal) Delete(ctx context.Context, keys []site.Key) error {
	if err := m.write(""); err != nil {
		return err
	}
	return m.Bucket.Delete(ctx, keys)
}

func (m *mortal) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	m.mu.Lock()
	m.lists++
	m.mu.Unlock()
	return m.Bucket.List(ctx, prefix, after, found)
}

// randomSite has some of 30 lists, some of them changed, in one of two numbers of shards and
// sometimes with another base path.
func randomSite(t testing.TB, random *rand.Rand) memorySite {
	all := objectsOf(30, "")
	for key := range all {
		switch random.IntN(6) {
		case 0:
			delete(all, key)
		case 1:
			all[key] += fmt.Sprint(random.IntN(3))
		}
	}
	return siteOf(t, all, func(r *site.Root) {
		if random.IntN(4) == 0 {
			r.ShardDigits = 2
		}
		r.Counts.Accounts = random.IntN(1000)
	})
}

// Whatever was published before, and wherever runs were cut off, the next run makes the bucket
// equal to its site, and does not repeat puts that had arrived.
func TestEveryRunEndsWithTheSite(t *testing.T) {
	for seed := range uint64(servers.Rounds(4, 12)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			folder := t.TempDir()
			bucket := openLocal(folder)
			for range 4 {
				for range random.IntN(3) {
					dying := &mortal{Bucket: bucket, left: random.IntN(150)}
					_, err := Publish(context.Background(), randomSite(t, random), dying, Options{BreakLock: true, drain: dead, Concurrency: 1 + random.IntN(8), memory: 1 + random.IntN(3000)})
					if err != nil && !errors.Is(err, errDead) {
						t.Fatal(err)
					}
				}
				next := randomSite(t, random)
				before, doubted := inBucket(t, folder), isDoubted(t, folder)
				living := &mortal{Bucket: bucket, left: -1, during: func() { checkNoDanglingReference(t, folder) }}
				report := publish(t, next, living, Options{BreakLock: true, drain: dead, Concurrency: 4, memory: 1 + random.IntN(3000)})
				equalSites(t, inBucket(t, folder), next)
				for _, key := range living.put {
					if was, ok := before[key]; ok && was == next[key] {
						t.Errorf("%s: got another put, want none", key)
					}
				}
				_, marked := before[site.MarkKey]
				_, live := before[site.RootKey] // the first publish looks for foreign objects
				if (marked || doubted || !live) != (living.lists > 0) || report.Resumed != (marked || doubted) {
					t.Errorf("cut off before %v, in doubt %v, live %v: got %d listings, resumed %v", marked, doubted, live, living.lists, report.Resumed)
				}
				again := publish(t, next, living, Options{drain: dead})
				if inDoubt := isDoubted(t, folder); again.Outcome != Unchanged && !inDoubt || again.Done.Put+again.Done.Manifests+again.Done.Deleted > 0 {
					t.Errorf("publishing the same again, in doubt: %v: got %s, done %+v, want unchanged", inDoubt, again.Outcome, again.Done)
				}
			}
		})
	}
}

// isDoubted reports whether the lock is held or has a doubt.
func isDoubted(t *testing.T, folder string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, string(site.LockKey)))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var lock lock.Body
	if err = errors.Join(err, json.Unmarshal(text, &lock)); err != nil {
		t.Fatal(err)
	}
	return !lock.Released || lock.Doubted()
}

// checkNoDanglingReference follows the root as a reader does.
func checkNoDanglingReference(t *testing.T, folder string) {
	objects := inBucket(t, folder)
	body, ok := objects[site.RootKey]
	if !ok {
		return
	}
	root, err := site.ParseRoot([]byte(body))
	if err != nil {
		t.Error(err)
		return
	}
	manifest := readManifest(t, &root, objects)
	for _, shard := range site.HashPrefixes(root.ShardDigits) {
		m, err := manifest.Shard(t.Context(), shard)
		if errors.Is(err, shards.ErrDamaged) {
			continue // a reader knows, and reads the root again
		} else if err != nil {
			t.Error(err)
			continue
		}
		for _, e := range m.Objects {
			if _, ok := objects[e.Key]; !ok {
				t.Errorf("%s: got no object, want one, because the root refers to it", e.Key)
			}
		}
	}
}
