package load

import (
	"runtime"
	"testing"

	"github.com/followpress/followpress/generator/internal/graph"
)

// TestBytesPerRecord: a record takes 5 bytes, and 5 more while records are grouped by list.
func TestBytesPerRecord(t *testing.T) {
	const n = 40 * incomingBlockSize
	allocated := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	var in incomingRecords
	rows := make([]snapshotRow, 1<<10)
	p := packedRecords{incomingBlock: incomingBlock{RecordList: graph.NewRecords(len(rows))}}
	read := allocated(func() {
		for i := 0; i < n; i += len(rows) {
			for j := range rows {
				rows[j].Value = incomingRecord{list: uint32(i+j) / 100, data: uint32(i + j), form: uint32(i+j) % 256}
			}
			p.pack(rows, false)
			in.add(&p, false)
		}
	})
	grouped := allocated(func() { in.group(n/100+1, false, 2) })
	for what, bytes := range map[string]uint64{"read": read, "grouped": grouped} {
		if most := uint64(n * 6); bytes > most { // a sixth for lists, which have few records here
			t.Errorf("%d records that are %s: got %d bytes, want at most %d", n, what, bytes, most)
		}
	}
}
