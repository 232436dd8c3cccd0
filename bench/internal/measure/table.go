package measure

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// A Row is one measure of a table.
type Row struct {
	// Measure names it. It is the same in every run, so that runs can be compared: what a run has found
	// out belongs into Note.
	Measure string  `json:"measure"`
	Unit    string  `json:"unit,omitempty"` // "s", "/s", "MiB", "ms", "objects", … or none
	Ours    Figure  `json:"ours"`
	Other   *Figure `json:"other,omitempty"` // nil: there is nothing to compare with
	Ratio   *Figure `json:"ratio,omitempty"` // of the pairs: its median need not be that of the medians
	Target  string  `json:"target,omitempty"`
	Note    string  `json:"note,omitempty"`
}

// Judged is the figure that a row is about: the ratio, if it has one.
func (r *Row) Judged() Figure {
	if r.Ratio != nil {
		return *r.Ratio
	}
	return r.Ours
}

// MoreIsBetter says which way the figure of a row should go: as its target says, and without one as its
// unit does. Less is better of everything but rates.
func (r *Row) MoreIsBetter() bool {
	if r.Target != "" {
		return strings.HasPrefix(r.Target, "≥")
	}
	return strings.HasPrefix(r.Unit, "/")
}

// Missed says whether the row has a target and does not reach it.
func (r *Row) Missed() bool {
	t, err := r.target()
	if err != nil || r.Target == "" {
		return false
	}
	if t.ratio {
		return t.missed(*r.Ratio)
	}
	return t.missed(r.Ours)
}

func (r *Row) target() (target, error) {
	if r.Target == "" {
		return target{}, nil
	}
	t, err := parseTarget(r.Target, r.Unit, r.Ratio != nil)
	if err != nil {
		err = fmt.Errorf("%s: %w", r.Measure, err)
	}
	return t, err
}

// cells are what a table shows of a row. The figure that misses the target is bold.
func (r *Row) cells() []string {
	ours, other, ratio := r.Ours.Text(r.Unit), "", ""
	if r.Other != nil {
		ours, other, ratio = Text(r.Ours.Median, r.Unit), Text(r.Other.Median, r.Unit), r.Ratio.Text("")
	}
	if r.Missed() {
		missed := &ours
		if t, _ := r.target(); t.ratio {
			missed = &ratio
		}
		*missed = "**" + *missed + "**"
	}
	return []string{r.Measure, ours, other, ratio, r.Target, r.Note}
}

// A Table has a row for each measure.
type Table struct {
	Rows []Row
	err  error
}

// Compare adds a row for the rounds of two things. The target is one of the ratio ("≤ 0.8"), or of our
// figure if it has the unit ("≥ 50,000/s"). Notes are what the run found out besides.
func (t *Table) Compare(measure, unit string, rounds []Pair, target string, notes ...string) {
	ours, others, ratios := make([]float64, len(rounds)), make([]float64, len(rounds)), make([]float64, len(rounds))
	for i, p := range rounds {
		ours[i], others[i], ratios[i] = p.Ours, p.Other, p.Ratio()
	}
	other, ratio := FigureOf(others), FigureOf(ratios)
	t.add(Row{Measure: measure, Unit: unit, Ours: FigureOf(ours), Other: &other, Ratio: &ratio, Target: target, Note: strings.Join(notes, ", ")})
}

// Figure adds a row for the rounds of one thing. The target has the unit: "≤ 256 MiB".
func (t *Table) Figure(measure, unit string, rounds []float64, target string, notes ...string) {
	t.add(Row{Measure: measure, Unit: unit, Ours: FigureOf(rounds), Target: target, Note: strings.Join(notes, ", ")})
}

// add adds a row and shows it.
func (t *Table) add(r Row) {
	fmt.Fprintln(os.Stderr, strings.Join(slices.DeleteFunc(r.cells(), func(cell string) bool { return cell == "" }), " | "))
	if _, err := r.target(); err != nil {
		t.err = errors.Join(t.err, err)
	}
	if median := r.Judged().Median; math.IsNaN(median) || math.IsInf(median, 0) {
		t.err = errors.Join(t.err, fmt.Errorf("%s: %g is no figure", r.Measure, median))
	}
	if slices.ContainsFunc(t.Rows, func(other Row) bool { return other.Measure == r.Measure }) {
		t.err = errors.Join(t.err, fmt.Errorf("two rows are called %q", r.Measure))
	}
	t.Rows = append(t.Rows, r)
}

// Err says what is wrong with rows that were added: a run of an hour should not end at a slip in a target.
func (t *Table) Err() error { return t.err }

// String is the table in Markdown.
func (t *Table) String() string {
	var text strings.Builder
	text.WriteString("| measure | ours | other | ratio | target | note |\n|---|---|---|---|---|---|\n")
	for i := range t.Rows {
		text.WriteString("| " + strings.Join(t.Rows[i].cells(), " | ") + " |\n")
	}
	return text.String()
}
