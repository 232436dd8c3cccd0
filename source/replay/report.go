package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Report counts events read, rows written and events ignored by a Replay.
type Report struct {
	Events  uint64            `json:"events"`
	ListOps uint64            `json:"list_ops"` // operations, including ignored ones
	Lists   uint64            `json:"lists"`
	Records uint64            `json:"records"`
	Ops     uint64            `json:"ops"`     // rows of the table ops
	Ignored map[Reason]uint64 `json:"ignored"` // events by reason; for LongRecord and SharedSlot records; for UntimedOp, LongOp and SharedOp rows missing from ops
}

// String returns the report as text for people, in a few lines.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "events    %10d, of which %d are operations\n", r.Events, r.ListOps)
	fmt.Fprintf(&b, "lists     %10d\n", r.Lists)
	fmt.Fprintf(&b, "records   %10d\n", r.Records)
	fmt.Fprintf(&b, "ops       %10d rows\n", r.Ops)
	for _, reason := range slices.SortedFunc(maps.Keys(r.Ignored), func(a, b Reason) int {
		return cmp.Or(cmp.Compare(r.Ignored[b], r.Ignored[a]), strings.Compare(string(a), string(b)))
	}) {
		fmt.Fprintf(&b, "ignored   %10d (%s)\n", r.Ignored[reason], reason)
	}
	return b.String()
}
