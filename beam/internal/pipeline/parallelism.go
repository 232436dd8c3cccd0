package pipeline

import "github.com/followpress/followpress/snapshot"

// A worker on Flink gets a part of a stage as one bundle, and what it emits waits until it has got all of it.
// The job server takes 100 messages of 4 MB before that; more would make both wait forever. Parts are a third of that on
// average, since chance makes some larger.
const partBytes = 128 << 20

// mostParts is what Flink takes.
const mostParts = 1 << 15

// siteBytes is how much larger the site of a table is than its rows, in synthetic graphs of 8 and 50 records a list.
// A row of a list is short, and makes at least six objects.
var siteBytes = map[snapshot.Table]int64{
	snapshot.TableRecords: 4, snapshot.TableLists: 40, snapshot.TableAccounts: 4, snapshot.TableBadges: 4,
	snapshot.TableOps: 1, // those within the window are in two objects
}

// moreEFP is how many times more the API efp has.
const moreEFP = 5

// Parallelism is into how many parts the stages of a pipeline must be cut, at least. rows says how large the rows of a
// table are, in bytes.
func Parallelism(rows func(snapshot.Table) int64, efp bool) int {
	var n int64
	for table, times := range siteBytes {
		n += times * rows(table)
	}
	if efp {
		n *= moreEFP
	}
	return int(min(1+n/partBytes, mostParts))
}
