package inorder

import (
	"slices"
	"sync"
)

// leastSorted is how many elements are worth another goroutine.
const leastSorted = 1 << 12

// Sort sorts as slices.SortFunc does, on as many goroutines as there are workers, and with as much memory again. No two
// elements may be equal: the result would depend on the workers.
func Sort[E any](workers int, s []E, compare func(a, b E) int) {
	if workers < 2 || len(s) < 2*leastSorted {
		slices.SortFunc(s, compare)
		return
	}
	sortInto(workers, s, make([]E, len(s)), false, compare)
}

// sortInto sorts s, in place or, if moved is true, into spare. It overwrites both.
func sortInto[E any](workers int, s, spare []E, moved bool, compare func(a, b E) int) {
	if workers < 2 || len(s) < 2*leastSorted {
		slices.SortFunc(s, compare)
		if moved {
			copy(spare, s)
		}
		return
	}
	half := len(s) / 2
	both(
		func() { sortInto(workers/2, s[:half], spare[:half], !moved, compare) },
		func() { sortInto(workers-workers/2, s[half:], spare[half:], !moved, compare) },
	)
	if moved {
		merge(workers, s[:half], s[half:], spare, compare)
	} else {
		merge(workers, spare[:half], spare[half:], s, compare)
	}
}

// merge merges two sorted slices into one.
func merge[E any](workers int, a, b, into []E, compare func(a, b E) int) {
	if len(a) < len(b) {
		a, b = b, a
	}
	if workers >= 2 && len(a) >= leastSorted {
		i := len(a) / 2
		j, _ := slices.BinarySearchFunc(b, a[i], compare)
		both(
			func() { merge(workers/2, a[:i], b[:j], into[:i+j], compare) },
			func() { merge(workers-workers/2, a[i:], b[j:], into[i+j:], compare) },
		)
		return
	}
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) < 0 {
			into[0], a = a[0], a[1:]
		} else {
			into[0], b = b[0], b[1:]
		}
		into = into[1:]
	}
	copy(into[copy(into, a):], b)
}

// both calls two functions side by side.
func both(f, g func()) {
	var other sync.WaitGroup
	other.Go(f)
	g()
	other.Wait()
}
