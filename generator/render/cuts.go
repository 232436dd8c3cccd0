package render

import (
	"sync"

	"github.com/followpress/followpress/site"
)

// A cut says where the rows of a table are cut into shards, so that a shard is rendered without
// looking at the rows of others.
type cut struct {
	once   sync.Once
	rows   int      // of the table
	starts []uint32 // by shard; where its first row is in what the table is made of; the last element is the end
	before []int    // by shard; how many rows before it are follows; the last element is the number of all
}

// make makes the cut of a table that is made of n things. row tells whether one of them is a row, and a
// follow.
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

// Cuts keeps the cuts of long tables of which a shard was read: a few bytes for each of their shards.
// It may be used from many goroutines.
type Cuts struct {
	mu      sync.Mutex
	byTable map[cutTable]*cut
}

// A cutTable is what a list has, or who holds an account.
type cutTable struct {
	ofHolders bool
	number    uint32 // of the list or the account
}

// of returns the cut of a table, which is made of n things.
func (c *Cuts) of(table cutTable, n int, row func(i int) (isRow, isFollow bool)) *cut {
	if n <= site.SearchShardSize { // there are many of these, and each has one shard
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
