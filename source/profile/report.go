package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/followpress/followpress/source/internal/collect"
)

const (
	maxExamples  = 10  // failures that a report shows
	maxErrorText = 160 // bytes of the text of a failure
)

// A Report says what a refresh has done.
type Report struct {
	Wanted    int            `json:"wanted"`      // accounts
	Asked     int            `json:"asked"`       // accounts that the worker answered about
	Found     int            `json:"found"`       // of those, with a profile
	Absent    int            `json:"absent"`      // of those, without one
	Dropped   int            `json:"dropped"`     // profiles that were known, and are gone
	NoTexts   int            `json:"no_texts"`    // entries of the profiles found that were left out, since they are neither texts nor null
	Altered   int            `json:"altered"`     // profiles found that had such entries
	Doubted   int            `json:"doubted"`     // profiles that were not dropped because the worker knew hardly any
	Forgotten int            `json:"forgotten"`   // accounts that nobody has wanted for 90 days
	Failed    map[string]int `json:"failed"`      // accounts without a usable answer, by reason
	Examples  []string       `json:"examples"`    // of them, the first 10
	Left      int            `json:"left"`        // accounts that were not asked about, because of the budget or of Stopped
	NeverYet  int            `json:"never_asked"` // of all wanted ones, those of which nothing is known yet
	Known     int            `json:"known"`       // profiles that are kept
	Bulk      int            `json:"bulk"`        // accounts in a request at most; 1 without bulk requests
	collect.Cost
}

// String is the report for people, with a line end.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "profiles  %10d known; %d asked about, %d found, %d absent, %d dropped", r.Known, r.Asked, r.Found, r.Absent, r.Dropped)
	if r.Forgotten > 0 {
		fmt.Fprintf(&b, ", %d forgotten", r.Forgotten)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Failed)) {
		fmt.Fprintf(&b, ", %d failed (%s)", r.Failed[reason], reason)
	}
	b.WriteByte('\n')
	collect.WriteCost(&b, r.Cost, r.Bulk)
	for _, example := range r.Examples {
		fmt.Fprintf(&b, "failed    %s\n", example)
	}
	if r.NoTexts > 0 {
		fmt.Fprintf(&b, "left out  %10d profiles, %d entries that are no texts\n", r.Altered, r.NoTexts)
	}
	if r.Doubted > 0 {
		fmt.Fprintf(&b, "kept      %d profiles that are said to be gone: the worker knew hardly any in this run\n", r.Doubted)
	}
	if r.Stopped != "" {
		fmt.Fprintf(&b, "stopped   %s\n", r.Stopped)
	}
	if r.Left > 0 {
		fmt.Fprintf(&b, "left      %d accounts for the next run, %d of them for the first time\n", r.Left, r.NeverYet)
	}
	return b.String()
}
