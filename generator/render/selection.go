package render

import (
	"slices"
	"sync"

	"github.com/followpress/followpress/site"
)

// A Selection selects an object of a unit to read, so that the unit can skip the others. It is a
// hint: other objects may still be rendered. The zero value selects all objects.
type Selection struct {
	Object site.ListObject // requested object; "" for units without selection
	List   uint32          // list of the object, if it has a token
	Token  string          // token ID of the list; "" for none
	Shard  int             // number of a ShardObject; HeadShard for a head
	Cuts   *Cuts           // cuts of sharded tables; nil if all objects are selected

	one [1]uint32
}

// ShardObject represents the shards and heads of a list or of the followers of an account.
const ShardObject site.ListObject = "(shard)"

// HeadShard represents the head among shard numbers.
const HeadShard = -1

// Wants reports whether one of these objects may be selected.
func (s *Selection) Wants(objects ...site.ListObject) bool {
	return s.Object == "" || slices.Contains(objects, s.Object)
}

// WantsPages reports whether an object of renderPages is selected.
func (s *Selection) WantsPages() bool {
	return s.Wants(site.Stats, site.PageFollowing, site.PageFollowers, site.SearchFollowing)
}

// WantsList reports whether an object of a list, or with "" of a user, that is rendered for user
// and list together may be selected.
func (s *Selection) WantsList(token string) bool {
	return s.Object == "" || s.Token == "" || s.Token == token
}

// Lists returns the selected lists of an account.
func (s *Selection) Lists(all []uint32) []uint32 {
	switch {
	case s.Object == "":
		return all
	case s.Token == "":
		return nil
	}
	s.one[0] = s.List
	return s.one[:]
}

// shards returns the range [from, to) of selected shards among n.
func (s *Selection) shards(n int) (from, to int) {
	if s.Object == "" {
		return 0, n
	}
	return max(s.Shard, 0), min(s.Shard+1, n)
}

// WantsOneOf reports whether exactly one of n shards is selected.
func (s *Selection) WantsOneOf(n int) bool {
	return s.Object == ShardObject && s.Shard >= 0 && s.Shard < n
}

func (s *Selection) wantsHead() bool { return s.Object == "" || s.Shard == HeadShard }

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
