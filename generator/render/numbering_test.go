package render

import (
	"math/rand/v2"
	"testing"

	"github.com/followpress/followpress/site"
)

// TestFindAll: keys are numbered in order, and FindAll agrees with Find.
func TestFindAll(t *testing.T) {
	var keys []site.Address
	numbers, want := NewNumbering(&keys), map[site.Address]uint32{}
	g := rand.New(rand.NewPCG(1, 2))
	address := func() site.Address { n := g.Uint32N(20_000); return site.Address{byte(n), byte(n >> 8), 19: byte(n)} }
	for range 20_000 {
		key := address()
		number, known := want[key]
		if !known {
			number = uint32(len(want))
			want[key] = number
		}
		if got, added := numbers.Add(key); got != number || added == known {
			t.Fatalf("add %v: got %d, %t, want %d, %t", key, got, added, number, !known)
		}
	}
	some := make([]site.Address, 3*AtOnce+1)
	for i := range some {
		some[i] = address()
	}
	got := make([]uint32, len(some))
	numbers.FindAll(some, got)
	for i, key := range some {
		number, known := want[key]
		if found, ok := numbers.Find(key); ok != known || ok && found != number {
			t.Errorf("find %v: got %d, %t, want %d, %t", key, found, ok, number, known)
		}
		if !known {
			number = None
		}
		if got[i] != number {
			t.Errorf("findAll %v: got %d, want %d", key, got[i], number)
		}
	}
}
