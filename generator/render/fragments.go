package render

import (
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// This file renders, from rows and entries, the objects that several lists or accounts share. Rows and
// entries come without commas between them.

// AppendListEntry appends the entry of a unit's list in its token bucket. So many primary lists hold its
// account.
func (r *Renderer) AppendListEntry(b []byte, u *Unit, holders int) []byte {
	all := unitRecords(u.Records)
	return appendListEntry(b, u.Token, u.Account.Address, u.Token == u.Account.Primary, all.held(), holders, all)
}

// A FollowerRow is who holds an account, by a record of a primary list.
type FollowerRow struct {
	Token   string
	Account *Account
	Tags    []string    // sorted, without repetitions
	State   rules.State // what the primary list of the account that is held says of this one
	Added   int64       // milliseconds since the Unix epoch, snapshot.NoTime for none
}

// AppendFollowerRow appends the row of who holds an account.
func AppendFollowerRow(b []byte, row FollowerRow) []byte {
	name, avatar, header := row.Account.texts()
	b = appendTags(appendFollower(b, row.Token, row.Account.Address), row.Tags)
	b = appendState(b, row.State, ShownTime(row.Added), row.Account.Counts[rules.Followers])
	return appendMutualsRank(appendTexts(b, name, avatar, header), row.Account.Ranks[rules.Mutuals])
}

// FollowerShard renders the n-th shard of who holds an account. Of all its holders, so many follow it, and
// so many of these come before the shard.
func (r *Renderer) FollowerShard(address string, total, follows, before, n int, rows [][]byte) (site.Key, []byte) {
	b := appendRowShard(nil, addressMember, address, rowShard{total: total, follows: follows, before: before, n: n})
	return site.FollowerShardKey(address, n), append(appendJoined(b, rows), "]}"...)
}

// FollowerHead renders the head of who holds an account, whose rows are at these places.
func (r *Renderer) FollowerHead(address string, total int, places []uint32, rows [][]byte) (site.Key, []byte) {
	b := appendRowHead(nil, addressMember, address, total, places)
	return site.FollowerHeadKey(address), append(appendJoined(b, rows), "]}"...)
}

// UserBucketEFP renders a user bucket of the API efp. The entries are sorted: of names, "name":["0x…",SIZES],
// and of accounts, "0x…":[SIZES,[ROWS]], where AppendSizes appends the sizes and AppendFollowerRow the
// rows, if they are at most site.PackedRows.
func UserBucketEFP(name string, names, accounts [][]byte) []byte {
	b := appendJoined(appendBucket(nil, name, "names"), names)
	return append(appendJoined(append(b, `},"accounts":{`...), accounts), "}}"...)
}

// TokenBucket renders a token bucket, whose entries AppendListEntry appends. They are in the order of the
// bytes of token IDs.
func TokenBucket(name string, lists [][]byte) []byte {
	return append(appendJoined(appendBucket(nil, name, "lists"), lists), "}}"...)
}

// Leaderboards renders a leaderboard with every limit. first are its accounts, at most LeaderboardMax.
func (r *Renderer) Leaderboards(board site.Board, first []Leader, emit Emit) {
	r.emit = emit
	for limit := 1; limit <= r.views.config.LeaderboardMax; limit++ {
		r.views.emitBoard(&r.scratch, board, limit, first[:min(limit, len(first))], r.emitter)
	}
}

// RankedShard renders the n-th shard of the ranked accounts, of which there are so many.
func (r *Renderer) RankedShard(total, n int, rows [][]byte) (site.Key, []byte) {
	b := appendShardHead([]byte("{"), total, n, shardCount(total), site.SearchShardSize)
	return site.RankedShardKey(n), append(appendJoined(b, rows), "]}"...)
}

// RankedOrder renders the n-th shard of the places of ranked accounts in the order of one of
// site.RankedSorts.
func (r *Renderer) RankedOrder(sort string, total, n int, places []uint32) (site.Key, []byte) {
	b := appendShardHead([]byte("{"), total, n, ShardCount(total, site.RankedOrderSize), site.RankedOrderSize)
	return site.RankedOrderKey(sort, n), append(appendPlaces(b, places), "]}"...)
}

// Ranked renders the answer to /leaderboard/ranked without parameters. first are accounts of the board,
// in its order.
func (r *Renderer) Ranked(first []Account, emit Emit) {
	c := r.views.config
	first = first[:min(rankedLimit(c), len(first))]
	emit(c.RankedKey(), appendRanked(nil, r.lastUpdated, len(first), func(i int) *Account { return &first[i] }))
}

// Summaries renders the objects that show summaries.
func (r *Renderer) Summaries(s Summaries, emit Emit) {
	r.emit = emit
	r.views.emitSummaries(&s, r.emitter)
}

// RecommendedShard renders the n-th shard of the recommended accounts, of which there are so many.
func (r *Renderer) RecommendedShard(total, n int, rows [][]byte) (site.Key, []byte) {
	b := appendShardHead([]byte("{"), total, n, shardCount(total), site.SearchShardSize)
	return site.RecommendedShardKey(n), append(appendJoined(b, rows), "]}"...)
}
