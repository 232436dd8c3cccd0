package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// This file renders the data that answers of the API efp are computed from: compact rows of the
// accounts in a list and of the holders of an account, in the buckets of lists and users if they
// are few, and otherwise in shards. Nothing here depends on the time of the snapshot.

// recordRowBytes is the estimated size of a row of an account in a list, without its texts.
const recordRowBytes = len(`["0x0000000000000000000000000000000000000000",,1000000,,],`)

// AppendShardHead appends the beginning of a shard, up to its first entry. The caller appends the
// member that names the owner before.
func AppendShardHead(b []byte, total, shard, size int) []byte {
	return fmt.Appendf(b, `"total":%d,"shard":%d,"shards":%d,"shard_size":%d,"entries":[`, total, shard, ShardCount(total, size), size)
}

// A RowTable is a table of the accounts in a list, or of the holders of an account. If before is
// set, its functions are called for rows of the selected shard only.
type RowTable struct {
	Member, Owner string // beginning of its shards
	Rows          int
	Before        []int // result of followsBefore; nil if unknown
	Ahead         func(from, to int)
	Size          func(i int) int // estimated bytes of a row
	Render        func(b []byte, i int) []byte
	IsFollow      func(i int) bool
	Followers     func(i int) uint32
	Address       func(i int) site.Address
}

// followsBefore returns the number of follows before each shard, and in the whole table, so that a
// page of follows finds its shard.
func (t *RowTable) followsBefore() []int {
	before := make([]int, 1, UsualShards(t.Rows)+1)
	follows := 0
	for i := range t.Rows {
		if t.IsFollow(i) {
			follows++
		}
		if i+1 == t.Rows || (i+1)%site.SearchShardSize == 0 {
			before = append(before, follows)
		}
	}
	return before
}

// EmitTable emits the shards and the head of a table.
func EmitTable(t *Scratch, table RowTable, emit Emitter, shardKey func(n int) site.Key, headKey func() site.Key) {
	objects := rowObjects(table.Rows)
	if objects == 0 {
		return
	}
	before := table.Before
	if before == nil {
		before = table.followsBefore()
	}
	first, end := t.Only.shards(min(objects, UsualShards(table.Rows)))
	for n := first; n < end; n++ {
		from, to := n*site.SearchShardSize, min((n+1)*site.SearchShardSize, table.Rows)
		table.Ahead(from, to)
		size := ObjectBytes
		for i := from; i < to; i++ {
			size += table.Size(i)
		}
		emit(size, func(b []byte) []byte {
			b = appendRowShard(b, table.Member, table.Owner, rowShard{table.Rows, before[len(before)-1], before[n], n})
			for i := from; i < to; i++ {
				b = append(table.Render(b, i), ',')
			}
			return append(WithoutComma(b), "]}"...)
		}, shardKey(n))
	}
	if objects < 2 || !t.Only.wantsHead() {
		return
	}
	places := headPlaces(t, table)
	size := ObjectBytes
	for _, place := range places {
		size += table.Size(int(place)) + len("1000000,")
	}
	emit(size, func(b []byte) []byte {
		b = appendRowHead(b, table.Member, table.Owner, table.Rows, places)
		for _, place := range places {
			b = append(table.Render(b, int(place)), ',')
		}
		return append(WithoutComma(b), "]}"...)
	}, headKey())
}

// A rowShard identifies a shard of a table.
type rowShard struct {
	total   int // rows of the table
	follows int // follows of the table
	before  int // follows before the shard
	n       int // number of the shard
}

// appendRowShard appends the beginning of a table's shard, up to its first row.
func appendRowShard(b []byte, member, owner string, s rowShard) []byte {
	b = fmt.Appendf(b, `{"%s":"%s","follows":%d,"before":%d,`, member, owner, s.follows, s.before)
	return AppendShardHead(b, s.total, s.n, site.SearchShardSize)
}

// appendRowHead appends the beginning of a table's head, up to its first row.
func appendRowHead(b []byte, member, owner string, total int, places []uint32) []byte {
	b = AppendPlaces(fmt.Appendf(b, `{"%s":"%s","total":%d,"places":[`, member, owner, total), places)
	return append(b, `],"entries":[`...)
}

