package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// kept holds the refreshed data below site.RefreshPrefix in memory; each graph merges it. It is small compared with a
// graph. Changes by other programs are noticed within keptPoll.
//
// No refresh is lost, and no answer becomes older. Each write has a number. A graph records the last number before it
// reads (snapshot). Later writes are put into its objects before it serves (catchUp). From then on, a refresh begun by an
// older graph also writes to the newest one before it ends (put).
type kept struct {
	bucket Bucket
	live   *Live

	swap chan struct{} // has an element while a graph catches up, and while other programs' refreshes are restored

	// writes serializes the writers of an object, by a digest of its key, so the last write is also
	// recorded last.
	writes [64]chan struct{}

	mu      sync.Mutex
	objects map[site.Key]keptObject // without site.RefreshPrefix
	numbers uint64                  // the last one
}

type keptObject struct {
	body   []byte
	etag   string
	number uint64
}

const (
	keptPoll      = time.Minute
	keptFirst     = 3 * time.Second // timeout of the first read; the next one reads the rest
	keptReads     = 16              // concurrent reads
	mostKeptBytes = 16 << 20        // size of an object, equal to the limit of a snapshot row
)

func newKept(bucket Bucket, l *Live) *kept {
	k := &kept{bucket: bucket, live: l, swap: make(chan struct{}, 1), objects: map[site.Key]keptObject{}}
	for i := range k.writes {
		k.writes[i] = make(chan struct{}, 1)
	}
	return k
}

// withoutPrefix returns the key of refreshed data in graphs. ok is false for other objects, such as notes about copies.
func withoutPrefix(key site.Key) (_ site.Key, ok bool) {
	short, ok := strings.CutPrefix(string(key), string(site.RefreshPrefix))
	return site.Key(short), ok && !strings.HasPrefix(string(key), string(site.RefreshCopies)) && !strings.HasSuffix(short, "/")
}

// read lists the bucket and reads the changed objects.
func (k *kept) read(ctx context.Context) error {
	known, mark := k.snapshot()
	var changed []storage.Info
	listed := map[site.Key]bool{}
	err := k.bucket.List(ctx, site.RefreshPrefix, "", func(info storage.Info) error {
		key, ok := withoutPrefix(info.Key)
		if !ok {
			return nil
		}
		if info.Size > mostKeptBytes {
			return fmt.Errorf("%s has %d bytes, more than %d MiB: no refresh writes such objects; delete it", info.Key, info.Size, mostKeptBytes>>20)
		}
		listed[key] = true
		if have, ok := known[key]; !ok || have.etag != info.ETag {
			changed = append(changed, info)
		}
		return nil
	})
	if err != nil {
		return err
	}
	k.forget(listed, mark)
	var reads errgroup.Group
	reads.SetLimit(keptReads)
	for _, info := range changed {
		reads.Go(func() error {
			body, is, err := k.bucket.Read(ctx, info.Key)
			if errors.Is(err, storage.ErrNotFound) {
				return nil
			} else if err != nil {
				return err
			}
			k.set(info.Key, body, is.ETag, mark)
			return nil
		})
	}
	return reads.Wait()
}

// forget drops objects that a listing lacks, unless they were written after the mark.
func (k *kept) forget(listed map[site.Key]bool, mark uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.objects, func(key site.Key, o keptObject) bool { return !listed[key] && o.number <= mark })
}

// set records an object that was read or written. It ignores an object written after the mark, because the one read may
// be older. It returns the serving graph; later graphs include the object.
func (k *kept) set(key site.Key, body []byte, etag string, unlessAfter uint64) *graph {
	k.mu.Lock()
	defer k.mu.Unlock()
	short, ok := withoutPrefix(key)
	if have, known := k.objects[short]; ok && (!known || have.etag != etag && have.number <= unlessAfter) {
		k.numbers++
		k.objects[short] = keptObject{k.live.Server.Refresh.Signing.Believed(key, body), etag, k.numbers}
	}
	if s := k.live.state.Load(); s != nil {
		return s.graph
	}
	return nil
}

// watch reads changes by other programs, and restores them in the serving graph, until ctx ends.
func (k *kept) watch(ctx context.Context) {
	_, mark := k.snapshot()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(keptPoll):
		}
		err := k.read(ctx)
		if err == nil {
			mark, err = k.restore(ctx, mark)
		}
		if err != nil && ctx.Err() == nil {
			k.live.Log.Warn("cannot read stored refreshes, will retry", "error", err)
		}
	}
}

