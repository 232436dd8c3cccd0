package live

import "github.com/followpress/followpress/site"

// Memory of a graph in bytes, as docs/scale.md states it for generate: per account, half of which
// is its profile, per record, and the extra bytes per record under the API efp.
const (
	accountBytes   = 615
	recordBytes    = 10
	relationsBytes = 9
	operationBytes = 32 // a row of the table ops within the window
)

// besideGraphs is for caches, answers in flight, read-ahead of a snapshot, and the program.
const besideGraphs = 96 << 20

// NeedsBytes estimates the memory of a Live without its source, for graphs of this size and a number of operations within
// the window: two graphs, and half as much for garbage not yet collected. Measured
// 2026-11-23, resident at most, with empty caches: 185 MiB for Epinions and 240 MiB for 54,643 lists with 998,000 records,
// both under the API efp.
func NeedsBytes(c site.Counts, operations int, config site.Config) int64 {
	record := int64(recordBytes)
	if config.EFP() {
		record += relationsBytes
	}
	graph := accountBytes*int64(c.Accounts) + record*int64(c.Records) + operationBytes*int64(operations)
	return 3*graph + besideGraphs
}
