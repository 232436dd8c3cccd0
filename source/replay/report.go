package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Report counts what a Replay read, wrote and ignored.
type Report struct {
	Events  uint64            `json:"events"`
	ListOps uint64            `json:"list_ops"` // operations, also those that were ignored
	Lists   uint64            `json:"lists"`
	Records uint64            `json:"records"`
	Ops     uint64            `json:"ops"`     // rows of the table ops
	Ignored map[Reason]uint64 `json:"ignored"` // events by reason; records if it is LongRecord or SharedSlot; what ops lacks if it is UntimedOp, LongOp or SharedOp
}

// String formats the report for a person, in a few lines.
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
