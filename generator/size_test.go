package generator

import (
	"runtime"
	"testing"
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
	read := allocated(func() {
		for i := range uint32(n) {
			in.add(i/100, i, i%256, 0, false)
		}
	})
	grouped := allocated(func() { in.group(n/100+1, false) })
	for what, bytes := range map[string]uint64{"read": read, "grouped": grouped} {
		if most := uint64(n * 6); bytes > most { // a sixth for lists, whose records are few
			t.Errorf("%d records that are %s: got %d bytes, want at most %d", n, what, bytes, most)
		}
	}
}
