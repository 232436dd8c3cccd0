package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// An object is an object of the site with its entity tag.
type object struct {
	body []byte
	etag string // the MD5 in quotation marks, as S3 gives it
}

// A version counts the sites that took each other's place in a store. Cached
// objects belong to the version under which they were asked for, so that noticing
// a new site is enough to forget the old one.
type version uint64

// A cache keeps the objects of a store that are asked for often, up to a number of
// bytes, and reads each only once however many ask at the same time. It remembers
// what is not there too.
type cache struct {
	fetcher *fetcher
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
	version version
	key     site.Key
}

const (
	// entryOverhead is about what an entry takes beside its key and its body (a test
	// measures it).
	entryOverhead = 250
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
	objects, err := otter.New(&otter.Options[cacheKey, *object]{
		MaximumWeight: o.CacheBytes,
		Weigher: func(k cacheKey, o *object) uint32 {
			weight := entryOverhead + len(k.key)
			if o != nil {
				weight += len(o.body)
			}
			return uint32(weight)
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
	return &cache{fetcher: f, objects: objects, waiting: waiting, rereads: &room{size: rereadsAtOnce}, metrics: m}, nil
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

// get gives an object, or storage.ErrNotFound.
func (c *cache) get(ctx context.Context, v version, key site.Key) (*object, error) {
	k := cacheKey{v, key}
	if _, cached := c.objects.GetEntryQuietly(k); cached {
		c.metrics.cacheHits.Inc()
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

// renew gives an object as it is in the store now.
func (c *cache) renew(ctx context.Context, v version, key site.Key) (*object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result := <-c.objects.Refresh(ctx, cacheKey{v, key}, c)
	return found(result.Value, result.Err)
}

// put makes a body what the store is known to hold.
func (c *cache) put(v version, key site.Key, body []byte) *object {
	o := newObject(body)
	c.objects.Set(cacheKey{v, key}, o)
	return o
}

func (c *cache) clear() { c.objects.InvalidateAll() }

func found(o *object, err error) (*object, error) {
	if err == nil && o == nil {
		err = storage.ErrNotFound
	}
	return o, err
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
	body, err := c.fetcher.get(ctx, k.key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return newObject(body), nil
}

func newObject(body []byte) *object {
	return &object{body, `"` + site.Sum(body).String() + `"`}
}
