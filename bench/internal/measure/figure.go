package measure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Figure is what the rounds of a measurement gave.
type Figure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Rounds int     `json:"rounds"`
}

// FigureOf is the figure of some rounds, of one at least.
func FigureOf(rounds []float64) Figure {
	sorted := slices.Sorted(slices.Values(rounds))
	n := len(sorted)
	return Figure{
		Median: rounded((sorted[(n-1)/2] + sorted[n/2]) / 2),
		Min:    rounded(sorted[0]),
		Max:    rounded(sorted[n-1]),
		Rounds: n,
	}
}

// rounded drops the digits that no clock is exact enough for. Counts stay as they are.
func rounded(v float64) float64 {
	if v == math.Trunc(v) {
		return v
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64) // it has been formatted
	return short
}

// Text is the figure as a table shows it: the median, and the spread of several rounds.
func (f Figure) Text(unit string) string {
	text := Text(f.Median, unit)
	if f.Rounds == 1 || f.Min == f.Max {
		return text
	}
	return fmt.Sprintf("%s (%s to %s)", text, number(f.Min), number(f.Max))
}

// Text is a value with its unit. Rates have units like "/s".
func Text(v float64, unit string) string {
	if unit == "" || strings.HasPrefix(unit, "/") {
		return number(v) + unit
	}
	return number(v) + " " + unit
}

// number has three digits that count, or all those before the point, with commas.
func number(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100:
		return commas(strconv.FormatFloat(v, 'f', 0, 64))
	case v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// commas separates the thousands of an integer.
func commas(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
