package pipeline

import (
	"strconv"

	"github.com/followpress/followpress/site/rules"
)

// Keys of the objects that show many accounts or lists, each of which contributes a part. Buckets
// are not known before everything is counted, so their parts come under a user or a token first.
const (
	keyUser        = "U" // followed by a user
	keyToken       = "L" // followed by a token ID
	keyUserBucket  = "u" // followed by the name of a bucket
	keyTokenBucket = "l"
	keyBoard       = "b" // followed by the number of a measure
	keyRanked      = "r" // followed by the number of a shard
	keyOrder       = "o" // followed by a sort, a slash and the number of a shard
	keyRecommended = "c"
	keyFollowers   = "f" // followed by an address in hexadecimal, a slash and the number of a shard
	keyHead        = "h" // followed by an address in hexadecimal
	keyTop         = "T"
	keySummaries   = "S"
	keyNetwork     = "N"
	keyDiscover    = "D"
	keyRecent      = "O"
	keyActive      = "A"

	keyRankedFirst = "R"
)

// Kinds of parts of user buckets.
const (
	partUser     byte = iota // the token ID of a user (API spec)
	partName                 // a name with its account and sizes
	partAccount              // an address with its sizes
	partRow                  // the row of a holder of an account
	partHeader               // header of a shard or the head
	partDiscover             // a followed account and the time
)

func userPart(user string) string { return keyUser + user }

func numbered(key string, n int) string { return key + strconv.Itoa(n) }

func boardPart(m rules.Measure) string { return numbered(keyBoard, int(m)) }

func rankedPart(shard int) string { return numbered(keyRanked, shard) }

func recommendedPart(shard int) string { return numbered(keyRecommended, shard) }

func orderPart(sort string, shard int) string { return numbered(keyOrder+sort+"/", shard) }

func followersPart(address string, shard int) string {
	return numbered(keyFollowers+address+"/", shard)
}
