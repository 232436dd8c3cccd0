package render

import "github.com/followpress/followpress/site"

// This file counts objects without rendering them. What each list, user and site has follows from the
// table of routes.

// ShardCount is the number of shards of a table with that many rows. An empty one has a shard too.
func ShardCount(rows, size int) int { return max(1, (rows+size-1)/size) }

// shardCount is ShardCount of usual shards.
func shardCount(rows int) int { return ShardCount(rows, site.SearchShardSize) }

// rowObjects is the number of objects that hold the rows of a list or an account, beside its bucket:
// shards, and a head if there are several.
func rowObjects(rows int) int {
	switch {
	case rows <= site.PackedRows:
		return 0
	case rows <= site.SearchShardSize:
		return 1
	}
	return shardCount(rows) + 1
}

// searchShards is the number of search shards of a list with that many follows. A list that fits
// on the first page needs none.
func searchShards(follows int) int {
	if follows < site.DefaultLimit {
		return 0
	}
	return shardCount(follows)
}

// ListObjects is the number of objects of a list that holds and follows so many accounts, with the search
// of its account if it is a primary one.
func ListObjects(c site.Config, held, follows int, primary bool) int {
	n := len(c.ListObjects())
	if primary {
		n++
	}
	if c.EFP() {
		return n + rowObjects(held)
	}
	return n + searchShards(follows)
}

// AccountObjects is the number of objects of an account that so many primary lists hold, but for those of
// its lists and its name.
func AccountObjects(c site.Config, holders int) int {
	if !c.EFP() {
		return 0
	}
	return len(site.UserObjects()) + rowObjects(holders)
}

// NameObjects is the number of objects of a name.
func NameObjects(c site.Config) int {
	switch {
	case !c.EFP():
		return 1 // its search
	case c.Names == site.NamesLookup:
		return 0
	}
	return len(site.UserObjects()) + 1
}

// Tables are the sizes of what exists once.
type Tables struct {
	BucketDigits, TokenDigits int // of buckets of users and of lists
	Ranked, Recommended       int // accounts
}

// SharedObjects is the number of objects that are neither those of one list, account or name, nor rendered
// by Renderer.Fixed.
func SharedObjects(c site.Config, t Tables) int {
	n := 1<<(4*t.BucketDigits) + len(c.Boards())*(1+c.LeaderboardMax) + len(c.Summaries())
	if c.EFP() {
		n += 1<<(4*t.TokenDigits) + shardCount(t.Ranked) + shardCount(t.Recommended) +
			len(site.RankedSorts())*ShardCount(t.Ranked, site.RankedOrderSize)
	}
	return n
}
