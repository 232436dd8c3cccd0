package render

import (
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// This file renders the objects shared by several lists or accounts, from rows and entries without
// commas between them.

// AppendListEntry appends the entry of a unit's list in its token bucket. holders is the number of
// primary lists that hold the account.
func (r *Renderer) AppendListEntry(b []byte, u *Unit, holders int) []byte {
	all := unitRecords(u.Records)
	return AppendListEntry(b, u.Token, u.Account.Address, u.Token == u.Account.Primary, all.held(), holders, all)
}

// A FollowerRow is a holder of an account, by a record of a primary list.
type FollowerRow struct {
	Token   string
	Account *Account
	Tags    []string    // sorted, unique
	State   rules.State // state of the holder in the primary list of the held account
	Added   int64       // milliseconds since the Unix epoch, snapshot.NoTime for none
}

// AppendFollowerRow appends the row of a holder.
func AppendFollowerRow(b []byte, row FollowerRow) []byte {
	name, avatar, header := row.Account.Texts()
	b = appendTags(AppendFollower(b, row.Token, row.Account.Address), row.Tags)
	b = AppendState(b, row.State, ShownTime(row.Added), row.Account.Counts[rules.Followers])
	return AppendMutualsRank(AppendTexts(b, name, avatar, header), row.Account.Ranks[rules.Mutuals])
}

// FollowerShard renders the n-th shard of the holders of an account. follows of the total holders
// follow it, before of these in earlier shards.
func (r *Renderer) FollowerShard(address string, total, follows, before, n int, rows [][]byte) (site.Key, []byte) {
	b := appendRowShard(nil, "address", address, rowShard{total: total, follows: follows, before: before, n: n})
	return site.FollowerShardKey(address, n), append(appendJoined(b, rows), "]}"...)
}

// FollowerHead renders the head of the holders of an account. places are the places of its rows.
func (r *Renderer) FollowerHead(address string, total int, places []uint32, rows [][]byte) (site.Key, []byte) {
	b := appendRowHead(nil, "address", address, total, places)
	return site.FollowerHeadKey(address), append(appendJoined(b, rows), "]}"...)
}

// UserBucketEFP renders a user bucket of the API efp. The entries must be sorted: names are
// "name":["0x…",SIZES], and accounts are "0x…":[SIZES,[ROWS]], with SIZES from AppendSizes and
// up to site.PackedRows rows from AppendFollowerRow.
func UserBucketEFP(name string, names, accounts [][]byte) []byte {
	b := appendJoined(AppendBucket(nil, name, "names"), names)
	return append(appendJoined(append(b, `},"accounts":{`...), accounts), "}}"...)
}

// TokenBucket renders a token bucket with entries from AppendListEntry, in byte order of token IDs.
func TokenBucket(name string, lists [][]byte) []byte {
	return append(appendJoined(AppendBucket(nil, name, "lists"), lists), "}}"...)
}

// Leaderboards renders a leaderboard with every limit. first are its accounts, at most
// LeaderboardMax.
func (r *Renderer) Leaderboards(board site.Board, first []Leader, emit Emit) {
	r.emit = emit
	for limit := 1; limit <= r.views.Config.LeaderboardMax; limit++ {
		r.views.EmitBoard(&r.scratch, board, limit, first[:min(limit, len(first))], r.emitter)
	}
}

// RankedShard renders the n-th shard of all total ranked accounts.
func (r *Renderer) RankedShard(total, n int, rows [][]byte) (site.Key, []byte) {
	b := AppendShardHead([]byte("{"), total, n, site.SearchShardSize)
	return site.RankedShardKey(n), append(appendJoined(b, rows), "]}"...)
}

// RankedOrder renders the n-th shard of the places of ranked accounts, in the order of one of
// site.RankedSorts.
func (r *Renderer) RankedOrder(sort string, total, n int, places []uint32) (site.Key, []byte) {
	b := AppendShardHead([]byte("{"), total, n, site.RankedOrderSize)
	return site.RankedOrderKey(sort, n), append(AppendPlaces(b, places), "]}"...)
}

// Ranked renders the answer to /leaderboard/ranked without parameters. first are accounts of the
// board in order.
func (r *Renderer) Ranked(first []Account, emit Emit) {
	r.emit = emit
	r.views.EmitRanked(r.lastUpdated, len(first), func(i int) *Account { return &first[i] }, r.emitter)
}

// Summaries renders the objects that show summaries.
func (r *Renderer) Summaries(s Summaries, emit Emit) {
	r.emit = emit
	r.views.EmitSummaries(&s, r.emitter)
}

// RecommendedShard renders the n-th shard of all total recommended accounts.
func (r *Renderer) RecommendedShard(total, n int, rows [][]byte) (site.Key, []byte) {
	b := AppendShardHead([]byte("{"), total, n, site.SearchShardSize)
	return site.RecommendedShardKey(n), append(appendJoined(b, rows), "]}"...)
}
