package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/followpress/followpress/source/internal/collect"
)

const (
	maxExamples  = 10  // failures shown in a report
	maxErrorText = 160 // bytes of the text of a failure
)

// A Report is the result of a refresh.
type Report struct {
	Wanted    int            `json:"wanted"`      // accounts wanted
	Asked     int            `json:"asked"`       // accounts answered about
	Found     int            `json:"found"`       // accounts with a profile
	Absent    int            `json:"absent"`      // accounts without a profile
	Dropped   int            `json:"dropped"`     // kept profiles that are gone
	NoTexts   int            `json:"no_texts"`    // omitted entries of the profiles found, which are neither strings nor null
	Altered   int            `json:"altered"`     // profiles found with omitted entries
	Doubted   int            `json:"doubted"`     // profiles kept because the worker lacked most profiles
	Forgotten int            `json:"forgotten"`   // accounts not wanted for 90 days
	Failed    map[string]int `json:"failed"`      // accounts without a usable answer, by reason
	Examples  []string       `json:"examples"`    // the first 10 failures
	Left      int            `json:"left"`        // accounts not asked about, because of the budget or of Stopped
	NeverYet  int            `json:"never_asked"` // wanted accounts that nothing is known about yet
	Known     int            `json:"known"`       // profiles kept
	Bulk      int            `json:"bulk"`        // maximum accounts per request; 1 without bulk requests
	collect.Cost
}

// String returns the report as text for people, with a line end.
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
		fmt.Fprintf(&b, "left out  %10d profiles, %d entries that are not strings\n", r.Altered, r.NoTexts)
	}
	if r.Doubted > 0 {
		fmt.Fprintf(&b, "kept      %d profiles that the worker lacks, because it lacked most profiles in this run\n", r.Doubted)
	}
	if r.Stopped != "" {
		fmt.Fprintf(&b, "stopped   %s\n", r.Stopped)
	}
	if r.Left > 0 {
		fmt.Fprintf(&b, "left      %d accounts for the next run, %d of them for the first time\n", r.Left, r.NeverYet)
	}
	return b.String()
}
