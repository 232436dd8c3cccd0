package generator

import (
	"testing"
	"unsafe"
)

// TestBytesPerRecord limits the graph to 40 bytes per record, not counting profiles, at
// its peak: while records are grouped by list. The rows that are grouped may have a
// quarter of their memory to spare, as append leaves it.
func TestBytesPerRecord(t *testing.T) {
	rows := unsafe.Sizeof(incomingRecord{}) * 5 / 4
	grouped := unsafe.Sizeof(record{})
	if most := rows + grouped; most > 40 {
		t.Errorf("memory per record: got %d bytes, want at most 40", most)
	}
}
