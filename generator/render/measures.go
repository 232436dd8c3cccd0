package render

// A Measure is a count by which accounts are ranked.
type Measure int

// The measures, in the order of the member ranks.
const (
	Mutuals Measure = iota
	Followers
	Following
	Top8
	Blocks
	Measures = 5
)

// The measures of leaderboards that only the API efp has.
const (
	Blocking Measure = Measures + iota // accounts that the account blocks
	Muted                              // accounts that mute the account
	Muting                             // accounts that the account mutes
	Boards
)

// Ranks are the counts and ranks of all accounts.
type Ranks struct {
	Count [Boards][]uint32   // by account
	Rank  [Measures][]uint32 // by account, from 1; 0 is unranked
	First [Boards][]uint32   // accounts by rank, as many as leaderboards show

	Followed  int      // accounts with a follower
	ByAddress []uint32 // all accounts; only for the API efp
}
