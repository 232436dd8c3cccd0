// Package compute provides what every computed answer needs: objects of the site, prefetched while
// memory allows, and memory for the answer.
//
// An answer holds one object at a time and copies the rows that it needs later, because it must not
// wait for memory while it holds an object. It releases prefetched objects when others wait, and
// starts over if memory runs out. The gate of the answer counts the copies.
package compute

import (
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// A Site is one version of the site.
type Site struct {
	Root    *site.Root
	Version cache.Version
}

// A Maker makes answers. It is safe for concurrent use.
type Maker struct {
	cache  *cache.Cache
	gates  Gates
	reload func(ctx context.Context) Site
}

// Gates bound the memory and the work of making answers.
type Gates struct {
	// Bytes of answers in the making. Large answers have their own gate, since they may read a
	// thousand objects while others wait; so has the single answer of any size. Each gate has a
	// Line.
	Small, Large, Oversize *gate.Gate

	Ahead    *gate.Gate // bytes of prefetched objects
	Scanning *gate.Gate // processor shares for scanning rows
	Mixed    *gate.Gate // requests waiting for the objects of an answer to agree
	Waiting  *gate.Gate // requests waiting for the store; if half of it is taken, nothing is prefetched
}

// NewMaker returns a Maker of answers from the objects of a cache. reload returns the newest site.
func NewMaker(c *cache.Cache, g Gates, reload func(ctx context.Context) Site) *Maker {
	return &Maker{c, g, reload}
}

// Make makes an answer by calling fill. It calls fill again if memory ran out or if the objects
// belong to two sites. The caller releases the returned object. Make returns gate.ErrBusy if no
// memory becomes free in time, else the error of fill.
func (m *Maker) Make(ctx context.Context, s Site, r Request, fill func(*Answer) error) (o *cache.Object, err error) {
	err = m.consistent(ctx, s, func(read reader) error {
		o, err = m.fit(ctx, read, r, fill)
		return err
	})
	return o, err
}

// Read calls f with an answer that has no memory. It calls f again if the objects belong to two
// sites.
func (m *Maker) Read(ctx context.Context, s Site, f func(*Answer) error) error {
	return m.consistent(ctx, s, func(read reader) error { return f(m.answer(ctx, read, Request{})) })
}

func (m *Maker) answer(ctx context.Context, read reader, r Request) *Answer {
	return &Answer{Request: r, Root: read.site.Root, ctx: ctx, read: read, maker: m}
}

const (
	firstReread = 50 * time.Millisecond
	lastReread  = 1600 * time.Millisecond
)

// consistent calls try. If try returns fetch.ErrMixed, consistent calls it again with a reader that
// bypasses the cache.
func (m *Maker) consistent(ctx context.Context, s Site, try func(reader) error) error {
	err := try(reader{m.cache, s, false})
	if !errors.Is(err, fetch.ErrMixed) {
		return err
	}
	// An interrupted publish may leave a list mixed for long; retries must not occupy all requests.
	if !m.gates.Mixed.TryTake(1) {
		return err
	}
	defer m.gates.Mixed.Give(1)
	for wait := firstReread; errors.Is(err, fetch.ErrMixed) && wait <= lastReread; wait *= 2 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
		err = try(reader{m.cache, m.reload(ctx), true})
	}
	return err
}

// fit makes an answer at the smallest gate that has room for it. It returns gate.ErrBusy if none
// has room in time.
func (m *Maker) fit(ctx context.Context, read reader, r Request, fill func(*Answer) error) (*cache.Object, error) {
	for bytes := int64(firstGrant); ; {
		a := m.answer(ctx, read, r)
		o, err := a.filled(bytes, fill)
		if !errors.Is(err, errNoRoom) {
			return o, err
		}
		bytes = max(4*bytes, a.used) // growing fast keeps the number of tries small
	}
}

// filled makes an answer with bytes of memory, or more if more is free.
func (a *Answer) filled(bytes int64, fill func(*Answer) error) (*cache.Object, error) {
	if err := a.acquire(bytes); err != nil {
		return nil, err
	}
	defer a.free() // also after a panic
	if err := fill(a); err != nil {
		return nil, err
	}
	return a.object(), nil
}

// A reader reads objects of one version of a site.
type reader struct {
	cache  *cache.Cache
	site   Site
	renews bool // bypass the cache
}

func (r reader) key(key site.Key) cache.Key { return cache.Key{Version: r.site.Version, Key: key} }

// get returns an object or storage.ErrNotFound. The caller releases the object.
func (r reader) get(ctx context.Context, key site.Key) (*cache.Object, error) {
	if r.renews {
		return r.cache.Renew(ctx, r.key(key))
	}
	return r.cache.Get(ctx, r.key(key))
}

// has reports whether get would return without waiting.
func (r reader) has(key site.Key) bool { return !r.renews && r.cache.Has(r.key(key)) }
