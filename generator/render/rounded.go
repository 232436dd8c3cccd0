package render

import "slices"

// Rows of a list's accounts show follower counts, for sorting and for people. An exact count would
// change an object for each list that holds a popular account whenever it gets a follower. So large
// counts are rounded, without changing their order within the table.

// roundedFrom is the smallest follower count that is rounded.
const roundedFrom = 100

// roundDown returns a number from roundedFrom on with all digits except the first two replaced by
// zeros.
func roundDown(n uint32) uint32 {
	unit := uint32(1)
	for n/unit >= roundedFrom {
		unit *= 10
	}
	return n / unit * unit
}

// A rounding rounds the follower counts of one table. The zero value does not round.
type rounding struct{ large []uint32 } // rounded counts, ascending, unique

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

// round rounds a count of the table. Among different counts that round down to the same number, the
// second is one larger, the third two, and so on: there is room for them, so the order stays exact.
func (r *rounding) round(n uint32) uint32 {
	if n < roundedFrom || len(r.large) == 0 {
		return n
	}
	least := roundDown(n)
	first, _ := slices.BinarySearch(r.large, least)
	place, _ := slices.BinarySearch(r.large, n)
	return least + uint32(place-first)
}
