package inorder_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/followpress/followpress/internal/inorder"
)

// TestSort: with any number of workers and elements, in any order.
func TestSort(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		n, workers := r.IntN(1<<uint(r.IntN(18))), r.IntN(20)
		want := make([]int, n)
		for i := range want {
			want[i] = i
		}
		got := r.Perm(n)
		switch r.IntN(4) {
		case 0:
			slices.Sort(got)
		case 1:
			slices.Sort(got[:n/3])
		}
		if inorder.Sort(workers, got, cmp.Compare[int]); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d elements with %d workers are not sorted", seed, n, workers)
		}
	}
}
