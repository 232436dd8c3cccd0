// Package compute provides what every computed answer needs: objects of the site, prefetched while
// memory allows, and memory for the answer.
//
// An answer holds one object at a time and copies the rows that it needs later, because it must not
// wait for memory while it holds an object. It releases prefetched objects when others wait, and
// starts over if memory runs out. The gate of the answer counts the copies.
package compute

import (
	"context"

	"github.com/followpress/followpress/server/internal/cache"
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
