package publisher

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

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
