package render

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/followpress/followpress/site"
)

// TestHeadPlaces: a head has the first rows of each order, among all rows and among follows,
// whatever the follower counts.
func TestHeadPlaces(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, numbers := range []uint32{1, 3, 1000, 1 << 31} {
		for _, follows := range []float64{0, 0.01, 0.5, 1} {
			t.Run(fmt.Sprintf("%d numbers, %.2f follow", numbers, follows), func(t *testing.T) {
				type row struct {
					address   site.Address
					followers uint32
					follow    bool
				}
				rows := make([]row, site.SearchShardSize+random.IntN(20*site.HeadRows))
				for i := range rows {
					binary.BigEndian.PutUint64(rows[i].address[:], random.Uint64())
					rows[i].followers, rows[i].follow = random.Uint32N(numbers), random.Float64() < follows
				}
				got := headPlaces(&Scratch{}, RowTable{
					Rows:      len(rows),
					IsFollow:  func(i int) bool { return rows[i].follow },
					Followers: func(i int) uint32 { return rows[i].followers },
					Address:   func(i int) site.Address { return rows[i].address },
				})

				want := map[uint32]bool{}
				for _, order := range []func(a, b uint32) int{
					cmp.Compare[uint32],
					func(a, b uint32) int { return cmp.Compare(b, a) },
					func(a, b uint32) int {
						return cmp.Or(cmp.Compare(rows[b].followers, rows[a].followers), rows[a].address.Compare(rows[b].address))
					},
				} {
					all := make([]uint32, len(rows))
					for i := range all {
						all[i] = uint32(i)
					}
					slices.SortFunc(all, order)
					for _, some := range [][]uint32{slices.Clone(all), slices.DeleteFunc(all, func(i uint32) bool { return !rows[i].follow })} {
						for _, place := range some[:min(len(some), site.HeadRows)] {
							want[place] = true
						}
					}
				}
				if len(got) != len(want) || !slices.IsSorted(got) {
					t.Fatalf("got %d places, want %d, sorted", len(got), len(want))
				}
				for _, place := range got {
					if !want[place] {
						t.Fatalf("got the place %d, which is not among the first rows of any order", place)
					}
				}
			})
		}
	}
}

// TestRounding: counts are rounded down to two digits, and keep their order within the table.
func TestRounding(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rounded := 0
	for range 2000 {
		rows := make([]uint32, random.IntN(30))
		for i := range rows {
			rows[i] = random.Uint32N(1 + []uint32{130, 1300, 130_000, math.MaxUint32 - 1}[random.IntN(4)])
			if i > 0 && random.IntN(2) == 0 { // close to the previous one
				rows[i] = max(rows[i-1], 1) - 1 + random.Uint32N(3)
			}
		}
		r := newRounding(nil, len(rows), func(i int) uint32 { return rows[i] })
		for i, a := range rows {
			got := r.round(a)
			if got != a {
				rounded++
			}
			if a < roundedFrom && got != a || got > a || roundDown(max(got, roundedFrom)) != roundDown(max(a, roundedFrom)) {
				t.Fatalf("%v: got %d for %d", rows, got, a)
			}
			for _, b := range rows[:i] {
				if cmp.Compare(got, r.round(b)) != cmp.Compare(a, b) {
					t.Fatalf("%v: got %d and %d for %d and %d, in another order", rows, got, r.round(b), a, b)
				}
			}
		}
	}
	if rounded < 1000 {
		t.Errorf("got %d numbers that were rounded, want many", rounded)
	}
	for n, want := range map[uint32]uint32{99: 99, 100: 100, 101: 100, 327: 320, 999: 990, 1000: 1000, 1099: 1000, math.MaxUint32: 4_200_000_000} {
		if got := newRounding(nil, 1, func(int) uint32 { return n }); got.round(n) != want {
			t.Errorf("%d alone: got %d, want %d", n, got.round(n), want)
		}
	}
}

// TestRoundingStays: one more follower changes few tables.
func TestRoundingStays(t *testing.T) {
	others := []uint32{3, 40, 105, 260, 1234, 1250, 7000}
	at := func(n uint32) (values [8]uint32) {
		all := append([]uint32{n}, others...)
		r := newRounding(nil, len(all), func(i int) uint32 { return all[i] })
		for i, n := range all {
			values[i] = r.round(n)
		}
		return values
	}
	changed := 0
	for n := uint32(1000); n < 2000; n++ {
		if at(n) != at(n+1) {
			changed++
		}
	}
	if changed > 15 {
		t.Errorf("got %d changes by 1,000 followers, want 15 at most", changed)
	}
}
