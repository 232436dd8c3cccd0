package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A version counts the sites that took each other's place in a store. Cached
// objects belong to the version under which they were asked for, so that noticing
// a new site is enough to forget the old one.
type version uint64

// A cache keeps the objects of a store that are asked for often, up to a number of
// bytes, and reads each only once however many ask at the same time. It remembers
// what is not there too.
type cache struct {
	fetcher *fetcher
	keeper  *keeper
	objects *otter.Cache[cacheKey, *object] // nil is an object that is not there
	waiting *room                           // requests that wait for the store
	rereads *room                           // reads in the background, for which nobody waits
	metrics *metrics
}

// A room is for so many requests that wait.
type room struct {
	taken  atomic.Int64
	size   int64
	within *room // of whose size this takes a part; nil for none
}

func (r *room) enter() bool {
	if r.taken.Add(1) > r.size || r.within != nil && !r.within.enter() {
		r.taken.Add(-1)
		return false
	}
	return true
}

func (r *room) leave() {
	r.taken.Add(-1)
	if r.within != nil {
		r.within.leave()
	}
}

type cacheKey struct {
	version     version
	key         site.Key
	withoutTags bool // records, made of those at the key
}

const (
	// entryOverhead is about what an entry takes beside its key and its body (a test
	// measures it).
	entryOverhead = 320
	// keptFor is how long an object is believed before it is read again, in the
	// background: another fallback may have refreshed it. Answers may be as old in
	// any browser, by their Cache-Control.
	keptFor = 5 * time.Minute
	// absentFor is how long it is believed that there is no such object.
	absentFor = 10 * time.Second
	// rereadsAtOnce bounds those reads where the store hangs.
	rereadsAtOnce = 64
	// never is longer than a site lives.
	never = 365 * 24 * time.Hour
)

// errBusy says that too many requests wait for the store already.
var errBusy = errors.New("too many requests wait for the store")

func newCache(f *fetcher, o Options, waiting *room, m *metrics) (*cache, error) {
	keeper := newKeeper(o.InFlightBytes/3, o.InFlightBytes/2)
	objects, err := otter.New(&otter.Options[cacheKey, *object]{
		MaximumWeight: o.CacheBytes,
		Weigher: func(k cacheKey, o *object) uint32 { // called for what is put into the cache, and when it is
			keeper.replaced(k)
			weight := entryOverhead + len(k.key)
			if o != nil {
				o.cached()
				weight += cap(o.body)
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
			if e.Value == nil {
				return absentFor
			}
			return never
		}),
		RefreshCalculator: rereading{otter.RefreshWriting[cacheKey, *object](keptFor)},
		Logger:            &otter.NoopLogger{}, // the fetcher counts failures
		Clock:             o.clock,
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of %d bytes: %w", o.CacheBytes, err)
	}
	return &cache{fetcher: f, keeper: keeper, objects: objects, waiting: waiting, rereads: &room{size: rereadsAtOnce}, metrics: m}, nil
}

// rereading lets some time pass after a failure: else every request for an object
// would try again while the store is away.
type rereading struct {
	otter.RefreshCalculator[cacheKey, *object]
}

// RefreshAfterReloadFailure is the time until the next try.
func (rereading) RefreshAfterReloadFailure(otter.Entry[cacheKey, *object], error) time.Duration {
	return absentFor
}

// get gives an object, or storage.ErrNotFound. The caller releases it.
func (c *cache) get(ctx context.Context, v version, key site.Key) (*object, error) {
	return c.getKey(ctx, cacheKey{version: v, key: key})
}

// getWithoutTags gives the records at a key without their tags. They are kept like
// objects: whoever asks at the same time shares them.
func (c *cache) getWithoutTags(ctx context.Context, v version, key site.Key) (*object, error) {
	return c.getKey(ctx, cacheKey{version: v, key: key, withoutTags: true})
}

func (c *cache) getKey(ctx context.Context, k cacheKey) (*object, error) {
	if c.has(k) {
		c.metrics.cacheHits.Inc()
	} else if o := c.keeper.find(k); o != nil {
		c.metrics.cacheHits.Inc()
		return o, nil
	} else {
		c.metrics.cacheMisses.Inc()
		// Where the store hangs, those who wait for it must leave room for others.
		if !c.waiting.enter() {
			return nil, errBusy
		}
		defer c.waiting.leave()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return found(c.objects.Get(ctx, k, c))
}

// has reports whether an object, or that there is none, is in the cache.
func (c *cache) has(k cacheKey) bool {
	_, cached := c.objects.GetEntryQuietly(k)
	return cached
}

// renew gives an object as it is in the store now. The caller releases it.
func (c *cache) renew(ctx context.Context, v version, key site.Key) (*object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result := <-c.objects.Refresh(ctx, cacheKey{version: v, key: key}, c)
	return found(result.Value, result.Err)
}

// put makes a body what the store is known to hold. Whoever uses the object pins it.
func (c *cache) put(v version, key site.Key, body []byte) *object {
	k := cacheKey{version: v, key: key}
	o := c.newObject(k, body)
	c.objects.Set(k, o)
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

// Reload reads an object again; the cache calls it.
func (c *cache) Reload(ctx context.Context, k cacheKey, _ *object) (*object, error) {
	if !c.rereads.enter() {
		return nil, errBusy
	}
	defer c.rereads.leave()
	return c.Load(ctx, k)
}

// Load reads an object; the cache calls it, once for all who ask.
func (c *cache) Load(ctx context.Context, k cacheKey) (*object, error) {
	// Until it returns, the body counts as what is under way, then as what is cached.
	var held int64
	release := func() {
		if held > 0 {
			c.keeper.ledgerOf(held).give(held)
			held = 0
		}
	}
	defer release()
	body, err := c.fetcher.getAdmitted(ctx, k.key, func(ctx context.Context, size int64) error {
		release() // of a try that failed
		if size == 0 {
			return nil
		}
		if err := c.keeper.ledgerOf(size).acquire(ctx, size); err != nil {
			return err
		}
		held = size
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if k.withoutTags {
		body = site.AppendWithoutTags(body[:0], body) // which is nobody else's, and never grows
	}
	return c.newObject(k, body), nil
}

func (c *cache) newObject(k cacheKey, body []byte) *object {
	o := newObject(body)
	o.keeper, o.key, o.read = c.keeper, k, time.Now().UnixNano()
	o.state.Store(loose)
	return o
}
