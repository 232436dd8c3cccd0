package render

import (
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// rankedBoards are the accounts on the board of ranked accounts.
type rankedBoards struct {
	accounts []uint32   // by mutuals rank, then by address
	orders   [][]uint32 // by sort of site.RankedSorts; indexes into accounts
}

func newRankedBoards(r *Ranks) rankedBoards {
	onBoard := slices.DeleteFunc(slices.Clone(r.ByAddress), func(account uint32) bool {
		for m := range Measures {
			if r.Count[m][account] != 0 {
				return false
			}
		}
		return true
	})
	boards := rankedBoards{accounts: r.sorted(rules.Mutuals, onBoard)}
	places := make([]uint32, len(r.ByAddress))
	for i, account := range boards.accounts {
		places[account] = uint32(i)
	}
	for _, sort := range site.RankedSorts() {
		order := r.sorted(sortMeasures[sort], onBoard)
		for i, account := range order {
			order[i] = places[account]
		}
		boards.orders = append(boards.orders, order)
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

func (r *rankedBoards) shards() int { return shardCount(len(r.accounts)) }

func (r *rankedBoards) orderShards() int { return ShardCount(len(r.accounts), site.RankedOrderSize) }
