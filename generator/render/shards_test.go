package render

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
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
				got := headPlaces(&Scratch{}, rowTable{
					rows:      len(rows),
					isFollow:  func(i int) bool { return rows[i].follow },
					followers: func(i int) uint32 { return rows[i].followers },
					address:   func(i int) site.Address { return rows[i].address },
				})

				want := map[uint32]bool{}
				for _, order := range []func(a, b uint32) int{
					cmp.Compare[uint32],
					func(a, b uint32) int { return cmp.Compare(b, a) },
					func(a, b uint32) int {
						return cmp.Or(cmp.Compare(rows[b].followers, rows[a].followers), rows[a].address.Compare(rows[b].address))
					},
				} {
					all := numbersBelow(len(rows))
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

// TestHolders: the packed properties of a holder agree with its record.
func TestHolders(t *testing.T) {
	t.Parallel()
	const lists, accounts = 40, 60
	random := rand.New(rand.NewPCG(3, 4))
	g := NewGraph("2026-01-01T00:00:00Z")
	for i := range accounts {
		g.Account(site.Address{1, byte(i)})
	}
	var forms []uint32
	for _, tags := range [][]string{nil, {"friend"}, {"block"}, {"mute"}, {"block", "top8"}} {
		forms = append(forms, g.Number(1, "address", tags))
	}
	forms = append(forms, g.Number(1, "other", nil), g.Number(1, "other", []string{"friend"}))
	g.FillAccounts()
	g.Records = NewRecords(lists * accounts)
	for list := range uint32(lists) {
		g.Lists.Add(fmt.Sprint(list))
		g.Owners, g.Offsets = append(g.Owners, list), append(g.Offsets, uint64(g.Records.Len()))
		if list%4 != 0 {
			g.Primary[list] = list
		}
		for account := range uint32(accounts) {
			if random.IntN(2) == 0 {
				g.Records.Append(account, forms[random.IntN(len(forms))])
				g.Added = append(g.Added, int64(random.IntN(5)))
			}
		}
	}
	g.Offsets = append(g.Offsets, uint64(g.Records.Len()))
	g.Records.Use(g.ByNumber)
	r, err := newRelations(context.Background(), g, 2)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[[2]bool]int{}
	for account := range uint32(accounts) {
		for _, h := range r.holdersOf(account) {
			record := r.recordOf(h)
			follows, tags := g.StateOf(record) == rules.Follow, len(g.TagSets[record.Tags].Tags) > 0
			if record.Data != account || h.follows() != follows || h.hasTags() != tags {
				t.Errorf("a holder of account %d: got %v and %v for a record of %d with %v and %v",
					account, h.follows(), h.hasTags(), record.Data, follows, tags)
			}
			kinds[[2]bool{follows, tags}]++
		}
	}
	if len(kinds) != 3 { // a non-follow always has a tag
		t.Errorf("got holders of the kinds %v, want three", kinds)
	}
}