// AppendPlaces appends places of rows with commas between them.
func AppendPlaces(b []byte, places []uint32) []byte {
	for _, place := range places {
		b = append(strconv.AppendUint(b, uint64(place), 10), ',')
	}
	return WithoutComma(b)
}

// headPlaces returns the places of the rows of a head: the first in table order, in reverse, and by
// followers, each among all rows and among follows only.
func headPlaces(t *Scratch, table RowTable) []uint32 {
	t.places = t.places[:0]
	for _, backward := range [...]bool{false, true} {
		follows := 0
		for i := range table.Rows {
			at := i
			if backward {
				at = table.Rows - 1 - i
			}
			follow := follows < site.HeadRows && table.IsFollow(at)
			if follow {
				follows++
			}
			if follow || i < site.HeadRows {
				t.places = append(t.places, uint32(at))
			} else if follows == site.HeadRows {
				break
			}
		}
	}
	var all, follows mostFollowed
	for i := range table.Rows {
		row := followedRow{table.Followers(i), uint32(i)}
		all.add(row, &table)
		if follows.mayHave(row) && table.IsFollow(i) {
			follows.add(row, &table)
		}
	}
	for _, most := range [...]mostFollowed{all, follows} {
		for _, row := range most.first(&table) {
			t.places = append(t.places, row.place)
		}
	}
	slices.Sort(t.places)
	t.places = slices.Compact(t.places)
	return t.places
}

// A followedRow is a row of a table with its shown follower count.
type followedRow struct{ followers, place uint32 }

// mostFollowed collects the rows of a head by followers. A table may have millions of rows, and a
// head few, so it keeps and sorts only candidates.
type mostFollowed struct {
	rows  []followedRow
	least uint32 // lower bound of the followers of the last row of the head
}

// mayHave reports whether a row may be in the head.
func (m *mostFollowed) mayHave(row followedRow) bool { return row.followers >= m.least }

func (m *mostFollowed) add(row followedRow, table *RowTable) {
	if !m.mayHave(row) {
		return
	}
	if m.rows = append(m.rows, row); len(m.rows) == 8*site.HeadRows {
		m.rows = m.first(table)
		m.least = m.rows[len(m.rows)-1].followers
	}
}

// first returns the rows of the head.
func (m *mostFollowed) first(table *RowTable) []followedRow {
	slices.SortFunc(m.rows, func(a, b followedRow) int {
		if a.followers != b.followers {
			return cmp.Compare(b.followers, a.followers)
		}
		return cmp.Or(table.Address(int(a.place)).Compare(table.Address(int(b.place))), cmp.Compare(a.place, b.place))
	})
	return m.rows[:min(len(m.rows), site.HeadRows)]
}

// renderListShards emits the rows of the accounts in a list, if they are not in its bucket.
func renderListShards(t *Scratch, v *View, emit Emitter) {
	if rowObjects(v.Held) == 0 {
		return
	}
	all, first, before := v.Records, 0, []int(nil)
	from, to := 0, all.Len()
	if t.Only.WantsOneOf(UsualShards(v.Held)) {
		c := t.Only.Cuts.Get(CutTable{Number: t.Only.List}, all.Len(), func(i int) (isRow, isFollow bool) {
			return all.State(i) != 0, all.State(i) == rules.Follow
		})
		from, to = int(c.Starts[t.Only.Shard]), int(c.Starts[t.Only.Shard+1])
		first, before = t.Only.Shard*site.SearchShardSize, c.Before
	}
	t.held = t.held[:0]
	for i := from; i < to; i++ {
		if all.State(i) != 0 {
			t.held = append(t.held, uint32(i))
		}
	}
	record := func(row int) int { return int(t.held[row-first]) }
	var followers rounding
	if rowObjects(v.Held) == 1 { // in a larger table, each row shares a shard with many others
		followers = newRounding(t.large, len(t.held), func(row int) uint32 { return all.Followers(record(row)) })
		t.large = followers.large
	}
	EmitTable(t, RowTable{
		Member: "list", Owner: v.Token, Rows: v.Held, Before: before,
		Ahead:     func(from, to int) { all.Ahead(record(from), record(to-1)+1) },
		Size:      func(i int) int { return RecordRowSize(all, record(i)) },
		Render:    func(b []byte, i int) []byte { return appendRecordRow(b, all, record(i), &followers) },
		IsFollow:  func(i int) bool { return all.State(record(i)) == rules.Follow },
		Followers: func(i int) uint32 { return all.Followers(record(i)) },
		Address:   func(i int) site.Address { return all.Address(record(i)) },
	}, emit, func(n int) site.Key { return site.SearchShardKey(v.Token, n) }, func() site.Key { return site.ListHeadKey(v.Token) })
}

