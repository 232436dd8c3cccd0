// Package compute is what every computed answer takes: objects of the site, which are read ahead while
// memory allows, and the memory of the answer itself.
//
// An answer holds one object at a time, and copies what it needs for later: it must not wait for
// memory while it holds an object. It releases what it has prefetched as soon as others wait, and begins
// again if it finds no room. The copies count at the gate of the answer.
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

// A Site is the site that a request asks.
type Site struct {
	Root    *site.Root
	Version cache.Version
}

// A Request is what is asked for.
type Request struct {
	Ask   site.Ask
	Query string    // in its normal form
	Users []*string // of the body; nil for a null
}

// A Maker makes answers. It is safe for concurrent use.
type Maker struct {
	cache  *cache.Cache
	gates  Gates
	reload func(ctx context.Context) Site
}

// Gates are what making answers needs.
type Gates struct {
	// Bytes of answers that are being made. Large ones have a gate of their own: they may read a thousand
	// objects, and nobody else must wait for that. So has the one that may have any size. Each has a Line.
	Small, Large, Oversize *gate.Gate

	Ahead    *gate.Gate // bytes of prefetched objects
	Scanning *gate.Gate // shares of the processor for reading rows
	Mixed    *gate.Gate // requests that wait until the objects of an answer agree
	Waiting  *gate.Gate // requests that wait for the store: if half are, nothing is prefetched
}

// NewMaker returns a Maker of answers from the objects of a cache. reload looks for a newer site.
func NewMaker(c *cache.Cache, g Gates, reload func(ctx context.Context) Site) *Maker {
	return &Maker{c, g, reload}
}

// Make makes an answer with fill, which is called again if it finds no memory, or objects of two sites. The
// caller releases the object. The error is gate.ErrBusy if there is no memory in time, else one of fill.
func (m *Maker) Make(ctx context.Context, s Site, r Request, fill func(*Answer) error) (o *cache.Object, err error) {
	err = m.consistent(ctx, s, func(read reader) error {
		o, err = m.fit(ctx, read, r, fill)
		return err
	})
	return o, err
}

// Read calls f with an answer that has no memory, again if f finds objects of two sites.
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

// consistent calls try, and if that returns fetch.ErrMixed, again with a reader past the cache.
func (m *Maker) consistent(ctx context.Context, s Site, try func(reader) error) error {
	err := try(reader{m.cache, s, false})
	if !errors.Is(err, fetch.ErrMixed) {
		return err
	}
	// After a publish that was cut off, a list may stay mixed: it must not occupy all requests.
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