// restore puts data stored since a mark into the serving graph. It returns the next mark.
func (k *kept) restore(ctx context.Context, mark uint64) (uint64, error) {
	unlock, err := lock(ctx, k.swap)
	if err != nil {
		return mark, err
	}
	defer unlock()
	keys, next := k.since(mark)
	s := k.live.state.Load()
	if s == nil || len(keys) == 0 {
		return next, nil
	}
	if err := s.graph.restore(ctx, keys); err != nil {
		return mark, err
	}
	return next, nil
}

// lock acquires a channel of one element as a mutex, unless ctx ends first.
func lock(ctx context.Context, held chan struct{}) (unlock func(), err error) {
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// put writes an object of a refresh. If another graph serves by then, that graph gets the data too,
// even if the object was stored before, because that refresh may not have updated the graph yet.
func (k *kept) put(ctx context.Context, by *graph, o storage.Object, condition storage.Condition) (etag string, err error) {
	etag, serves, err := k.write(ctx, o, condition)
	if err != nil {
		return "", err
	}
	if serves == by {
		return etag, nil // later graphs find the object in kept
	}
	unlock, err := lock(ctx, k.swap)
	if err != nil {
		return "", err
	}
	defer unlock()
	newest := k.live.state.Load().graph // not by: it was replaced, and none serves again
	if err := newest.restore(ctx, []site.Key{o.Key}); err != nil {
		return "", fmt.Errorf("restore %s in the newest graph: %w", o.Key, err)
	}
	return etag, nil
}

// write writes an object, unless the bucket has it already, and records it. It returns the serving
// graph, as set does.
func (k *kept) write(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, serves *graph, err error) {
	unlock, err := lock(ctx, k.writes[crc32.ChecksumIEEE([]byte(o.Key))%uint32(len(k.writes))])
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	etag = string(condition)
	if !k.has(o, etag) {
		if etag, err = k.bucket.Put(ctx, o, condition); err != nil {
			return "", nil, err
		}
	}
	return etag, k.set(o.Key, o.Body, etag, math.MaxUint64), nil
}

// has reports whether the object is known, with an ETag just read from the bucket.
func (k *kept) has(o storage.Object, etag string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	short, _ := withoutPrefix(o.Key)
	have, known := k.objects[short]
	return known && have.etag == etag && bytes.Equal(have.body, o.Body)
}

// since returns the keys written since a mark, and the next mark.
func (k *kept) since(mark uint64) (keys []site.Key, next uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, o := range k.objects {
		if o.number > mark {
			keys = append(keys, site.RefreshPrefix+key)
		}
	}
	return keys, k.numbers
}

// catchUp puts data stored since a graph began into that graph, and installs it. A concurrent put waits for that, and
// then writes to the new graph.
func (k *kept) catchUp(ctx context.Context, g *graph, mark uint64, install func()) error {
	unlock, err := lock(ctx, k.swap)
	if err != nil {
		return err
	}
	defer unlock()
	for {
		keys, next := k.since(mark)
		if err := g.restore(ctx, keys); err != nil {
			return fmt.Errorf("restore concurrent refreshes: %w", err)
		}
		if k.unchanged(next, install) {
			return nil
		}
		mark = next
	}
}

// unchanged calls do, unless something was stored since a mark. Nothing is stored while do runs.
func (k *kept) unchanged(mark uint64, do func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.numbers != mark {
		return false
	}
	do()
	return true
}

// A keptSnapshot is the refreshed data at one time, which generator merges.
type keptSnapshot map[site.Key]keptObject

// snapshot returns the current data and its mark.
func (k *kept) snapshot() (keptSnapshot, uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.objects), k.numbers
}

// Each calls found for each object, in the order of keys.
func (k keptSnapshot) Each(_ context.Context, found func(key site.Key, body []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(k)) {
		if k[key].body == nil {
			continue // a key must have signed it, and none has
		}
		if err := found(key, k[key].body); err != nil {
			return err
		}
	}
	return nil
}

// objectsAndBytes returns the number and size of the objects in memory.
func (k *kept) objectsAndBytes() (objects int, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range k.objects {
		bytes += int64(len(o.body))
	}
	return len(k.objects), bytes
}
