package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// This file and shards.go render the data that answers of the API efp are computed from: compact
// rows of the accounts in a list and of the holders of an account, in the buckets of lists and
// users if they are few, and otherwise in shards. Nothing here depends on the time of the snapshot.

// Estimated sizes of rows, without their texts.
const (
	recordRowBytes   = len(`["0x0000000000000000000000000000000000000000",,1000000,,],`)
	followerRowBytes = len(`["","0x0000000000000000000000000000000000000000",,0,1700000000000,1000000,,,,1000000],`)
	rankedRowBytes   = len(`["0x0000000000000000000000000000000000000000",,,,[,,,,],[,,,,]],`) + 10*len("1000000")
	tokenBytes       = 20 // a usual token ID
)

// appendShardHead appends the beginning of a shard, up to its first entry. The caller appends the
// member that names the owner before.
func appendShardHead(b []byte, total, shard, shards, size int) []byte {
	return fmt.Appendf(b, `"total":%d,"shard":%d,"shards":%d,"shard_size":%d,"entries":[`, total, shard, shards, size)
}

// A rowTable is a table of the accounts in a list, or of the holders of an account. If before is
// set, its functions are called for rows of the selected shard only.
type rowTable struct {
	member, owner string // beginning of its shards
	rows          int
	before        []int // result of followsBefore; nil if unknown
	ahead         func(from, to int)
	size          func(i int) int // estimated bytes of a row
	render        func(b []byte, i int) []byte
	isFollow      func(i int) bool
	followers     func(i int) uint32
	address       func(i int) site.Address
}

// followsBefore returns the number of follows before each shard, and in the whole table, so that a
// page of follows finds its shard.
func (t *rowTable) followsBefore() []int {
	before := make([]int, 1, shardCount(t.rows)+1)
	follows := 0
	for i := range t.rows {
		if t.isFollow(i) {
			follows++
		}
		if i+1 == t.rows || (i+1)%site.SearchShardSize == 0 {
			before = append(before, follows)
		}
	}
	return before
}

