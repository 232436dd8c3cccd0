package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// This file and shards.go render what the API efp computes answers from: compact rows of what lists hold
// and of who holds an account, in the buckets of lists and users if they are few, and otherwise in shards.
// Nothing here depends on the time of the snapshot.

// Estimated sizes of rows, without their texts.
const (
	recordRowBytes   = len(`["0x0000000000000000000000000000000000000000",,1000000,,],`)
	followerRowBytes = len(`["","0x0000000000000000000000000000000000000000",,0,1700000000000,1000000,,,,1000000],`)
	rankedRowBytes   = len(`["0x0000000000000000000000000000000000000000",,,,[,,,,],[,,,,]],`) + 10*len("1000000")
	tokenBytes       = 20 // of a usual token ID
)

// appendShardHead appends the beginning of a shard, up to its first entry. The member that names the owner comes before.
func appendShardHead(b []byte, total, shard, shards, size int) []byte {
	return fmt.Appendf(b, `"total":%d,"shard":%d,"shards":%d,"shard_size":%d,"entries":[`, total, shard, shards, size)
}

// A rowTable is what a list holds, or who holds an account. If before is set, its functions are called
// for the rows of the selected shard only.
type rowTable struct {
	member, owner string // the beginning of its shards
	rows          int
	before        []int // as followsBefore returns it; nil if it is not known
	ahead         func(from, to int)
	size          func(i int) int // estimated bytes of a row
	render        func(b []byte, i int) []byte
	isFollow      func(i int) bool
	followers     func(i int) uint32
	address       func(i int) site.Address
}

// followsBefore returns how many rows before each shard, and of the whole table, are follows: a page of
// follows must find its shard.
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

// A rowShard says which shard of a table it is.
type rowShard struct {
	total   int // rows of the table
	follows int // of these
	before  int // follows before the shard
	n       int // its number
}

// appendRowShard appends a shard of a table up to its first row.
func appendRowShard(b []byte, member, owner string, s rowShard) []byte {
	b = fmt.Appendf(b, `{"%s":"%s","follows":%d,"before":%d,`, member, owner, s.follows, s.before)
	return appendShardHead(b, s.total, s.n, shardCount(s.total), site.SearchShardSize)
}

// appendRowHead appends the head of a table up to its first row.
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

// headPlaces returns the places of the rows of a head: the first in the order of the table, in its
// reverse, and by followers, each of all rows and of follows only.
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

// A followedRow is a row of a table with the number of followers that it shows.
type followedRow struct{ followers, place uint32 }

// mostFollowed are the rows of a head by followers, of all that were added. A table may have millions, of which a head
// has few: so only those are kept and sorted that may be among them.
type mostFollowed struct {
	rows  []followedRow
	least uint32 // followers of the last row of the head, as far as it is known
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

// renderListShards emits the rows of what a list holds, if they are not in its bucket.
func renderListShards(t *Scratch, v *view, emit Emitter) {
	if rowObjects(v.held) == 0 {
		return
	}
	all, first, before := v.records, 0, []int(nil)
	from, to := 0, all.Len()
	if t.only.wantsOneOf(shardCount(v.held)) {
		c := t.only.cuts.of(cutTable{number: t.only.list}, all.Len(), func(i int) (isRow, isFollow bool) {
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
	if rowObjects(v.held) == 1 { // of a larger table, each row is in a shard with many others
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

// appendRecordRow appends the row of what a list holds.
func appendRecordRow(b []byte, all records, i int, followers *rounding) []byte {
	shown := all.shown(i)
	name, avatar := shown.texts()
	b = all.address(i).Append(append(b, `["`...))
	b = append(append(b, `",`...), all.form(i).json...)
	b = strconv.AppendUint(append(b, ','), uint64(followers.of(shown.Followers)), 10)
	b = appendTexts(b, name, avatar)
	if version := all.form(i).Version; version != rules.UsualVersion {
		b = strconv.AppendUint(append(b, ','), uint64(version), 10)
	}
	return append(b, ']')
}

// appendFollower appends the beginning of the row of who holds an account, up to the tags.
func appendFollower(b []byte, token string, address site.Address) []byte {
	b = append(append(b, `["`...), token...)
	return append(address.Append(append(b, `","`...)), `",`...)
}

// appendMutualsRank appends the end of the row after the texts.
func appendMutualsRank(b []byte, rank uint32) []byte {
	return append(strconv.AppendUint(append(b, ','), uint64(rank), 10), ']')
}

// appendState appends the numbers of the row after the tags.
func appendState(b []byte, s rules.State, added int64, followers uint32) []byte {
	b = strconv.AppendUint(append(b, ','), uint64(s), 10)
	b = strconv.AppendInt(append(b, ','), added, 10)
	return strconv.AppendUint(append(b, ','), uint64(followers), 10)
}
