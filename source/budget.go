package source

import (
	"fmt"
	"strconv"
	"time"
)

// A Budget bounds what a run asks of an upstream: by the number of requests, by time, or by both.
// The zero Budget is no bound.
type Budget struct {
	Requests int           // 0 means any number
	Time     time.Duration // 0 means any time
}

// ParseBudget reads a number of requests, such as 2000, or a time, such as 30m.
func ParseBudget(text string) (Budget, error) {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return Budget{Requests: n}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return Budget{Time: d}, nil
	}
	return Budget{}, fmt.Errorf("%q is neither a number of requests, such as 2000, nor a time, such as 30m", text)
}

// UnmarshalText is ParseBudget, for flags.
func (b *Budget) UnmarshalText(text []byte) (err error) {
	*b, err = ParseBudget(string(text))
	return err
}
