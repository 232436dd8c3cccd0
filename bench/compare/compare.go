package main

import (
	"fmt"
	"io"
	"math"

	"github.com/followpress/followpress/bench/internal/measure"
)

// The least difference that counts, as a share of the old figure. Three rounds that do not overlap with
// three others still happen by chance, once in twenty times; and fewer rounds do not know their noise.
const (
	leastDifference = 0.10
	leastOfFew      = 0.25
	few             = 3
)

// A report says how the figures of two results differ.
type report struct {
	old, new           measure.Result
	hint               string // why not everything can be compared
	changes            []change
	same, incomparable int // rows
}

// A change is a row that differs by more than its noise, or that one result does not have.
type change struct {
	kind kind
	text string
}

type kind string

const (
	worse  kind = "worse"
	better kind = "better"
	gone   kind = "gone"
	added  kind = "new"
)

// compare compares what can be compared: everything on one machine, and only ratios on two.
func compare(old, new measure.Result) report {
	r := report{old: old, new: new}
	ratiosOnly := old.Machine != new.Machine
	switch {
	case old.Snapshot != new.Snapshot:
		r.hint = fmt.Sprintf("measured with another snapshot (%s, before %s): nothing is compared", new.Snapshot, old.Snapshot)
		r.incomparable = len(new.Rows)
		return r
	case ratiosOnly:
		r.hint = fmt.Sprintf("measured on another machine (%s, before %s): only ratios are compared", machine(new), machine(old))
	}
	before := map[string]measure.Row{}
	for _, row := range old.Rows {
		before[row.Measure] = row
	}
	for _, row := range new.Rows {
		was, ok := before[row.Measure]
		delete(before, row.Measure)
		switch {
		case !ok:
			r.changes = append(r.changes, change{added, row.Measure})
		case was.Unit != row.Unit || (was.Ratio == nil) != (row.Ratio == nil):
			r.changes = append(r.changes, change{gone, row.Measure + ": it measures something else now"})
		case ratiosOnly && row.Ratio == nil:
			r.incomparable++
		default:
			r.row(was, row)
		}
	}
	for _, row := range old.Rows {
		if _, left := before[row.Measure]; left {
			r.changes = append(r.changes, change{gone, row.Measure})
		}
	}
	return r
}

// row compares two figures of one row. They differ if their spreads do not overlap and their medians
// differ by enough.
func (r *report) row(old, new measure.Row) {
	was, is, unit := old.Judged(), new.Judged(), new.Unit
	if new.Ratio != nil {
		unit = ""
	}
	least := leastDifference
	if min(was.Rounds, is.Rounds) < few {
		least = leastOfFew
	}
	more := difference(was.Median, is.Median)
	if is.Min <= was.Max && was.Min <= is.Max || math.Abs(more) < least {
		r.same++
		return
	}
	text := fmt.Sprintf("%s: %s, before %s", new.Measure, is.Text(unit), was.Text(unit))
	if !math.IsInf(more, 0) {
		text += fmt.Sprintf(": %+.0f %%", 100*more)
	}
	if (more > 0) == new.MoreIsBetter() {
		r.changes = append(r.changes, change{better, text})
	} else {
		r.changes = append(r.changes, change{worse, text})
	}
}

// difference is how much more b is than a, as a share of a. Everything is infinitely more than nothing.
func difference(a, b float64) float64 {
	switch a {
	case b:
		return 0
	case 0:
		return math.Inf(1)
	}
	return (b - a) / a
}

// worse says whether something is worse, or is not measured any more and so might be.
func (r *report) worse() bool {
	for _, c := range r.changes {
		if c.kind == worse || c.kind == gone {
			return true
		}
	}
	return false
}

// write writes the report, what is worse first.
func (r *report) write(out io.Writer) {
	fmt.Fprintf(out, "%s: %s, before %s\n", r.new.Bench, when(r.new), when(r.old))
	if r.hint != "" {
		fmt.Fprintln(out, "  "+r.hint)
	}
	for _, kind := range []kind{worse, gone, better, added} {
		for _, c := range r.changes {
			if c.kind == kind {
				fmt.Fprintf(out, "  %-6s  %s\n", kind, c.text)
			}
		}
	}
	fmt.Fprintf(out, "  %d rows the same within their noise", r.same)
	if r.incomparable > 0 {
		fmt.Fprintf(out, ", %d not comparable", r.incomparable)
	}
	fmt.Fprintln(out)
}

// when says when a result was measured. Go benchmarks do not tell.
func when(r measure.Result) string {
	if r.Date == "" {
		return "undated"
	}
	return fmt.Sprintf("%s (%s)", r.Date, r.Commit)
}

// machine tells a machine in a few words.
func machine(r measure.Result) string {
	m := r.Machine
	return fmt.Sprintf("%s, %d cores, %d GiB, %s", m.CPU, m.Cores, m.Memory, m.System)
}
