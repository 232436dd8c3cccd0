package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A version numbers the sites that a handler has served. It is part of each cache key, so
// that no object of an older site answers for a newer one.
type version uint64

// A cache keeps the objects that are asked for most, up to a number of bytes, and the keys
// that have no object. Requests that miss the same key at the same time share one read. It
// is safe for concurrent use.
type cache struct {
	fetcher *fetcher
	tracker *tracker
	objects *otter.Cache[cacheKey, *object] // nil: the store has no such object
	waiting *slots                          // of requests that wait for the store
	rereads *slots                          // of reads in the background
	metrics *metrics
	clock   otter.Clock // nil for the real one

	mu      sync.Mutex
	flights map[cacheKey]*flight // of computed answers
}

// A flight is a computation whose answer several requests wait for.
type flight struct {
	done   chan struct{} // closed when there is an answer
	object *object
	err    error
}

type cacheKey struct {
	version     version
	key         site.Key
	withoutTags bool // the records at the key, with their tags left out
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
	// rereadsAtOnce bounds the reads in the background while the store hangs.
	rereadsAtOnce = 64
	// never outlasts every site.
	never = 365 * 24 * time.Hour
)

// errBusy says that too many requests wait already, for the store or for memory.
var errBusy = errors.New("too many requests are waiting")

func newCache(f *fetcher, o Options, waiting *slots, m *metrics) (*cache, error) {
	now := func() int64 { return time.Now().UnixNano() }
	if o.clock != nil {
		now = o.clock.NowNano
	}
	tracker := newTracker(o.InFlightBytes/3, o.InFlightBytes/2, o.InFlightBytes/6, now)
	most := o.CacheBytes
	objects, err := otter.New(&otter.Options[cacheKey, *object]{
		MaximumWeight: o.CacheBytes,
		Weigher: func(k cacheKey, o *object) uint32 { // called once for each object that enters the cache, at that moment
			tracker.replaced(k, o)
			weight := entryOverhead + len(k.key)
			if o != nil {
				weight += int(o.bytes())
				if uint64(weight) <= most { // else the cache drops it in a moment
					o.cached()
				}
			}
			return uint32(min(weight, math.MaxUint32))
		},
		OnAtomicDeletion: func(e otter.DeletionEvent[cacheKey, *object]) {
			if e.Value != nil {
				e.Value.old.Store(e.Cause != otter.CauseOverflow)
				e.Value.uncached()
			}
		},
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[cacheKey, *object]) time.Duration {
			switch {
			case e.Value == nil:
				return absentFor
			case e.Value.computed:
				return keptFor
			}
			return never
		}),
		RefreshCalculator: rereading{otter.RefreshWritingFunc(func(e otter.Entry[cacheKey, *object]) time.Duration {
			if e.Value != nil && e.Value.computed {
				return never // the store has no such object
			}
			return keptFor
		})},
		Logger: &otter.NoopLogger{}, // the fetcher's metrics count failures
		Clock:  o.clock,
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of %d bytes: %w", o.CacheBytes, err)
	}
	return &cache{fetcher: f, tracker: tracker, objects: objects, waiting: waiting, rereads: &slots{size: rereadsAtOnce}, metrics: m, clock: o.clock, flights: map[cacheKey]*flight{}}, nil
}

// rereading delays the next read after one that failed. Otherwise every request for the
// object would start another while the store is down.
type rereading struct {
	otter.RefreshCalculator[cacheKey, *object]
}

// RefreshAfterReloadFailure is the time until the next try.
func (rereading) RefreshAfterReloadFailure(otter.Entry[cacheKey, *object], error) time.Duration {
	return absentFor
}

