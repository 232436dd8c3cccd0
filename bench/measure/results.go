package measure

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Results prints the results of a benchmark: a row of a Markdown table on stdout per measurement,
// and its rounds in the Go benchmark format, for benchstat.
type Results struct {
	lines strings.Builder
	err   error
}

// Compare adds the rounds of two subjects. The target is a ratio ("≤ 0.8") or has the unit of the
// first subject's figure ("≥ 50,000/s"); it is printed, not checked. Notes are further findings of
// the run.
func (r *Results) Compare(measure, unit string, rounds []Pair, target string, notes ...string) {
	ours, others, ratios := make([]float64, len(rounds)), make([]float64, len(rounds)), make([]float64, len(rounds))
	for i, p := range rounds {
		ours[i], others[i], ratios[i] = p.Ours, p.Other, p.Ratio()
		r.line(measure, fmt.Sprintf("%g %s %g other-%[2]s %[4]g ratio", p.Ours, column(unit), p.Other, p.Ratio()), p.Ratio())
	}
	show(measure, Text(unit, ours...), Text(unit, others...), Text("", ratios...), target, notes)
}

// Figure adds the rounds of one subject. The target has the unit: "≤ 256 MiB".
func (r *Results) Figure(measure, unit string, rounds []float64, target string, notes ...string) {
	for _, v := range rounds {
		r.line(measure, fmt.Sprintf("%g %s", v, column(unit)), v)
	}
	show(measure, Text(unit, rounds...), "", "", target, notes)
}

func (r *Results) line(measure, values string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		r.err = errors.Join(r.err, fmt.Errorf("%s: %g is no figure", measure, v))
	}
	fmt.Fprintf(&r.lines, "Benchmark/%s 1 %s\n", strings.ReplaceAll(measure, " ", "_"), values)
}

// column returns a unit in the form of the Go benchmark format: without spaces, and never empty.
func column(unit string) string {
	switch {
	case unit == "":
		return "count"
	case strings.HasPrefix(unit, "/"):
		return "per-" + unit[1:]
	}
	return unit
}

func show(measure, ours, others, ratios, target string, notes []string) {
	fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", measure, ours, others, ratios, target, strings.Join(notes, ", "))
}

// Write writes the rounds into a file. A measurement that gave no number is an error.
func (r *Results) Write(path string) error {
	return errors.Join(r.err, os.WriteFile(path, []byte(r.lines.String()), 0o644))
}

// Text returns the median of the rounds, at least one, and their spread: "2.5 s (1 to 4)". Rates
// have units like "/s".
func Text(unit string, rounds ...float64) string {
	sorted := slices.Sorted(slices.Values(rounds))
	n := len(sorted)
	if unit != "" && !strings.HasPrefix(unit, "/") {
		unit = " " + unit
	}
	text := number((sorted[(n-1)/2]+sorted[n/2])/2) + unit
	if least, most := sorted[0], sorted[n-1]; least != most {
		text += fmt.Sprintf(" (%s to %s)", number(least), number(most))
	}
	return text
}

// number formats a number with three significant digits, or all digits before the point.
func number(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
