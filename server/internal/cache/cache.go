// Package cache holds objects of a site in memory: those most requested, and those in use.
//
// Gates bound the memory beyond the cache: objects being read, and objects dropped from the cache
// but still in use. Large objects have their own gate, so that two of them do not keep small ones
// out. Computed answers being sent are counted separately (sent).
//
// Requests cannot deadlock, because none waits for memory while it holds an object.
package cache

import (
	"context"
	"errors"
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

// A Version numbers the sites that a handler has served. It is part of each cache key, so that an
// object of an older site never answers for a newer one.
type Version uint64

// A Cache keeps the most requested objects, up to a number of bytes, and the keys known to have no
// object. Requests that miss the same key at the same time share one read. It is safe for
// concurrent use.
type Cache struct {
	fetcher *fetch.Fetcher
	tracker *tracker
	gates   Gates
	counts  Counts
	objects *otter.Cache[Key, *Object] // a nil object means that the store has none
	clock   otter.Clock                // nil for the real clock

	mu      sync.Mutex
	flights map[Key]*flight // computations in progress
}

// Gates bound the reading of objects.
type Gates struct {
	Small, Large *gate.Gate // bytes of objects beyond the cache
	Waiting      *gate.Gate // requests waiting for the store
	Rereads      *gate.Gate // background reads
}

// Counts are called once per lookup.
type Counts struct{ Hit, Missed func() }

// Options configure a cache.
type Options struct {
	Bytes     uint64 // size limit of the cache
	SentBytes int64  // bytes of computed answers being sent, beyond which no more are made
	Gates     Gates
	Counts    Counts
	Clock     otter.Clock // nil for the real clock
}

// A Key identifies an object of one site.
type Key struct {
	Version     Version
	Key         site.Key
	WithoutTags bool // the records at the key, without their tags
}

const (
	// entryOverhead approximates the memory of an entry apart from key and body. A test measures
	// it.
	entryOverhead = 368
	// keptFor is the age at which an object is read again in the background, because another
	// fallback may have refreshed it. The Cache-Control of answers lets browsers keep them as long.
	keptFor = 5 * time.Minute
	// absentFor is how long the cache remembers that an object is missing.
	absentFor = 10 * time.Second
	// newestFor is how far an answer may lag behind an object that changes without a new site.
	newestFor = time.Second
	// never is longer than any site lives.
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
		Weigher: func(k Key, o *Object) uint32 { // called once per object, when it enters the cache
			tracker.replaced(k, o)
			weight := entryOverhead + len(k.Key)
			if o != nil {
				weight += int(o.Bytes())
				if uint64(weight) <= most { // a larger object would be dropped at once
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

// rereading delays the next read after a failed one. Otherwise each request for the object would
// start another while the store is down.
type rereading struct {
	otter.RefreshCalculator[Key, *Object]
}

func (rereading) RefreshAfterReloadFailure(otter.Entry[Key, *Object], error) time.Duration {
	return absentFor
}

// Get returns an object, which the caller must release, or storage.ErrNotFound. It returns
// gate.ErrBusy if too many requests wait for the store.
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

// Young returns a cached object that is not due to be read again; nil if there is none. The caller
// must release it. begun is the time of the request.
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

// isYoung reports whether an object read at time read is not due to be read again. After the clock
// was set back, it is due.
func isYoung(read, now int64) bool { return read <= now && now-read < int64(keptFor) }

// Has reports whether the cache knows a key: its object, or that it has none.
func (c *Cache) Has(k Key) bool {
	_, cached := c.objects.GetEntryQuietly(k)
	return cached
}

// Renew reads an object from the store and caches the result. The caller releases the object.
func (c *Cache) Renew(ctx context.Context, k Key) (*Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result := <-c.objects.Refresh(ctx, k, loader{c})
	return found(result.Value, result.Err)
}

// Newest is Get for an object that may change or appear without a new site. It reads the object
// again if it was missing or was read more than newestFor ago.
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

// Put caches a body that was just written to the store. A caller that uses the object pins it
// first.
func (c *Cache) Put(v Version, key site.Key, body []byte) *Object {
	k := Key{Version: v, Key: key}
	o := c.newObject(k, body)
	c.objects.Set(k, o)
	return o
}

// Peek returns an object if the cache has it or a request uses it. The caller releases it.
func (c *Cache) Peek(k Key) *Object {
	if o, ok := c.objects.GetIfPresent(k); ok && o != nil {
		o.Pin()
		return o
	}
	return c.tracker.find(k)
}

// peekYoung is Peek for objects that are not due to be read again.
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

// Bytes returns the size of the cache.
func (c *Cache) Bytes() uint64 { return c.objects.WeightedSize() }

// Len returns the number of cached keys, including missing ones.
func (c *Cache) Len() int { return c.objects.EstimatedSize() }

// InFlight returns the number of bytes held beyond the cache.
func (c *Cache) InFlight() int64 {
	return c.gates.Small.Taken() + c.gates.Large.Taken() + c.tracker.sent.taken()
}

// GateFor returns the gate for an object of the given size.
func (c *Cache) GateFor(bytes int64) *gate.Gate { return c.tracker.gateFor(bytes) }

// Room returns nil if there is memory for another answer and beyond more bytes. Otherwise it
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

// A flight is a computation shared by several requests.
type flight struct {
	done   chan struct{} // closed when the answer is ready
	object *Object
	err    error
}

// Computed returns the answer for a key, from the cache or by calling compute. Requests for the
// same key at the same time share one call. The caller must release the object.
func (c *Cache) Computed(ctx context.Context, k Key, compute func(ctx context.Context) (*Object, error)) (*Object, error) {
	if o := c.Peek(k); o != nil {
		c.counts.Hit()
		return o, nil
	}
	c.counts.Missed()
	c.mu.Lock()
	f, shared := c.flights[k]
	if !shared {
		f = &flight{done: make(chan struct{}), err: errNoAnswer}
		c.flights[k] = f
	}
	c.mu.Unlock()
	if shared {
		return c.wait(ctx, f)
	}
	defer func() { // also after a panic
		c.mu.Lock()
		delete(c.flights, k)
		c.mu.Unlock()
		close(f.done)
	}()
	ctx, cancel := c.fetcher.Within(ctx) // the first client may leave while others wait
	defer cancel()
	made, err := compute(ctx)
	if err != nil {
		f.err = err
		return nil, err
	}
	f.object, f.err = c.Keep(k, made), nil
	return made, nil
}

// errNoAnswer is the result of a flight that panicked.
var errNoAnswer = errors.New("the computation failed")

func (c *Cache) wait(ctx context.Context, f *flight) (*Object, error) {
	// While the store hangs, other requests must still get through.
	if !c.gates.Waiting.TryTake(1) {
		return nil, gate.ErrBusy
	}
	defer c.gates.Waiting.Give(1)
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	f.object.Pin()
	return f.object, nil
}

// Keep caches a computed answer for keptFor, and returns it.
func (c *Cache) Keep(k Key, computed *Object) *Object {
	computed.key = k
	c.objects.Set(k, computed)
	return computed
}

// NewComputed makes an object of a computed answer. The caller releases it.
func (c *Cache) NewComputed(body []byte) *Object {
	o := c.newObject(Key{}, body)
	o.computed = true
	o.Pin()
	return o
}
