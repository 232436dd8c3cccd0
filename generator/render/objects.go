package render

import "github.com/followpress/followpress/site"

// This file counts objects without rendering them, from the table of routes.

// ShardCount returns the number of shards of a table. An empty table has one.
func ShardCount(rows, size int) int { return max(1, (rows+size-1)/size) }

// UsualShards is ShardCount for shards of the usual size.
func UsualShards(rows int) int { return ShardCount(rows, site.SearchShardSize) }

// rowObjects returns the number of objects with the rows of a list or an account, besides its
// bucket: shards, and a head if there are several.
func rowObjects(rows int) int {
	switch {
	case rows <= site.PackedRows:
		return 0
	case rows <= site.SearchShardSize:
		return 1
	}
	return UsualShards(rows) + 1
}

// SearchShards returns the number of search shards of a list. A list that fits on the first page
// needs none.
func SearchShards(follows int) int {
	if follows < site.DefaultLimit {
		return 0
	}
	return UsualShards(follows)
}

// ListObjects returns the number of objects of a list that holds and follows these numbers of
// accounts. A primary list includes the search of its account.
func ListObjects(c site.Config, held, follows int, primary bool) int {
	n := len(c.ListObjects())
	if primary {
		n++
	}
	if c.EFP() {
		return n + rowObjects(held)
	}
	return n + SearchShards(follows)
}

// AccountObjects returns the number of objects of an account held by this number of primary lists,
// without those of its lists and its name.
func AccountObjects(c site.Config, holders int) int {
	if !c.EFP() {
		return 0
	}
	return len(site.UserObjects()) + rowObjects(holders)
}

// NameObjects returns the number of objects of a name.
func NameObjects(c site.Config) int {
	switch {
	case !c.EFP():
		return 1 // its search
	case c.Names == site.NamesLookup:
		return 0
	}
	return len(site.UserObjects()) + 1
}

// Tables are the sizes of tables that exist once.
type Tables struct {
	BucketDigits, TokenDigits int // digits of user and token buckets
	Ranked, Recommended       int // accounts
}

// SharedObjects returns the number of objects that neither belong to one list, account or name, nor
// are rendered by Renderer.Fixed.
func SharedObjects(c site.Config, t Tables) int {
	n := 1<<(4*t.BucketDigits) + len(c.Boards())*(1+c.LeaderboardMax) + len(c.Summaries())
	if c.EFP() {
		n += 1<<(4*t.TokenDigits) + UsualShards(t.Ranked) + UsualShards(t.Recommended) +
			len(site.RankedSorts())*ShardCount(t.Ranked, site.RankedOrderSize)
	}
	return n
}