// get returns an object, which the caller must release, or storage.ErrNotFound. errBusy
// means that too many requests wait for the store.
func (c *cache) get(ctx context.Context, k cacheKey) (*object, error) {
	if c.has(k) {
		c.metrics.cacheHits.Inc()
	} else if o := c.tracker.find(k); o != nil {
		c.metrics.cacheHits.Inc()
		return o, nil
	} else {
		c.metrics.cacheMisses.Inc()
		// While the store hangs, other requests must still get through.
		if !c.waiting.tryAcquire() {
			return nil, errBusy
		}
		defer c.waiting.release()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var first loaded
	defer first.release()
	return found(c.objects.Get(context.WithValue(ctx, loadedKey{}, &first), k, c))
}

// Loaded is the object that a request has loaded, pinned until the request has pinned it itself: in between,
// the cache may have dropped it already, and others must find it and not load it again.
type loaded struct{ atomic.Pointer[object] }

// loadedKey is the key of a *loaded in a context.
type loadedKey struct{}

// nothingLoaded is put in the place of the object when nobody waits for it any more.
var nothingLoaded object

// take takes over an object that is pinned.
func (l *loaded) take(o *object) {
	if !l.CompareAndSwap(nil, o) {
		o.release()
	}
}

func (l *loaded) release() {
	if o := l.Swap(&nothingLoaded); o != nil {
		o.release()
	}
}

// young returns an object that is cached and need not be read again yet, which the caller must release;
// nil if there is none. begun is about now.
func (c *cache) young(k cacheKey, begun time.Time) *object {
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
	o.pin()
	return o
}

// isYoung reports whether what was read then need not be read again yet. The clock may have been set
// back since; then nobody knows.
func isYoung(read, now int64) bool { return read <= now && now-read < int64(keptFor) }

// has reports whether the cache can answer for a key: with an object or with its absence.
func (c *cache) has(k cacheKey) bool {
	_, cached := c.objects.GetEntryQuietly(k)
	return cached
}

// renew reads an object past the cache and caches the result. The caller releases it.
func (c *cache) renew(ctx context.Context, k cacheKey) (*object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result := <-c.objects.Refresh(ctx, k, c)
	return found(result.Value, result.Err)
}

// newest is get for an object that may change or appear without a new site: one that was read more than
// newestFor ago is read again, and one that did not exist is looked for again.
func (c *cache) newest(ctx context.Context, k cacheKey) (*object, error) {
	if o := c.peek(k); o != nil {
		if age := c.tracker.now() - o.read; 0 <= age && age < int64(newestFor) {
			c.metrics.cacheHits.Inc()
			return o, nil
		}
		o.release()
	}
	c.metrics.cacheMisses.Inc()
	if !c.waiting.tryAcquire() { // while the store hangs, other requests must still get through
		return nil, errBusy
	}
	defer c.waiting.release()
	return c.renew(ctx, k)
}

// put caches a body that was just written to the store. A caller that uses the object pins
// it first.
func (c *cache) put(v version, key site.Key, body []byte) *object {
	k := cacheKey{version: v, key: key}
	o := c.newObject(k, body)
	c.objects.Set(k, o)
	return o
}

// computed returns a computed answer, which the caller must release. Requests that need the same one at the
// same time share a computation.
func (c *cache) computed(ctx context.Context, k cacheKey, compute func(ctx context.Context) (*object, error)) (*object, error) {
	if o := c.peek(k); o != nil {
		c.metrics.cacheHits.Inc()
		return o, nil
	}
	c.metrics.cacheMisses.Inc()
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
	defer func() { // after a panic too
		c.mu.Lock()
		delete(c.flights, k)
		c.mu.Unlock()
		close(f.done)
	}()
	ctx, cancel := c.fetcher.within(ctx) // the first client may leave; others may wait for the result
	defer cancel()
	made, err := compute(ctx)
	if err != nil {
		f.err = err
		return nil, err
	}
	f.object, f.err = c.keep(k, made), nil
	return made, nil
}

// errNoAnswer is the error of a flight that panicked.
var errNoAnswer = errors.New("the computation failed")

// wait waits for the answer of a flight.
func (c *cache) wait(ctx context.Context, f *flight) (*object, error) {
	// While the store hangs, other requests must still get through.
	if !c.waiting.tryAcquire() {
		return nil, errBusy
	}
	defer c.waiting.release()
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	f.object.pin()
	return f.object, nil
}

// peek returns an object if the cache has it, or a request uses it. The caller releases it.
func (c *cache) peek(k cacheKey) *object {
	if o, ok := c.objects.GetIfPresent(k); ok && o != nil {
		o.pin()
		return o
	}
	return c.tracker.find(k)
}

// peekYoung is peek for objects that need not be read again yet.
func (c *cache) peekYoung(k cacheKey) *object {
	o := c.peek(k)
	if o != nil && !isYoung(o.read, c.tracker.now()) {
		o.release()
		return nil
	}
	return o
}

// keep caches what was computed, for keptFor, and returns it.
func (c *cache) keep(k cacheKey, computed *object) *object {
	computed.key = k
	c.objects.Set(k, computed)
	return computed
}

// computedObject makes an object of a computed answer, which the caller releases.
func (c *cache) computedObject(body []byte) *object {
	o := c.newObject(cacheKey{}, body)
	o.computed = true
	o.pin()
	return o
}

func (c *cache) clear() { c.objects.InvalidateAll() }

func found(o *object, err error) (*object, error) {
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, storage.ErrNotFound
	}
	o.pin()
	return o, nil
}

