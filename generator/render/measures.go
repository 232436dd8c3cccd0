package render

import (
	"iter"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/site/rules"
)

const (
	// Measures is the number of measures of the member ranks: the first ones.
	Measures = rules.Measure(ranks.Measures)
	// Boards is the number of measures with a leaderboard of the API efp: all.
	Boards = rules.Muting + 1
)

// Ranks are the counts and ranks of all accounts.
type Ranks struct {
	Count [Boards][]uint32   // by account
	Rank  [Measures][]uint32 // by account, from 1; 0 is unranked
	First [Boards][]uint32   // accounts by rank, as many as leaderboards show

	// Shown are the ranks that objects show of an account: those of Rank, unless older ones are held. Orders are of Rank.
	Shown [Measures][]uint32
	Held  []byte // the object site.RanksKey that they are from; nil if they are those of Rank

	Followed  int      // accounts with a follower
	ByAddress []uint32 // all accounts; only for the API efp, or if the configuration has RanksEvery
}

// counts are those of the ranked accounts, by address, for ranks.Encode.
func (r *Ranks) counts(accounts []site.Address) iter.Seq2[site.Address, ranks.Counts] {
	return func(yield func(site.Address, ranks.Counts) bool) {
		for _, account := range r.ByAddress {
			var counts ranks.Counts
			for m := range Measures {
				counts[m] = r.Count[m][account]
			}
			if counts != (ranks.Counts{}) && !yield(accounts[account], counts) {
				return
			}
		}
	}
}
