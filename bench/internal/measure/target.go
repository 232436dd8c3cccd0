package measure

import (
	"fmt"
	"strconv"
	"strings"
)

// A target is the limit of a figure.
type target struct {
	atLeast bool
	limit   float64
	ratio   bool // the limit is one of the ratio, not of the figure itself
}

// parseTarget reads a target: a sign and a limit, which has the unit of the row if it is one of our figure:
// "≤ 0.8", "≥ 300/s", "≤ 1,900,000 objects".
func parseTarget(text, unit string, ratio bool) (target, error) {
	limit, atMost := strings.CutPrefix(text, "≤ ")
	limit, atLeast := strings.CutPrefix(limit, "≥ ")
	end := strings.LastIndexAny(limit, "0123456789") + 1
	v, err := strconv.ParseFloat(strings.ReplaceAll(limit[:end], ",", ""), 64)
	named := strings.TrimSpace(limit[end:])
	if atMost == atLeast || err != nil || named != unit && (named != "" || !ratio) {
		return target{}, fmt.Errorf(`target %q: want "≤ LIMIT" or "≥ LIMIT", of a ratio or in %q`, text, unit)
	}
	return target{atLeast, v, ratio && named == ""}, nil
}

// missed says whether a figure does not reach the target.
func (t target) missed(figure Figure) bool {
	if t.atLeast {
		return figure.Median < t.limit
	}
	return figure.Median > t.limit
}
