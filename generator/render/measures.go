package render

import (
	"github.com/followpress/followpress/site/rules"
)

const (
	// Measures is the number of measures of the member ranks: the first ones.
	Measures = rules.Blocks + 1
	// Boards is the number of measures with a leaderboard of the API efp: all.
	Boards = rules.Muting + 1
)

// Ranks are the counts and ranks of all accounts.
type Ranks struct {
	Count [Boards][]uint32   // by account
	Rank  [Measures][]uint32 // by account, from 1; 0 is unranked
	First [Boards][]uint32   // accounts by rank, as many as leaderboards show

	Followed  int      // accounts with a follower
	ByAddress []uint32 // all accounts; only for the API efp
}
