package publisher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/site"
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
				living := &mortal{Bucket: bucket, left: -1}
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

// A volatile bucket records the order of writes and syncs.
type volatile struct {
	*storage.Local
	mu     sync.Mutex
	writes []write
	synced []int // number of writes at each sync
}

type write struct {
	key  site.Key
	body []byte // nil if deleted
}

func (v *volatile) note(w write) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writes = append(v.writes, w)
}

func (v *volatile) Put(ctx context.Context, o storage.Object, c storage.Condition) (string, error) {
	etag, err := v.Local.Put(ctx, o, c)
	if err == nil {
		v.note(write{o.Key, o.Body})
	}
	return etag, err
}

func (v *volatile) Delete(ctx context.Context, keys []site.Key) error {
	err := v.Local.Delete(ctx, keys)
	if err == nil {
		for _, key := range keys {
			v.note(write{key, nil})
		}
	}
	return err
}

func (v *volatile) Sync(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.synced = append(v.synced, len(v.writes))
	return v.Local.Sync(ctx)
}

// afterPowerFailure returns the state after a power failure, n writes into the run: everything
// synced before, and any part of the rest, possibly without its bytes. Only the root is complete or
// absent, by the design of Put.
func (v *volatile) afterPowerFailure(random *rand.Rand, before memorySite, n int) memorySite {
	left, durable := maps.Clone(before), 0
	for _, at := range v.synced {
		if at < n {
			durable = at
		}
	}
	for i, w := range v.writes[:n] {
		switch {
		case i >= durable && random.IntN(2) == 0:
		case w.body == nil:
			delete(left, w.key)
		case i >= durable && w.key != site.RootKey && random.IntN(4) == 0:
			left[w.key] = ""
		default:
			left[w.key] = string(w.body)
		}
	}
	return left
}

// Wherever the power fails, the root refers to no missing object, a new root only to complete ones,
// and a bucket that may be damaged has a mark: the next run repairs it.
func TestPowerFailure(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	first := siteOf(t, objectsOf(30, ""))
	objects := objectsOf(25, "")
	for i := range 5 {
		objects[listKey(3*i, site.Details)] += " next"
		objects[listKey(100+i, site.Records)] = "new"
	}
	second := siteOf(t, objects)
	folder := t.TempDir()
	bucket := &volatile{Local: storage.OpenLocal(folder)}
	publish(t, first, bucket.Local, Options{})
	publish(t, second, bucket, Options{Concurrency: 4})
	for n := range len(bucket.writes) + 1 {
		for range 3 {
			left := bucket.afterPowerFailure(random, first, n)
			checkAfterPowerFailure(t, fmt.Sprintf("after %d of %d writes", n, len(bucket.writes)), left, first, second)
			if t.Failed() {
				return
			}
			if random.IntN(40) > 0 {
				continue // the next run takes most of the time
			}
			again := t.TempDir()
			for key, body := range left {
				put(t, again, key, body)
			}
			publish(t, second, storage.OpenLocal(again), Options{BreakLock: true, drain: dead})
			equalSites(t, inBucket(t, again), second)
		}
	}
}

func checkAfterPowerFailure(t *testing.T, when string, left, first, second memorySite) {
	t.Helper()
	_, marked := left[site.MarkKey]
	next := left[site.RootKey] == second[site.RootKey]
	want := first
	if next {
		want = second
	}
	if next || !marked {
		root := want.Root(t)
		manifest := readManifest(t, &root, left)
		for _, shard := range site.HashPrefixes(root.ShardDigits) {
			if _, err := manifest.Shard(t.Context(), shard); err != nil {
				t.Errorf("%s: %v, new root %v, marked %v", when, err, next, marked)
			}
		}
	}
	for key, body := range want {
		isManifest := strings.HasPrefix(string(key), string(site.ManifestKey("")))
		switch got, ok := left[key]; {
		case !ok:
			t.Errorf("%s: %s: got no object, want one, because the root refers to it", when, key)
		case got != body && (next || !marked) && !isManifest:
			t.Errorf("%s: %s: got another object, new root %v, marked %v, want the one of the root", when, key, next, marked)
		}
	}
	for key := range left {
		if _, ok := want[key]; !ok && !marked && key != site.LockKey && (!next || key != site.DeltaKey("0")) {
			t.Errorf("%s: %s: got it without a mark, want a mark", when, key)
		}
	}
}

// A repair makes its puts durable before it deletes the mark.
func TestPowerFailureAfterARepair(t *testing.T) {
	folder := t.TempDir()
	s := siteOf(t, objectsOf(5, ""))
	bucket := &volatile{Local: storage.OpenLocal(folder)}
	publish(t, s, bucket.Local, Options{})
	put(t, folder, listKey(3, site.Details), "damaged")
	if _, err := Repair(context.Background(), s, bucket, Options{}); err != nil {
		t.Fatal(err)
	}
	durable := slices.IndexFunc(bucket.writes, func(w write) bool { return w.key == site.MarkKey && w.body == nil })
	if durable < 0 || !slices.Contains(bucket.synced, durable) {
		t.Errorf("the mark goes after %d writes: got syncs after %v, want one then", durable, bucket.synced)
	}
	equalSites(t, inBucket(t, folder), s)
}