// renderTable emits the shards and the head of a table.
func renderTable(t *Scratch, table rowTable, emit Emitter, shardKey func(n int) site.Key, headKey func() site.Key) {
	objects := rowObjects(table.rows)
	if objects == 0 {
		return
	}
	before := table.before
	if before == nil {
		before = table.followsBefore()
	}
	first, end := t.only.shards(min(objects, shardCount(table.rows)))
	for n := first; n < end; n++ {
		from, to := n*site.SearchShardSize, min((n+1)*site.SearchShardSize, table.rows)
		table.ahead(from, to)
		size := objectBytes
		for i := from; i < to; i++ {
			size += table.size(i)
		}
		emit(size, func(b []byte) []byte {
			b = appendRowShard(b, table.member, table.owner, rowShard{table.rows, before[len(before)-1], before[n], n})
			for i := from; i < to; i++ {
				b = append(table.render(b, i), ',')
			}
			return append(withoutComma(b), "]}"...)
		}, shardKey(n))
	}
	if objects < 2 || !t.only.wantsHead() {
		return
	}
	places := headPlaces(t, table)
	size := objectBytes
	for _, place := range places {
		size += table.size(int(place)) + len("1000000,")
	}
	emit(size, func(b []byte) []byte {
		b = appendRowHead(b, table.member, table.owner, table.rows, places)
		for _, place := range places {
			b = append(table.render(b, int(place)), ',')
		}
		return append(withoutComma(b), "]}"...)
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
	return appendShardHead(b, s.total, s.n, shardCount(s.total), site.SearchShardSize)
}

// appendRowHead appends the beginning of a table's head, up to its first row.
func appendRowHead(b []byte, member, owner string, total int, places []uint32) []byte {
	b = appendPlaces(fmt.Appendf(b, `{"%s":"%s","total":%d,"places":[`, member, owner, total), places)
	return append(b, `],"entries":[`...)
}

// appendPlaces appends places of rows with commas between them.
func appendPlaces(b []byte, places []uint32) []byte {
	for _, place := range places {
		b = append(strconv.AppendUint(b, uint64(place), 10), ',')
	}
	return withoutComma(b)
}

// headPlaces returns the places of the rows of a head: the first in table order, in reverse, and by
// followers, each among all rows and among follows only.
func headPlaces(t *Scratch, table rowTable) []uint32 {
	t.places = t.places[:0]
	for _, backward := range [...]bool{false, true} {
		follows := 0
		for i := range table.rows {
			at := i
			if backward {
				at = table.rows - 1 - i
			}
			follow := follows < site.HeadRows && table.isFollow(at)
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
	for i := range table.rows {
		row := followedRow{table.followers(i), uint32(i)}
		all.add(row, &table)
		if follows.mayHave(row) && table.isFollow(i) {
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

func (m *mostFollowed) add(row followedRow, table *rowTable) {
	if !m.mayHave(row) {
		return
	}
	if m.rows = append(m.rows, row); len(m.rows) == 8*site.HeadRows {
		m.rows = m.first(table)
		m.least = m.rows[len(m.rows)-1].followers
	}
}

// first returns the rows of the head.
func (m *mostFollowed) first(table *rowTable) []followedRow {
	slices.SortFunc(m.rows, func(a, b followedRow) int {
		if a.followers != b.followers {
			return cmp.Compare(b.followers, a.followers)
		}
		return cmp.Or(table.address(int(a.place)).Compare(table.address(int(b.place))), cmp.Compare(a.place, b.place))
	})
	return m.rows[:min(len(m.rows), site.HeadRows)]
}

// renderListShards emits the rows of the accounts in a list, if they are not in its bucket.
func renderListShards(t *Scratch, v *view, emit Emitter) {
	if rowObjects(v.held) == 0 {
		return
	}
	all, first, before := v.records, 0, []int(nil)
	from, to := 0, all.Len()
	if t.only.wantsOneOf(shardCount(v.held)) {
		c := t.only.cuts.get(cutTable{number: t.only.list}, all.Len(), func(i int) (isRow, isFollow bool) {
			return all.state(i) != 0, all.state(i) == rules.Follow
		})
		from, to = int(c.starts[t.only.shard]), int(c.starts[t.only.shard+1])
		first, before = t.only.shard*site.SearchShardSize, c.before
	}
	t.held = t.held[:0]
	for i := from; i < to; i++ {
		if all.state(i) != 0 {
			t.held = append(t.held, uint32(i))
		}
	}
	record := func(row int) int { return int(t.held[row-first]) }
	var followers rounding
	if rowObjects(v.held) == 1 { // in a larger table, each row shares a shard with many others
		followers = newRounding(t.large, len(t.held), func(row int) uint32 { return all.followers(record(row)) })
		t.large = followers.large
	}
	renderTable(t, rowTable{
		member: "list", owner: v.token, rows: v.held, before: before,
		ahead:     func(from, to int) { all.ahead(record(from), record(to-1)+1) },
		size:      func(i int) int { return recordRowSize(all, record(i)) },
		render:    func(b []byte, i int) []byte { return appendRecordRow(b, all, record(i), &followers) },
		isFollow:  func(i int) bool { return all.state(record(i)) == rules.Follow },
		followers: func(i int) uint32 { return all.followers(record(i)) },
		address:   func(i int) site.Address { return all.address(record(i)) },
	}, emit, func(n int) site.Key { return site.SearchShardKey(v.token, n) }, func() site.Key { return site.ListHeadKey(v.token) })
}

func recordRowSize(all records, i int) int {
	return recordRowBytes + len(all.form(i).json) + int(all.shown(i).SearchLen)
}

// appendRecordRow appends the row of an account in a list.
func appendRecordRow(b []byte, all records, i int, followers *rounding) []byte {
	shown := all.shown(i)
	name, avatar := shown.texts()
	b = all.address(i).Append(append(b, `["`...))
	b = append(append(b, `",`...), all.form(i).json...)
	b = strconv.AppendUint(append(b, ','), uint64(followers.round(shown.Followers)), 10)
	b = appendTexts(b, name, avatar)
	if version := all.form(i).Version; version != rules.UsualVersion {
		b = strconv.AppendUint(append(b, ','), uint64(version), 10)
	}
	return append(b, ']')
}

// appendFollower appends the beginning of a holder's row, up to the tags.
func appendFollower(b []byte, token string, address site.Address) []byte {
	b = append(append(b, `["`...), token...)
	return append(address.Append(append(b, `","`...)), `",`...)
}

// appendMutualsRank appends the end of a row, after the texts.
func appendMutualsRank(b []byte, rank uint32) []byte {
	return append(strconv.AppendUint(append(b, ','), uint64(rank), 10), ']')
}

// appendState appends the numbers of a row, after the tags.
func appendState(b []byte, s rules.State, added int64, followers uint32) []byte {
	b = strconv.AppendUint(append(b, ','), uint64(s), 10)
	b = strconv.AppendInt(append(b, ','), added, 10)
	return strconv.AppendUint(append(b, ','), uint64(followers), 10)
}
