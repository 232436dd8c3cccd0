package render

import (
	"sync"

	"github.com/followpress/followpress/site"
)

// A cut determines where a table is cut into shards, so that a shard is rendered without examining
// the rows of other shards.
type cut struct {
	once   sync.Once
	rows   int      // rows of the table
	starts []uint32 // by shard: index of its first row in the source; the last element is the end
	before []int    // by shard: number of follows in earlier rows; the last element is the total
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
		if c.rows%site.SearchShardSize == 0 {
			c.starts, c.before = append(c.starts, uint32(i)), append(c.before, follows)
		}
		c.rows++
		if isFollow {
			follows++
		}
	}
	c.starts, c.before = append(c.starts, uint32(n)), append(c.before, follows)
}

// Cuts caches the cuts of long tables that had a shard read: a few bytes per shard. It may be used
// concurrently.
type Cuts struct {
	mu      sync.Mutex
	byTable map[cutTable]*cut
}

// A cutTable identifies a table: the records of a list, or the holders of an account.
type cutTable struct {
	ofHolders bool
	number    uint32 // number of the list or the account
}

// get returns the cut of a table with a source of n elements.
func (c *Cuts) get(table cutTable, n int, row func(i int) (isRow, isFollow bool)) *cut {
	if n <= site.SearchShardSize { // these are many, with one shard each
		one := &cut{}
		one.make(n, row)
		return one
	}
	c.mu.Lock()
	if c.byTable == nil {
		c.byTable = map[cutTable]*cut{}
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
