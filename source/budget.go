package source

import (
	"fmt"
	"strconv"
	"time"
)

// A Budget limits the requests of a run to an upstream by number, by time, or by both. The zero
// Budget has no limit.
type Budget struct {
	Requests int           // 0 means no limit
	Time     time.Duration // 0 means no limit
}

// ParseBudget parses a number of requests, such as 2000, or a time, such as 30m.
func ParseBudget(text string) (Budget, error) {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return Budget{Requests: n}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return Budget{Time: d}, nil
	}
	return Budget{}, fmt.Errorf("%q is neither a number of requests, such as 2000, nor a time, such as 30m", text)
}

// UnmarshalText implements encoding.TextUnmarshaler with ParseBudget, for flags.
func (b *Budget) UnmarshalText(text []byte) (err error) {
	*b, err = ParseBudget(string(text))
	return err
}
