package measure

import (
	"fmt"
	"os"
)

// A Pair is a figure of followpress and one to compare it with, from the same round.
type Pair struct{ Ours, Other float64 }

// Ratio returns the figure of followpress divided by the other.
func (p Pair) Ratio() float64 { return p.Ours / p.Other }

// Rounds repeats a measurement n times, since machines are noisy. Both figures of a pair are
// measured in succession, so that temporary noise affects both.
func Rounds(n int, measure func(round int) (Pair, error)) ([]Pair, error) {
	pairs := make([]Pair, n)
	for i := range pairs {
		var err error
		if pairs[i], err = measure(i); err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "  %.2f / %.2f = %.2f\n", pairs[i].Ours, pairs[i].Other, pairs[i].Ratio())
	}
	return pairs, nil
}

// Repeat is like Rounds, for a figure without a counterpart.
func Repeat(n int, measure func(round int) (float64, error)) ([]float64, error) {
	values := make([]float64, n)
	for i := range values {
		var err error
		if values[i], err = measure(i); err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "  %.2f\n", values[i])
	}
	return values, nil
}
