package render

import (
	"math/rand/v2"
	"testing"

	"github.com/followpress/followpress/site"
)

// TestFindAll: keys are numbered in the order in which they are added, and findAll finds what find
// does.
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

// BenchmarkNumbering finds addresses among more than a cache holds.
func BenchmarkNumbering(b *testing.B) {
	const n = 600_000
	var keys []site.Address
	numbers := NewNumbering(&keys)
	address := func(i uint32) (a site.Address) {
		for at := range a {
			a[at] = byte(i * 0x9E3779B1 >> (at % 4 * 8))
		}
		return a
	}
	for i := range uint32(n) {
		numbers.Add(address(i))
	}
	g := rand.New(rand.NewPCG(1, 2))
	some, found := make([]site.Address, AtOnce), make([]uint32, AtOnce)
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			numbers.Find(address(g.Uint32N(n)))
		}
	})
	b.Run("findAll", func(b *testing.B) {
		for b.Loop() {
			for i := range some {
				some[i] = address(g.Uint32N(n))
			}
			numbers.FindAll(some, found)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*AtOnce), "ns/key")
	})
}
