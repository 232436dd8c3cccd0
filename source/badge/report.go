package badge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/followpress/followpress/source/internal/collect"
)

// A Report is the result of a refresh.
type Report struct {
	Events  []EventReport `json:"events"`  // in the order of Options.Events
	Doubted int           `json:"doubted"` // badges kept because too many were missing at once
	collect.Cost
}

// An EventReport is the result of a refresh for one event.
type EventReport struct {
	ID      string         `json:"id"`
	Known   bool           `json:"known"`   // its description is kept; otherwise the event is in no snapshot
	Bulk    bool           `json:"bulk"`    // the API lists owners by event
	Asked   int            `json:"asked"`   // accounts answered one by one
	Left    int            `json:"left"`    // accounts not asked about, because of the budget or of Stopped
	Failed  map[string]int `json:"failed"`  // requests without a usable answer, by reason
	Example string         `json:"example"` // the first failure; "" for none
	Badges  int            `json:"badges"`  // badges kept
}

// String returns the report as text for people, with a line end.
func (r *Report) String() string {
	var b strings.Builder
	for _, e := range r.Events {
		fmt.Fprintf(&b, "badges    %10d of event %s", e.Badges, e.ID)
		if e.Asked > 0 || e.Left > 0 {
			fmt.Fprintf(&b, ", %d accounts asked about, %d left for the next run", e.Asked, e.Left)
		}
		for _, reason := range slices.Sorted(maps.Keys(e.Failed)) {
			fmt.Fprintf(&b, ", %d failed (%s)", e.Failed[reason], reason)
		}
		if !e.Known {
			b.WriteString(", without a description: left out")
		}
		b.WriteByte('\n')
		if e.Example != "" {
			fmt.Fprintf(&b, "failed    %s\n", e.Example)
		}
	}
	collect.WriteCost(&b, r.Cost, 0)
	if r.Doubted > 0 {
		fmt.Fprintf(&b, "kept      %d badges missing from lists, too many at once; they are dropped if still missing a day later\n", r.Doubted)
	}
	if r.Stopped != "" {
		fmt.Fprintf(&b, "stopped   %s\n", r.Stopped)
	}
	return b.String()
}
