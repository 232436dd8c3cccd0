package render

import "slices"

// Rows of what a list holds show how many follow an account so that they can be sorted by it, and people look at them.
// An exact number would change an object for each list that holds a popular account, whenever anybody follows it. So
// large numbers are rounded, as far as their order within the table stays what it is.

// roundedFrom is the least number of followers that is rounded.
const roundedFrom = 100

// roundDown returns a number from roundedFrom on with its first two digits, and zeros for the others.
func roundDown(n uint32) uint32 {
	unit := uint32(1)
	for n/unit >= roundedFrom {
		unit *= 10
	}
	return n / unit * unit
}

// A rounding rounds the numbers of followers of the rows of one table. The zero value rounds none.
type rounding struct{ large []uint32 } // numbers that are rounded, ascending, each once

// newRounding returns the rounding of the rows of a table. It uses the memory of numbers.
func newRounding(numbers []uint32, rows int, followers func(row int) uint32) rounding {
	numbers = numbers[:0]
	for row := range rows {
		if n := followers(row); n >= roundedFrom {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return rounding{slices.Compact(numbers)}
}

// of rounds a number of the table. Of different numbers that are rounded down to the same one, the second is one larger,
// the third two, and so on: there is room for them, so the order is that of the exact numbers.
func (r *rounding) of(n uint32) uint32 {
	if n < roundedFrom || len(r.large) == 0 {
		return n
	}
	least := roundDown(n)
	first, _ := slices.BinarySearch(r.large, least)
	place, _ := slices.BinarySearch(r.large, n)
	return least + uint32(place-first)
}
