// Package compute is what every computed answer takes: objects of the site, which are read ahead while
// memory allows, and the memory of the answer itself.
//
// An answer holds one object at a time, and copies what it needs for later: it must not wait for
// memory while it holds an object. It releases what it has prefetched as soon as others wait, and begins
// again if it finds no room. The copies count at the gate of the answer.
package compute

import (
	"context"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// A Site is the site that a request asks.
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
