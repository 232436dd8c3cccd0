// Package cache holds the objects of a site that are in memory: those that are asked for most, and those
// that requests use.
//
// Gates bound what is beyond the cache: objects that are being read, and those that the cache has dropped
// while requests still use them. Large ones have a gate of their own, so that two of them do not keep small
// ones out. Computed answers that clients receive are counted apart (sent).
//
// There is no deadlock, because no request waits for memory while it holds an object.
package cache

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A Version numbers the sites that a handler has served. Each cache key has one, so
// that no object of an older site answers for a newer one.
type Version uint64

// A Cache keeps the objects that are asked for most, up to a number of bytes, and the keys
// that have no object. Requests that miss the same key at the same time share one read. It
// is safe for concurrent use.
type Cache struct {
	fetcher *fetch.Fetcher
	tracker *tracker
	gates   Gates
	counts  Counts
	objects *otter.Cache[Key, *Object] // nil: the store has no such object
	clock   otter.Clock                // nil for the real one

	mu      sync.Mutex
	flights map[Key]*flight // of computed answers
}

// Gates are what the cache needs to read objects.
type Gates struct {
	Small, Large *gate.Gate // bytes of objects beyond the cache
	Waiting      *gate.Gate // requests that wait for the store
	Rereads      *gate.Gate // reads in the background
}

// Counts are called for each lookup.
type Counts struct{ Hit, Missed func() }

// Options configure a cache.
type Options struct {
	Bytes     uint64 // most bytes in the cache
	SentBytes int64  // of computed answers that clients receive, beyond which no more are made
	Gates     Gates
	Counts    Counts
	Clock     otter.Clock // nil for the real one
}

// A Key is the key of an object of one site.
type Key struct {
	Version     Version
	Key         site.Key
	WithoutTags bool // the records at the key, with their tags left out
}

const (
	// entryOverhead approximates the bytes of an entry beyond its key and body. A test
	// measures it.
	entryOverhead = 368
	// keptFor is the age at which an object is read again, in the background, because
	// another fallback may have refreshed it. Browsers may keep answers as long, by their
	// Cache-Control.
	keptFor = 5 * time.Minute
	// absentFor is how long the cache remembers that an object does not exist.
	absentFor = 10 * time.Second
	// newestFor is how long an answer may be behind an object that changes without a new site.
	newestFor = time.Second
	// never outlasts every site.
	never = 365 * 24 * time.Hour
)

// New returns an empty cache. The caller must Close it.
func New(f *fetch.Fetcher, o Options) (*Cache, error) {
	now := func() int64 { return time.Now().UnixNano() }
	if o.Clock != nil {
		now = o.Clock.NowNano
	}
	tracker := newTracker(o.Gates, o.SentBytes, now)
	most := o.Bytes
	objects, err := otter.New(&otter.Options[Key, *Object]{
		MaximumWeight: o.Bytes,
		Weigher: func(k Key, o *Object) uint32 { // called once for each object that enters the cache, at that moment
			tracker.replaced(k, o)
			weight := entryOverhead + len(k.Key)
			if o != nil {
				weight += int(o.Bytes())
				if uint64(weight) <= most { // else the cache drops it in a moment
					o.cached()
				}
			}
			return uint32(min(weight, math.MaxUint32))
		},
		OnAtomicDeletion: func(e otter.DeletionEvent[Key, *Object]) {
			if e.Value != nil {
				e.Value.old.Store(e.Cause != otter.CauseOverflow)
				e.Value.uncached()
			}
		},
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[Key, *Object]) time.Duration {
			switch {
			case e.Value == nil:
				return absentFor
			case e.Value.computed:
				return keptFor
			}
			return never
		}),
		RefreshCalculator: rereading{otter.RefreshWritingFunc(func(e otter.Entry[Key, *Object]) time.Duration {
			if e.Value != nil && e.Value.computed {
				return never // the store has no such object
			}
			return keptFor
		})},
		Logger: &otter.NoopLogger{}, // the fetcher's metrics count failures
		Clock:  o.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of %d bytes: %w", o.Bytes, err)
	}
	return &Cache{fetcher: f, tracker: tracker, gates: o.Gates, counts: o.Counts, objects: objects, clock: o.Clock, flights: map[Key]*flight{}}, nil
}

// rereading delays the next read after one that failed. Otherwise every request for the
// object would start another while the store is down.
type rereading struct {
	otter.RefreshCalculator[Key, *Object]
}

func (rereading) RefreshAfterReloadFailure(otter.Entry[Key, *Object], error) time.Duration {
	return absentFor
}