// Reload reads an object again. otter calls it.
func (c *cache) Reload(ctx context.Context, k cacheKey, _ *object) (*object, error) {
	if !c.rereads.tryAcquire() {
		return nil, errBusy
	}
	defer c.rereads.release()
	return c.load(ctx, k, false, nil)
}

// indexBytes is what the index of a full search shard takes, with names of some length.
const indexBytes = 96 << 10

// Load reads an object. otter calls it once for all requests that wait for the key.
func (c *cache) Load(ctx context.Context, k cacheKey) (*object, error) {
	by, _ := ctx.Value(loadedKey{}).(*loaded)
	if by != nil {
		if o := c.tracker.find(k); o != nil { // since a moment ago
			by.take(o)
			return o, nil
		}
	}
	return c.load(ctx, k, k.withoutTags, by)
}

// load reads an object. With derive, it leaves the tags out of records that the cache has already. by gets the
// object too, unless it is nil.
func (c *cache) load(ctx context.Context, k cacheKey, derive bool, by *loaded) (o *object, err error) {
	// The body counts against the budget until Load returns, then against the cache.
	var held int64
	release := func() {
		if held > 0 {
			c.tracker.budgetFor(held).give(held)
			held = 0
		}
	}
	defer release()
	defer func() {
		if o != nil && by != nil {
			o.pin() // before its memory counts for nobody
			by.take(o)
		}
	}()
	_, _, isShard := site.ParseSearchShardKey(k.key)
	admit := func(ctx context.Context, size int64) error {
		release() // what an earlier attempt held
		if size == 0 {
			return nil
		}
		if isShard {
			size += min(size/2, indexBytes)
		}
		if err := c.tracker.budgetFor(size).acquire(ctx, size); err != nil {
			return err
		}
		held = size
		return nil
	}
	if derive {
		if o, err := c.derived(ctx, k, admit); o != nil || err != nil {
			return o, err
		}
	}
	body, err := c.fetcher.getAdmitted(ctx, k.key, admit)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if k.withoutTags {
		body = site.AppendWithoutTags(body[:0], body) // nobody else has this body, and the result is never longer
	}
	o = c.newObject(k, body)
	if isShard {
		if index, ok := site.IndexShard(body); ok {
			o.index = index
		}
	}
	return o, nil
}

// derived makes records without tags of those that are in memory, if they are and need not be read
// again yet. It calls admit with the size before it takes memory.
func (c *cache) derived(ctx context.Context, k cacheKey, admit func(ctx context.Context, size int64) error) (*object, error) {
	whole := cacheKey{version: k.version, key: k.key}
	records := c.peekYoung(whole)
	if records == nil {
		return nil, nil
	}
	size := len(records.body)
	records.release() // nobody waits for memory and holds an object
	if err := admit(ctx, int64(size)); err != nil {
		return nil, err
	}
	if records = c.peekYoung(whole); records == nil {
		return nil, nil
	}
	defer records.release()
	o := c.newObject(k, site.AppendWithoutTags(make([]byte, 0, len(records.body)), records.body))
	o.read = records.read
	return o, nil
}

func (c *cache) newObject(k cacheKey, body []byte) *object {
	o := newObject(body)
	o.tracker, o.key, o.read = c.tracker, k, c.tracker.now()
	o.state.Store(notCached)
	return o
}