// RecordRowSize estimates the bytes of a row of an account in a list.
func RecordRowSize(all records, i int) int {
	return recordRowBytes + len(all.Form(i).JSON) + int(all.Shown(i).SearchLen)
}

// appendRecordRow appends the row of an account in a list.
func appendRecordRow(b []byte, all records, i int, followers *rounding) []byte {
	shown := all.Shown(i)
	name, avatar := shown.texts()
	b = all.Address(i).Append(append(b, `["`...))
	b = append(append(b, `",`...), all.Form(i).JSON...)
	b = strconv.AppendUint(append(b, ','), uint64(followers.round(shown.Followers)), 10)
	b = AppendTexts(b, name, avatar)
	if version := all.Form(i).Version; version != rules.UsualVersion {
		b = strconv.AppendUint(append(b, ','), uint64(version), 10)
	}
	return append(b, ']')
}

// AppendFollower appends the beginning of a holder's row, up to the tags.
func AppendFollower(b []byte, token string, address site.Address) []byte {
	b = append(append(b, `["`...), token...)
	return append(address.Append(append(b, `","`...)), `",`...)
}

// AppendMutualsRank appends the end of a row, after the texts.
func AppendMutualsRank(b []byte, rank uint32) []byte {
	return append(strconv.AppendUint(append(b, ','), uint64(rank), 10), ']')
}

// AppendState appends the numbers of a row, after the tags.
func AppendState(b []byte, s rules.State, added int64, followers uint32) []byte {
	b = strconv.AppendUint(append(b, ','), uint64(s), 10)
	b = strconv.AppendInt(append(b, ','), added, 10)
	return strconv.AppendUint(append(b, ','), uint64(followers), 10)
}

// AppendSizes appends the primary list of an account, "" for none, the number of accounts that it
// holds, and the number of primary lists that hold the account.
func AppendSizes(b []byte, primary string, held, holders int) []byte {
	b = append(append(b, '"'), primary...)
	b = strconv.AppendInt(append(b, `",`...), int64(held), 10)
	return strconv.AppendInt(append(b, ','), int64(holders), 10)
}

// AppendListEntry appends the entry of a list in its bucket. held is the number of accounts that it
// holds, holders the number of primary lists that hold its account.
func AppendListEntry(b []byte, token string, account site.Address, primary bool, held, holders int, all records) []byte {
	b = append(append(b, '"'), token...)
	b = account.Append(append(b, `":["`...))
	b = strconv.AppendBool(append(b, `",`...), primary)
	b = strconv.AppendInt(append(b, ','), int64(held), 10)
	b = strconv.AppendInt(append(b, ','), int64(holders), 10)
	b = append(b, ",["...)
	if held <= site.PackedRows {
		var rows [site.PackedRows]int
		n := 0
		for i := range all.Len() {
			if all.State(i) != 0 {
				rows[n] = i
				n++
			}
		}
		var large [site.PackedRows]uint32
		followers := newRounding(large[:], n, func(row int) uint32 { return all.Followers(rows[row]) })
		for _, i := range rows[:n] {
			b = append(appendRecordRow(b, all, i, &followers), ',')
		}
	}
	return append(WithoutComma(b), "]]"...)
}

// AppendUserBucket appends the object that maps the users of a bucket to their primary lists. users
// must be sorted; tokenID returns the list of each, "" for none.
func AppendUserBucket(b []byte, bucket string, users []string, tokenID func(user string) string) []byte {
	b = AppendBucket(b, bucket, "users")
	for _, user := range users {
		b = rawjson.AppendString(b, user)
		b = append(b, `:"`...)
		b = append(b, tokenID(user)...)
		b = append(b, `",`...)
	}
	return append(WithoutComma(b), "}}"...)
}

// AppendBucket appends the beginning of a bucket, up to the first entry of its first member.
func AppendBucket(b []byte, name, member string) []byte {
	return fmt.Appendf(b, `{"bucket":"%s","%s":{`, name, member)
}
