package graph

import (
	"iter"
	"slices"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/site/rules"
)

// Ranks are the counts and ranks of all accounts.
type Ranks struct {
	Count [render.Boards][]uint32   // by account
	Rank  [render.Measures][]uint32 // by account, from 1; 0 is unranked
	First [render.Boards][]uint32   // accounts by rank, up to the length of leaderboards

	// Shown are the ranks that objects show: Rank, unless older ones are held. Orders use Rank.
	Shown [render.Measures][]uint32
	Held  []byte // the object site.RanksKey with the held ranks; nil if Shown equals Rank

	Followed  int      // accounts with a follower
	ByAddress []uint32 // all accounts; only for the API efp, or if the configuration has RanksEvery or Data
}

// Counts returns the counts of ranked accounts by address, for ranks.Encode.
func (r *Ranks) Counts(accounts []site.Address) iter.Seq2[site.Address, ranks.Counts] {
	return func(yield func(site.Address, ranks.Counts) bool) {
		for _, account := range r.ByAddress {
			var counts ranks.Counts
			for m := range render.Measures {
				counts[m] = r.Count[m][account]
			}
			if counts != (ranks.Counts{}) && !yield(accounts[account], counts) {
				return
			}
		}
	}
}

// RankedBoards are the accounts on the board of ranked accounts.
type RankedBoards struct {
	Accounts []uint32   // by mutuals rank, then by address
	Orders   [][]uint32 // by sort of site.RankedSorts; indexes into accounts
}

// NewRankedBoards returns the boards of all accounts with a count.
func NewRankedBoards(r *Ranks) RankedBoards {
	onBoard := slices.DeleteFunc(slices.Clone(r.ByAddress), func(account uint32) bool {
		for m := range render.Measures {
			if r.Count[m][account] != 0 {
				return false
			}
		}
		return true
	})
	boards := RankedBoards{Accounts: r.sorted(rules.Mutuals, onBoard)}
	places := make([]uint32, len(r.ByAddress))
	for i, account := range boards.Accounts {
		places[account] = uint32(i)
	}
	for _, sort := range site.RankedSorts() {
		order := r.sorted(render.SortMeasure(sort), onBoard)
		for i, account := range order {
			order[i] = places[account]
		}
		boards.Orders = append(boards.Orders, order)
	}
	return boards
}

// sorted sorts accounts by the rank of a measure, unranked ones last, then by address.
func (r *Ranks) sorted(m rules.Measure, byAddress []uint32) []uint32 {
	order, rank := make([]uint32, len(byAddress)), r.Rank[m]
	ranked := 0
	for _, account := range byAddress {
		if rank[account] != 0 {
			order[rank[account]-1] = account
			ranked++
		}
	}
	for _, account := range byAddress {
		if rank[account] == 0 {
			order[ranked] = account
			ranked++
		}
	}
	return order
}

// Shards returns the number of shards of the accounts.
func (r *RankedBoards) Shards() int { return render.UsualShards(len(r.Accounts)) }

// OrderShards returns the number of shards of an order.
func (r *RankedBoards) OrderShards() int {
	return render.ShardCount(len(r.Accounts), site.RankedOrderSize)
}
