package pipeline

import (
	"strconv"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
)

// Keys of the objects that show many accounts or lists, of which each contributes a part. Buckets are
// not known before everything is counted, so their parts come under a user or a token first.
const (
	keyUser        = "U" // and a user
	keyToken       = "L" // and a token ID
	keyUserBucket  = "u" // and the name of a bucket
	keyTokenBucket = "l"
	keyBoard       = "b" // and the number of a measure
	keyRanked      = "r" // and the number of a shard
	keyOrder       = "o" // and a sort, a slash and the number of a shard
	keyRecommended = "c"
	keyFollowers   = "f" // and an address in hexadecimal, a slash and the number of a shard
	keyHead        = "h" // and an address in hexadecimal
	keyTop         = "T"
	keySummaries   = "S"
	keyNetwork     = "N"
	keyDiscover    = "D"

	keyRankedFirst = "R"
)

// Kinds of parts of user buckets.
const (
	partUser     byte = iota // the token ID of a user (API spec)
	partName                 // a name with its account and sizes
	partAccount              // an address with its sizes
	partRow                  // the row of a holder of an account
	partHeader               // what a shard or the head says of all holders
	partDiscover             // an account that was followed, and when
)

func userPart(user string) string { return keyUser + user }

func numbered(key string, n int) string { return key + strconv.Itoa(n) }

func boardPart(m render.Measure) string { return numbered(keyBoard, int(m)) }

func rankedPart(shard int) string { return numbered(keyRanked, shard) }

func recommendedPart(shard int) string { return numbered(keyRecommended, shard) }

func orderPart(sort string, shard int) string { return numbered(keyOrder+sort+"/", shard) }

func followersPart(address string, shard int) string {
	return numbered(keyFollowers+address+"/", shard)
}

// shards is the number of shards of a table. An empty one has a shard too.
func shards(rows, size int) int { return max(1, (rows+size-1)/size) }

// rowObjects is the number of objects with the rows of a list or an account, beside its bucket.
func rowObjects(rows int) int {
	switch {
	case rows <= site.PackedRows:
		return 0
	case rows <= site.SearchShardSize:
		return 1
	}
	return shards(rows, site.SearchShardSize) + 1
}

// listObjects is the number of objects that a list has for itself.
func listObjects(c site.Config, held, follows int, primary bool) int {
	if c.EFP() {
		n := 10 + rowObjects(held)
		if primary {
			n++ // searchFollowing of its account
		}
		return n
	}
	n := 4
	if follows >= site.DefaultLimit {
		n += shards(follows, site.SearchShardSize)
	}
	if primary {
		n++
	}
	return n
}

// accountObjects is the number of objects that an account has for itself.
func accountObjects(c site.Config, holders int) int {
	if !c.EFP() {
		return 0
	}
	return len(site.UserObjects()) + rowObjects(holders)
}

// nameObjects is the number of objects of a name.
func nameObjects(c site.Config) int {
	switch {
	case !c.EFP():
		return 1
	case c.Names == site.NamesLookup:
		return 0
	}
	return len(site.UserObjects()) + 1
}