// Get returns an object, which the caller must release, or storage.ErrNotFound. gate.ErrBusy
// means that too many requests wait for the store.
func (c *Cache) Get(ctx context.Context, k Key) (*Object, error) {
	if c.Has(k) {
		c.counts.Hit()
	} else if o := c.tracker.find(k); o != nil {
		c.counts.Hit()
		return o, nil
	} else {
		c.counts.Missed()
		// While the store hangs, other requests must still get through.
		if !c.gates.Waiting.TryTake(1) {
			return nil, gate.ErrBusy
		}
		defer c.gates.Waiting.Give(1)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var first loaded
	defer first.release()
	return found(c.objects.Get(context.WithValue(ctx, loadedKey{}, &first), k, loader{c}))
}

// Young returns an object that is cached and need not be read again yet, which the caller must release;
// nil if there is none. begun is about now.
func (c *Cache) Young(k Key, begun time.Time) *Object {
	o, _ := c.objects.GetIfPresent(k)
	if o == nil {
		return nil
	}
	now := begun.UnixNano()
	if c.clock != nil {
		now = c.clock.NowNano()
	}
	if !isYoung(o.read, now) {
		return nil
	}
	o.Pin()
	return o
}

// isYoung reports whether what was read then need not be read again yet. The clock may have been set
// back since; then nobody knows.
func isYoung(read, now int64) bool { return read <= now && now-read < int64(keptFor) }

// Has reports whether the cache can answer for a key: with an object or with its absence.
func (c *Cache) Has(k Key) bool {
	_, cached := c.objects.GetEntryQuietly(k)
	return cached
}

// Renew reads an object past the cache and caches the result. The caller releases it.
func (c *Cache) Renew(ctx context.Context, k Key) (*Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result := <-c.objects.Refresh(ctx, k, loader{c})
	return found(result.Value, result.Err)
}

// Newest is Get for an object that may change or appear without a new site: one that was read more than
// newestFor ago is read again, and one that did not exist is looked for again.
func (c *Cache) Newest(ctx context.Context, k Key) (*Object, error) {
	if o := c.Peek(k); o != nil {
		if age := c.tracker.now() - o.read; 0 <= age && age < int64(newestFor) {
			c.counts.Hit()
			return o, nil
		}
		o.Release()
	}
	c.counts.Missed()
	if !c.gates.Waiting.TryTake(1) { // while the store hangs, other requests must still get through
		return nil, gate.ErrBusy
	}
	defer c.gates.Waiting.Give(1)
	return c.Renew(ctx, k)
}

// Put caches a body that was just written to the store. A caller that uses the object pins
// it first.
func (c *Cache) Put(v Version, key site.Key, body []byte) *Object {
	k := Key{Version: v, Key: key}
	o := c.newObject(k, body)
	c.objects.Set(k, o)
	return o
}

// Peek returns an object if the cache has it, or a request uses it. The caller releases it.
func (c *Cache) Peek(k Key) *Object {
	if o, ok := c.objects.GetIfPresent(k); ok && o != nil {
		o.Pin()
		return o
	}
	return c.tracker.find(k)
}

// peekYoung is Peek for objects that need not be read again yet.
func (c *Cache) peekYoung(k Key) *Object {
	o := c.Peek(k)
	if o != nil && !isYoung(o.read, c.tracker.now()) {
		o.Release()
		return nil
	}
	return o
}

// Clear removes all objects.
func (c *Cache) Clear() { c.objects.InvalidateAll() }

// Close stops the goroutines of the cache. It does not close the store.
func (c *Cache) Close() { c.objects.StopAllGoroutines() }

// Bytes is the size of the cache.
func (c *Cache) Bytes() uint64 { return c.objects.WeightedSize() }

// Len is the number of objects in the cache, including those known to be absent.
func (c *Cache) Len() int { return c.objects.EstimatedSize() }

// InFlight is the number of bytes that are held beyond the cache.
func (c *Cache) InFlight() int64 {
	return c.gates.Small.Taken() + c.gates.Large.Taken() + c.tracker.sent.taken()
}

// GateFor is the gate for an object of that many bytes.
func (c *Cache) GateFor(bytes int64) *gate.Gate { return c.tracker.gateFor(bytes) }

// Room returns nil if there is memory for another answer, with so many bytes more than usual. Else it
// returns a channel that is closed when there may be.
func (c *Cache) Room(beyond int64) <-chan struct{} { return c.tracker.sent.room(beyond) }

func found(o *Object, err error) (*Object, error) {
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, storage.ErrNotFound
	}
	o.Pin()
	return o, nil
}

func (c *Cache) newObject(k Key, body []byte) *Object {
	o := NewObject(body)
	o.tracker, o.key, o.read = c.tracker, k, c.tracker.now()
	o.state.Store(notCached)
	return o
}
