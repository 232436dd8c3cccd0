package pipeline

import "github.com/followpress/followpress/snapshot"

// A worker on Flink gets a part of a stage as one bundle, and emits nothing until it has received
// all of it. The job server accepts 100 messages of 4 MB before; more would make both wait forever.
// Parts are a third of that on average, because some are larger by chance.
const partBytes = 128 << 20

// mostParts is Flink's maximum.
const mostParts = 1 << 15

// siteBytes is the ratio of a table's part of the site to its rows, in synthetic graphs of 8 and 50
// records a list. A row of a list is short, and makes at least six objects.
var siteBytes = map[snapshot.Table]int64{
	snapshot.TableRecords: 4, snapshot.TableLists: 40, snapshot.TableAccounts: 4, snapshot.TableBadges: 4,
	snapshot.TableOps: 1, // operations within the window are in two objects
}

// moreEFP is the factor for the API efp.
const moreEFP = 5

// Parallelism returns the minimum number of parts for the stages of a pipeline. rows returns the
// size of the rows of a table, in bytes.
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
