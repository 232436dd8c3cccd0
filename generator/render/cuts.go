package render

import (
	"sync"

	"github.com/followpress/followpress/site"
)

// A cut determines where a table is cut into shards, so that a shard is rendered without examining
// the rows of other shards.
type cut struct {
	once   sync.Once
	Rows   int      // rows of the table
	Starts []uint32 // by shard: index of its first row in the source; the last element is the end
	Before []int    // by shard: number of follows in earlier rows; the last element is the total
}

// make computes the cut of a table from a source of n elements. row reports whether an element is a
// row, and whether it is a follow.
func (c *cut) make(n int, row func(i int) (isRow, isFollow bool)) {
	follows := 0
	for i := range n {
		isRow, isFollow := row(i)
		if !isRow {
			continue
		}
		if c.Rows%site.SearchShardSize == 0 {
			c.Starts, c.Before = append(c.Starts, uint32(i)), append(c.Before, follows)
		}
		c.Rows++
		if isFollow {
			follows++
		}
	}
	c.Starts, c.Before = append(c.Starts, uint32(n)), append(c.Before, follows)
}

// Cuts caches the cuts of long tables that had a shard read: a few bytes per shard. It may be used
// concurrently.
type Cuts struct {
	mu      sync.Mutex
	byTable map[CutTable]*cut
}

// A CutTable identifies a table: the records of a list, or the holders of an account.
type CutTable struct {
	OfHolders bool
	Number    uint32 // number of the list or the account
}

// Get returns the cut of a table with a source of n elements.
func (c *Cuts) Get(table CutTable, n int, row func(i int) (isRow, isFollow bool)) *cut {
	if n <= site.SearchShardSize { // these are many, with one shard each
		one := &cut{}
		one.make(n, row)
		return one
	}
	c.mu.Lock()
	if c.byTable == nil {
		c.byTable = map[CutTable]*cut{}
	}
	found, ok := c.byTable[table]
	if !ok {
		found = &cut{}
		c.byTable[table] = found
	}
	c.mu.Unlock()
	found.once.Do(func() { found.make(n, row) })
	return found
}
