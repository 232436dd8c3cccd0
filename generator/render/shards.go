package render

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// This file renders what the API efp computes answers from: compact rows of what lists hold and of who
// holds an account, in the buckets of lists and users if they are few, and otherwise in shards. Nothing
// here depends on the time of the snapshot.

// Estimated sizes of rows, without their texts.
const (
	recordRowBytes   = len(`["0x0000000000000000000000000000000000000000",,1000000,,],`)
	followerRowBytes = len(`["","0x0000000000000000000000000000000000000000",,0,1700000000000,1000000,,,,1000000],`)
	rankedRowBytes   = len(`["0x0000000000000000000000000000000000000000",,,,[,,,,],[,,,,]],`) + 10*len("1000000")
	tokenBytes       = 20 // of a usual token ID
)

// window returns the n-th part of a table that is cut into parts of a size.
func window[T any](all []T, n, size int) []T {
	return all[min(n*size, len(all)):min((n+1)*size, len(all))]
}

// appendShardHead appends the beginning of a shard, up to its first entry, after the member that says
// whose it is.
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

// addressMember names the account in what shows who holds it.
const addressMember = "address"

// renderFollowerShards emits the rows of who holds an account, if they are not in its bucket.
func (e *efpRenderer) renderFollowerShards(t *Scratch, account uint32, address string, emit Emitter) {
	holders, states := e.holdersOf(account), e.statesOf(account)
	if rowObjects(len(holders)) == 0 {
		return
	}
	isFollow := func(i int) bool { return holders[i].follows() }
	var before []int
	if t.only.wantsOneOf(shardCount(len(holders))) {
		before = t.only.cuts.of(cutTable{ofHolders: true, number: account}, len(holders), func(i int) (bool, bool) {
			return true, isFollow(i)
		}).before
	}
	renderTable(t, rowTable{
		member: addressMember, owner: address, rows: len(holders), before: before, isFollow: isFollow,
		ahead:     func(from, to int) { e.aheadOf(t, holders[from:to]) },
		size:      func(i int) int { return e.followerRowSize(holders[i]) },
		render:    func(b []byte, i int) []byte { return e.appendFollowerRow(b, holders[i], states[i]) },
		followers: func(i int) uint32 { return e.ranks.Count[rules.Followers][e.Owners[holders[i].list]] },
		address:   func(i int) site.Address { return e.Accounts[e.Owners[holders[i].list]] },
	}, emit, func(n int) site.Key { return site.FollowerShardKey(address, n) }, func() site.Key { return site.FollowerHeadKey(address) })
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

func (e *efpRenderer) followerRowSize(h holder) int {
	return followerRowBytes + len(e.Tokens[h.list]) + len(e.TagSets[e.recordOf(h).Tags].json) + int(e.profileEnds[e.Owners[h.list]].header)
}

// appendFollowerRow appends the row of who holds an account.
func (e *efpRenderer) appendFollowerRow(b []byte, h holder, s rules.State) []byte {
	account := e.Owners[h.list]
	name, avatar, header := textsOf(e.profile(account), e.profileEnds[account])
	b = append(appendFollower(b, e.Tokens[h.list], e.Accounts[account]), e.TagSets[e.recordOf(h).Tags].json...)
	b = appendState(b, s, e.addedAt(h), e.ranks.Count[rules.Followers][account])
	return appendMutualsRank(appendTexts(b, name, avatar, header), e.ranks.Shown[rules.Mutuals][account])
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

// appendTexts appends texts that are JSON strings, each after a comma.
func appendTexts(b []byte, texts ...[]byte) []byte {
	for _, text := range texts {
		b = append(append(b, ','), text...)
	}
	return b
}

// A partition sorts things into buckets by the hash of their texts.
type partition struct {
	digits  int      // hexadecimal digits of the names of buckets
	names   []string // of buckets
	offsets []uint32 // by bucket; index of its first thing; the last element is their number
	things  []uint32 // of all buckets, in each in the order in which they were given
}

func newPartition(ctx context.Context, workers, digits int, things []uint32, text func(thing uint32) string) (partition, error) {
	p := partition{digits: digits, names: site.HashPrefixes(digits)}
	bucketOf := make([]uint16, len(things))
	err := inorder.Chunks(ctx, workers, len(things), func(i int) error {
		n, err := strconv.ParseUint(site.UserBucket(text(things[i]), digits), 16, 16)
		bucketOf[i] = uint16(n)
		return err
	})
	if err != nil {
		return partition{}, err
	}
	p.offsets, p.things = group(things, bucketOf, len(p.names))
	return p, nil
}

// group groups things by the number of their group. Those of a group stay in order. offsets has the index
// of the first thing of each group; its last element is the number of things.
func group[N uint16 | uint32](things []uint32, groupOf []N, groups int) (offsets, grouped []uint32) {
	offsets = make([]uint32, groups+1)
	for _, group := range groupOf {
		offsets[int(group)+1]++
	}
	for group := range groups {
		offsets[group+1] += offsets[group]
	}
	next := slices.Clone(offsets)
	grouped = make([]uint32, len(things))
	for i, group := range groupOf {
		grouped[next[group]] = things[i]
		next[group]++
	}
	return offsets, grouped
}

func numbersBelow(n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

func (p *partition) in(bucket int) []uint32 {
	return p.things[p.offsets[bucket]:p.offsets[bucket+1]]
}

func (e *efpRenderer) fillBuckets(ctx context.Context, workers int) (err error) {
	names, lists := numbersBelow(len(e.Names)), numbersBelow(len(e.Tokens))
	inorder.Sort(workers, lists, func(a, b uint32) int { return cmp.Compare(e.Tokens[a], e.Tokens[b]) })
	userDigits, tokenDigits := e.config.BucketDigits(len(e.Accounts)+len(names)), e.config.TokenDigits(len(lists))
	e.addressBuckets, err = newPartition(ctx, workers, userDigits, e.ranks.ByAddress, func(account uint32) string { return e.Accounts[account].String() })
	if err != nil {
		return err
	}
	e.nameBuckets, err = newPartition(ctx, workers, userDigits, names, func(name uint32) string { return e.Names[name].Name })
	if err != nil {
		return err
	}
	e.listBuckets, err = newPartition(ctx, workers, tokenDigits, lists, func(list uint32) string { return e.Tokens[list] })
	return err
}

func (e *efpRenderer) renderUserBucket(bucket int, t *Scratch, emit Emitter) {
	names, accounts := e.nameBuckets.in(bucket), e.addressBuckets.in(bucket)
	size := objectBytes
	for _, n := range names {
		size += len(e.Names[n].Name) + 2*userBytes
	}
	t.holders = t.holders[:0]
	for _, account := range accounts {
		if holders := e.holdersOf(account); len(holders) <= site.PackedRows {
			t.holders = append(t.holders, holders...)
		}
	}
	e.aheadOf(t, t.holders)
	for _, account := range accounts {
		size += 2 * userBytes
		if holders := e.holdersOf(account); len(holders) <= site.PackedRows {
			for _, h := range holders {
				size += e.followerRowSize(h)
			}
		}
	}
	name := e.addressBuckets.names[bucket]
	emit(size, func(b []byte) []byte {
		b = appendBucket(b, name, "names")
		for _, n := range names {
			found := e.Names[n]
			b = rawjson.AppendString(b, found.Name)
			b = append(b, `:["`...)
			b = e.Accounts[found.Account].Append(b)
			b = append(b, `",`...)
			b = append(e.appendSizes(b, found.Account), "],"...)
		}
		b = append(withoutComma(b), `},"accounts":{`...)
		for _, account := range accounts {
			b = append(b, '"')
			b = e.Accounts[account].Append(b)
			b = append(b, `":[`...)
			b = append(e.appendSizes(b, account), ",["...)
			if holders, states := e.holdersOf(account), e.statesOf(account); len(holders) <= site.PackedRows {
				for i, h := range holders {
					b = append(e.appendFollowerRow(b, h, states[i]), ',')
				}
			}
			b = append(withoutComma(b), "]],"...)
		}
		return append(withoutComma(b), "}}"...)
	}, site.UserBucketKey(name))
}

// appendBucket appends the beginning of a bucket, up to the first entry of its first member.
func appendBucket(b []byte, name, member string) []byte {
	return fmt.Appendf(b, `{"bucket":"%s","%s":{`, name, member)
}

// appendSizes is AppendSizes of an account of the graph.
func (e *efpRenderer) appendSizes(b []byte, account uint32) []byte {
	token, held := "", uint32(0)
	if primary := e.Primary[account]; primary != None {
		token, held = e.Tokens[primary], e.held[primary]
	}
	return AppendSizes(b, token, int(held), len(e.holdersOf(account)))
}

// AppendSizes appends the primary list of an account, "" for none, how many accounts that holds, and how
// many primary lists hold the account.
func AppendSizes(b []byte, primary string, held, holders int) []byte {
	b = append(append(b, '"'), primary...)
	b = strconv.AppendInt(append(b, `",`...), int64(held), 10)
	return strconv.AppendInt(append(b, ','), int64(holders), 10)
}

func (e *efpRenderer) renderTokenBucket(bucket int, _ *Scratch, emit Emitter) {
	lists := e.listBuckets.in(bucket)
	all := &graphRecords{Graph: e.Graph, ranks: e.ranks, ends: e.profileEnds}
	size := objectBytes
	for _, list := range lists {
		size += userBytes + len(e.Tokens[list])
		if e.held[list] <= site.PackedRows {
			all.all = e.RecordsOf(list)
			all.ahead(0, all.Len())
			for i := range all.Len() {
				if all.state(i) != 0 {
					size += recordRowSize(all, i)
				}
			}
		}
	}
	name := e.listBuckets.names[bucket]
	emit(size, func(b []byte) []byte {
		b = appendBucket(b, name, "lists")
		for _, list := range lists {
			account := e.Owners[list]
			all.all = e.RecordsOf(list)
			b = appendListEntry(b, e.Tokens[list], e.Accounts[account], e.isPrimary(list), int(e.held[list]), len(e.holdersOf(account)), all)
			b = append(b, ',')
		}
		return append(withoutComma(b), "}}"...)
	}, site.TokenBucketKey(name))
}

// appendListEntry appends the entry of a list in its bucket. It holds so many accounts, and so many primary
// lists hold its own.
func appendListEntry(b []byte, token string, account site.Address, primary bool, held, holders int, all records) []byte {
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
			if all.state(i) != 0 {
				rows[n] = i
				n++
			}
		}
		var large [site.PackedRows]uint32
		followers := newRounding(large[:], n, func(row int) uint32 { return all.followers(rows[row]) })
		for _, i := range rows[:n] {
			b = append(appendRecordRow(b, all, i, &followers), ',')
		}
	}
	return append(withoutComma(b), "]]"...)
}

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

// sortMeasures are the measures of site.RankedSorts.
var sortMeasures = map[string]rules.Measure{"followers": rules.Followers, "following": rules.Following, "top8": rules.Top8, "blocks": rules.Blocks}

// sorted sorts accounts by the rank of a measure, unranked ones last. They come in the order of
// addresses.
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

func (e *efpRenderer) renderRankedShard(n int, _ *Scratch, emit Emitter) {
	accounts := window(e.boards.accounts, n, site.SearchShardSize)
	size := objectBytes
	for _, account := range accounts {
		size += rankedRowBytes + int(e.profileEnds[account].header)
	}
	emit(size, func(b []byte) []byte {
		b = appendShardHead(append(b, '{'), len(e.boards.accounts), n, e.boards.shards(), site.SearchShardSize)
		for _, account := range accounts {
			a := e.shown(account)
			b = append(AppendRankedRow(b, &a), ',')
		}
		return append(withoutComma(b), "]}"...)
	}, site.RankedShardKey(n))
}

// renderRankedOrder emits a shard of the places of ranked accounts in another order.
func (e *efpRenderer) renderRankedOrder(unit int, _ *Scratch, emit Emitter) {
	shards := e.boards.orderShards()
	sort, n := unit/shards, unit%shards
	places := window(e.boards.orders[sort], n, site.RankedOrderSize)
	emit(objectBytes+len("1000000,")*len(places), func(b []byte) []byte {
		b = appendShardHead(append(b, '{'), len(e.boards.accounts), n, shards, site.RankedOrderSize)
		return append(appendPlaces(b, places), "]}"...)
	}, site.RankedOrderKey(site.RankedSorts()[sort], n))
}

// detailRanks are the ranks in the order of details.
var detailRanks = []namedMeasure{{"mutuals", rules.Mutuals}, {"followers", rules.Followers}, {"following", rules.Following}, {"top8", rules.Top8}, {"blocks", rules.Blocks}}

func (e *efpRenderer) renderRecommendedShard(n int, _ *Scratch, emit Emitter) {
	rows := window(e.Recommended, n, site.SearchShardSize)
	size := objectBytes
	for _, r := range rows {
		size += rankedRowBytes + len(r.Class) + 2*tokenBytes
		if account, ok := e.Numbers.Find(r.Address); ok {
			size += len(e.profile(account).ENS)
		}
	}
	emit(size, func(b []byte) []byte {
		b = appendShardHead(append(b, '{'), len(e.Recommended), n, shardCount(len(e.Recommended)), site.SearchShardSize)
		for _, r := range rows {
			var known *Account
			if account, ok := e.Numbers.Find(r.Address); ok {
				a := e.shown(account)
				known = &a
			}
			b = append(AppendRecommended(b, r.Address, r.Class, known), ',')
		}
		return append(withoutComma(b), "]}"...)
	}, site.RecommendedShardKey(n))
}

func withoutComma(b []byte) []byte { return bytes.TrimSuffix(b, []byte(",")) }
