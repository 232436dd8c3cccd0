package generator

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
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

// shardCount is the number of shards of a table with that many rows. An empty one has a shard too.
func shardCount(rows int) int { return max(1, (rows+site.SearchShardSize-1)/site.SearchShardSize) }

// rowObjects is the number of objects that hold the rows of a list or an account, beside its bucket:
// shards, and a head if there are several.
func rowObjects(rows int) int {
	switch {
	case rows <= site.PackedRows:
		return 0
	case rows <= site.SearchShardSize:
		return 1
	}
	return shardCount(rows) + 1
}

// window returns the n-th part of a table that is cut into parts of a size.
func window[T any](all []T, n, size int) []T {
	return all[min(n*size, len(all)):min((n+1)*size, len(all))]
}

// appendShardHead appends the beginning of a shard, up to its first entry, after the member that says
// whose it is.
func appendShardHead(b []byte, total, shard, shards, size int) []byte {
	b = append(b, `"total":`...)
	b = strconv.AppendInt(b, int64(total), 10)
	b = append(b, `,"shard":`...)
	b = strconv.AppendInt(b, int64(shard), 10)
	b = append(b, `,"shards":`...)
	b = strconv.AppendInt(b, int64(shards), 10)
	b = append(b, `,"shard_size":`...)
	b = strconv.AppendInt(b, int64(size), 10)
	return append(b, `,"entries":[`...)
}

// appendOwner appends the beginning of an object with the rows of a list or an account.
func appendOwner(b []byte, member, owner string) []byte {
	b = append(b, `{"`...)
	b = append(b, member...)
	b = append(b, `":"`...)
	b = append(b, owner...)
	return append(b, `",`...)
}

// A rowTable is what a list holds, or who holds an account. If before is set, its functions are called
// for the rows of the selected shard only.
type rowTable struct {
	member, owner string // the beginning of its shards
	rows          int
	before        []int           // as followsBefore returns it; nil if it is not known
	size          func(i int) int // estimated bytes of a row
	render        func(b []byte, i int) []byte
	about         func(i int) (account uint32, follow bool)
}

// followsBefore returns how many rows before each shard, and of the whole table, are follows: a page of
// follows must find its shard.
func (t *rowTable) followsBefore() []int {
	before := make([]int, 1, shardCount(t.rows)+1)
	follows := 0
	for i := range t.rows {
		if _, follow := t.about(i); follow {
			follows++
		}
		if i+1 == t.rows || (i+1)%site.SearchShardSize == 0 {
			before = append(before, follows)
		}
	}
	return before
}

// renderTable emits the shards and the head of a table.
func (e *efpRenderer) renderTable(t *scratch, table rowTable, emit emitter, shardKey func(n int) site.Key, headKey func() site.Key) {
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
		size := objectBytes
		for i := from; i < to; i++ {
			size += table.size(i)
		}
		emit(size, func(b []byte) []byte {
			b = appendOwner(b, table.member, table.owner)
			b = append(b, `"follows":`...)
			b = strconv.AppendInt(b, int64(before[len(before)-1]), 10)
			b = append(b, `,"before":`...)
			b = strconv.AppendInt(b, int64(before[n]), 10)
			b = appendShardHead(append(b, ','), table.rows, n, shardCount(table.rows), site.SearchShardSize)
			for i := from; i < to; i++ {
				b = append(table.render(b, i), ',')
			}
			return append(withoutComma(b), "]}"...)
		}, shardKey(n))
	}
	if objects < 2 || !t.only.wantsHead() {
		return
	}
	places := e.headPlaces(t, table)
	size := objectBytes
	for _, place := range places {
		size += table.size(int(place)) + len("1000000,")
	}
	emit(size, func(b []byte) []byte {
		b = appendOwner(b, table.member, table.owner)
		b = append(b, `"total":`...)
		b = strconv.AppendInt(b, int64(table.rows), 10)
		b = append(b, `,"places":[`...)
		for _, place := range places {
			b = append(strconv.AppendUint(b, uint64(place), 10), ',')
		}
		b = append(withoutComma(b), `],"entries":[`...)
		for _, place := range places {
			b = append(table.render(b, int(place)), ',')
		}
		return append(withoutComma(b), "]}"...)
	}, headKey())
}

// headPlaces returns the places of the rows of a head: the first in the order of the table, in its
// reverse, and by followers, each of all rows and of follows only.
func (e *efpRenderer) headPlaces(t *scratch, table rowTable) []uint32 {
	all := make([]uint32, table.rows)
	for i := range all {
		all[i] = uint32(i)
	}
	t.places = t.places[:0]
	add := func() {
		t.places = append(t.places, all[:site.HeadRows]...)
		follows := 0
		for _, i := range all {
			if _, follow := table.about(int(i)); follow && follows < site.HeadRows {
				t.places = append(t.places, i)
				follows++
			}
		}
	}
	add()
	slices.Reverse(all)
	add()
	count := e.ranks.count[followers]
	slices.SortFunc(all, func(i, j uint32) int {
		a, _ := table.about(int(i))
		b, _ := table.about(int(j))
		return cmp.Or(cmp.Compare(count[b], count[a]), bytesCompare(e.accounts[a], e.accounts[b]))
	})
	add()
	slices.Sort(t.places)
	t.places = slices.Compact(t.places)
	return t.places
}

// heldBy returns the records of what a list holds, in its order.
func (e *efpRenderer) heldBy(t *scratch, list uint32) []record {
	return e.heldAmong(t, e.recordsOf(list))
}

// heldAmong returns those of a list's records that it holds by.
func (e *efpRenderer) heldAmong(t *scratch, all recordList) []record {
	t.held = t.held[:0]
	for _, r := range all.all() {
		if e.holds(r) {
			t.held = append(t.held, r)
		}
	}
	return t.held
}

// renderListShards emits the rows of what a list holds, if they are not in its bucket.
func (e *efpRenderer) renderListShards(t *scratch, list uint32, emit emitter) {
	if rowObjects(int(e.held[list])) == 0 {
		return
	}
	rows, token := int(e.held[list]), e.tokens[list]
	all, first, before := e.recordsOf(list), 0, []int(nil)
	if t.only.wantsOneOf(shardCount(rows)) {
		c := t.only.cuts.of(cutTable{number: list}, all.len(), func(i int) (isRow, isFollow bool) {
			r := all.at(i)
			return e.holds(r), e.isFollow(r)
		})
		all = all.part(uint64(c.starts[t.only.shard]), uint64(c.starts[t.only.shard+1]))
		first, before = t.only.shard*site.SearchShardSize, c.before
	}
	held := e.heldAmong(t, all)
	e.renderTable(t, rowTable{
		member: "list", owner: token, rows: rows, before: before,
		size:   func(i int) int { return e.recordRowSize(held[i-first]) },
		render: func(b []byte, i int) []byte { return e.appendRecordRow(b, held[i-first]) },
		about:  func(i int) (uint32, bool) { return held[i-first].data, e.isFollow(held[i-first]) },
	}, emit, func(n int) site.Key { return site.SearchShardKey(token, n) }, func() site.Key { return site.ListHeadKey(token) })
}

// renderFollowerShards emits the rows of who holds an account, if they are not in its bucket.
func (e *efpRenderer) renderFollowerShards(t *scratch, u user, emit emitter) {
	holders, states := e.holdersOf(u.account), e.statesOf(u.account)
	if rowObjects(len(holders)) == 0 {
		return
	}
	about := func(i int) (account uint32, isFollow bool) {
		return e.owners[holders[i].list], e.isFollow(e.recordOf(holders[i]))
	}
	var before []int
	if t.only.wantsOneOf(shardCount(len(holders))) {
		before = t.only.cuts.of(cutTable{ofHolders: true, number: u.account}, len(holders), func(i int) (isRow, isFollow bool) {
			_, isFollow = about(i)
			return true, isFollow
		}).before
	}
	e.renderTable(t, rowTable{
		member: "address", owner: u.address, rows: len(holders), before: before, about: about,
		size:   func(i int) int { return e.followerRowSize(holders[i]) },
		render: func(b []byte, i int) []byte { return e.appendFollowerRow(b, holders[i], states[i]) },
	}, emit, func(n int) site.Key { return site.FollowerShardKey(u.address, n) }, func() site.Key { return site.FollowerHeadKey(u.address) })
}

func (e *efpRenderer) recordRowSize(r record) int {
	return recordRowBytes + len(e.tagSets[r.tags].json) + int(e.profile(r.data).searchLen)
}

// appendRecordRow appends the row of what a list holds.
func (e *efpRenderer) appendRecordRow(b []byte, r record) []byte {
	name, avatar, _ := e.shownTexts(r.data)
	b = append(b, `["`...)
	b = e.accounts[r.data].Append(b)
	b = append(b, `",`...)
	b = append(b, e.tagSets[r.tags].json...)
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(e.ranks.count[followers][r.data]), 10)
	return append(appendTexts(b, name, avatar), ']')
}

func (e *efpRenderer) followerRowSize(h holder) int {
	return followerRowBytes + len(e.tokens[h.list]) + len(e.tagSets[e.recordOf(h).tags].json) + int(e.profileEnds[e.owners[h.list]].header)
}

// appendFollowerRow appends the row of who holds an account.
func (e *efpRenderer) appendFollowerRow(b []byte, h holder, s site.State) []byte {
	account := e.owners[h.list]
	name, avatar, header := e.shownTexts(account)
	b = append(b, `["`...)
	b = append(b, e.tokens[h.list]...)
	b = append(b, `","`...)
	b = e.accounts[account].Append(b)
	b = append(b, `",`...)
	b = append(b, e.tagSets[e.recordOf(h).tags].json...)
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(s), 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, e.addedAt(h), 10)
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(e.ranks.count[followers][account]), 10)
	b = appendTexts(b, name, avatar, header)
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(e.ranks.rank[mutuals][account]), 10)
	return append(b, ']')
}

// appendTexts appends texts that are JSON strings, each after a comma.
func appendTexts(b []byte, texts ...[]byte) []byte {
	for _, text := range texts {
		b = append(append(b, ','), text...)
	}
	return b
}

// appendNumbers appends numbers of an account as an array, after a comma.
func appendNumbers(b []byte, account uint32, all []namedMeasure, numbers func(measure) []uint32) []byte {
	b = append(b, ",["...)
	for i, m := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(numbers(m.measure)[account]), 10)
	}
	return append(b, ']')
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
	err := inChunks(ctx, workers, len(things), func(i int) (err error) {
		bucketOf[i], err = bucketNumber(site.UserBucket(text(things[i]), digits))
		return err
	})
	if err != nil {
		return partition{}, err
	}
	p.offsets, p.things = groupByBucket(bucketOf, len(p.names))
	for i, at := range p.things {
		p.things[i] = things[at]
	}
	return p, nil
}

// bucketNumber returns the place of a bucket among all buckets with names of as many digits.
func bucketNumber(name string) (uint16, error) {
	n, err := strconv.ParseUint(name, 16, 16)
	return uint16(n), err
}

// groupByBucket groups the indexes of a slice by the buckets in it. Those of a bucket stay in order.
func groupByBucket(bucketOf []uint16, buckets int) (offsets, order []uint32) {
	offsets = make([]uint32, buckets+1)
	for _, bucket := range bucketOf {
		offsets[int(bucket)+1]++
	}
	for bucket := range buckets {
		offsets[bucket+1] += offsets[bucket]
	}
	next := slices.Clone(offsets)
	order = make([]uint32, len(bucketOf))
	for i, bucket := range bucketOf {
		order[next[bucket]] = uint32(i)
		next[bucket]++
	}
	return offsets, order
}

// in returns the things in a bucket.
func (p *partition) in(bucket int) []uint32 {
	return p.things[p.offsets[bucket]:p.offsets[bucket+1]]
}

// fillBuckets sorts addresses, names and lists into buckets.
func (e *efpRenderer) fillBuckets(ctx context.Context, workers int) (err error) {
	names := make([]uint32, len(e.names))
	for i := range names {
		names[i] = uint32(i)
	}
	lists := make([]uint32, len(e.tokens))
	for list := range lists {
		lists[list] = uint32(list)
	}
	slices.SortFunc(lists, func(a, b uint32) int { return cmp.Compare(e.tokens[a], e.tokens[b]) })
	userDigits, tokenDigits := e.config.BucketDigits(len(e.accounts)+len(names)), e.config.TokenDigits(len(lists))
	e.addressBuckets, err = newPartition(ctx, workers, userDigits, e.ranks.byAddress, func(account uint32) string { return e.accounts[account].String() })
	if err != nil {
		return err
	}
	e.nameBuckets, err = newPartition(ctx, workers, userDigits, names, func(name uint32) string { return e.names[name].name })
	if err != nil {
		return err
	}
	e.listBuckets, err = newPartition(ctx, workers, tokenDigits, lists, func(list uint32) string { return e.tokens[list] })
	return err
}

// renderUserBucket emits the names and the addresses of a bucket.
func (e *efpRenderer) renderUserBucket(bucket int, _ *scratch, emit emitter) {
	names, accounts := e.nameBuckets.in(bucket), e.addressBuckets.in(bucket)
	size := objectBytes
	for _, n := range names {
		size += len(e.names[n].name) + 2*userBytes
	}
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
		b = append(b, `{"bucket":"`...)
		b = append(b, name...)
		b = append(b, `","names":{`...)
		for _, n := range names {
			found := e.names[n]
			b = site.AppendString(b, found.name)
			b = append(b, `:["`...)
			b = e.accounts[found.account].Append(b)
			b = append(b, `",`...)
			b = append(e.appendSizes(b, found.account), "],"...)
		}
		b = append(withoutComma(b), `},"accounts":{`...)
		for _, account := range accounts {
			b = append(b, '"')
			b = e.accounts[account].Append(b)
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

// appendSizes appends the primary list of an account, how many accounts that holds, and how many
// primary lists hold the account.
func (e *efpRenderer) appendSizes(b []byte, account uint32) []byte {
	held := uint32(0)
	b = append(b, '"')
	if primary := e.primary[account]; primary != none {
		b = append(b, e.tokens[primary]...)
		held = e.held[primary]
	}
	b = append(b, `",`...)
	b = strconv.AppendUint(b, uint64(held), 10)
	b = append(b, ',')
	return strconv.AppendInt(b, int64(len(e.holdersOf(account))), 10)
}

// renderTokenBucket emits the lists of a bucket.
func (e *efpRenderer) renderTokenBucket(bucket int, t *scratch, emit emitter) {
	lists := e.listBuckets.in(bucket)
	size := objectBytes
	for _, list := range lists {
		size += userBytes + len(e.tokens[list])
		if e.held[list] <= site.PackedRows {
			for _, r := range e.heldBy(t, list) {
				size += e.recordRowSize(r)
			}
		}
	}
	name := e.listBuckets.names[bucket]
	emit(size, func(b []byte) []byte {
		b = append(b, `{"bucket":"`...)
		b = append(b, name...)
		b = append(b, `","lists":{`...)
		for _, list := range lists {
			account := e.owners[list]
			b = append(b, '"')
			b = append(b, e.tokens[list]...)
			b = append(b, `":["`...)
			b = e.accounts[account].Append(b)
			b = append(b, `",`...)
			b = strconv.AppendBool(b, e.isPrimary(list))
			b = append(b, ',')
			b = strconv.AppendUint(b, uint64(e.held[list]), 10)
			b = append(b, ',')
			b = strconv.AppendInt(b, int64(len(e.holdersOf(account))), 10)
			b = append(b, ",["...)
			if e.held[list] <= site.PackedRows {
				for _, r := range e.heldBy(t, list) {
					b = append(e.appendRecordRow(b, r), ',')
				}
			}
			b = append(withoutComma(b), "]],"...)
		}
		return append(withoutComma(b), "}}"...)
	}, site.TokenBucketKey(name))
}

// rankedBoards are the accounts on the board of ranked accounts.
type rankedBoards struct {
	accounts []uint32   // by mutuals rank, then by address
	orders   [][]uint32 // by sort of site.RankedSorts; indexes into accounts
}

func newRankedBoards(r *ranks) rankedBoards {
	onBoard := slices.DeleteFunc(slices.Clone(r.byAddress), func(account uint32) bool {
		for m := range measure(measures) {
			if r.count[m][account] != 0 {
				return false
			}
		}
		return true
	})
	boards := rankedBoards{accounts: r.sorted(mutuals, onBoard)}
	places := make([]uint32, len(r.byAddress))
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
var sortMeasures = map[string]measure{"followers": followers, "following": following, "top8": top8, "blocks": blocks}

// sorted sorts accounts by the rank of a measure, unranked ones last. They come in the order of
// addresses.
func (r *ranks) sorted(m measure, byAddress []uint32) []uint32 {
	order, rank := make([]uint32, len(byAddress)), r.rank[m]
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

func (r *rankedBoards) orderShards() int {
	return max(1, (len(r.accounts)+site.RankedOrderSize-1)/site.RankedOrderSize)
}

// renderRankedShard emits a shard of the ranked accounts.
func (e *efpRenderer) renderRankedShard(n int, _ *scratch, emit emitter) {
	accounts := window(e.boards.accounts, n, site.SearchShardSize)
	size := objectBytes
	for _, account := range accounts {
		size += rankedRowBytes + int(e.profileEnds[account].header)
	}
	emit(size, func(b []byte) []byte {
		b = appendShardHead(append(b, '{'), len(e.boards.accounts), n, e.boards.shards(), site.SearchShardSize)
		for _, account := range accounts {
			name, avatar, header := e.shownTexts(account)
			b = append(b, `["`...)
			b = e.accounts[account].Append(b)
			b = append(b, '"')
			b = appendTexts(b, name, avatar, header)
			b = appendNumbers(b, account, rankedRanks, func(m measure) []uint32 { return e.ranks.rank[m] })
			b = appendNumbers(b, account, rankedCounts, func(m measure) []uint32 { return e.ranks.count[m] })
			b = append(b, "],"...)
		}
		return append(withoutComma(b), "]}"...)
	}, site.RankedShardKey(n))
}

// renderRankedOrder emits a shard of the places of ranked accounts in another order.
func (e *efpRenderer) renderRankedOrder(unit int, _ *scratch, emit emitter) {
	shards := e.boards.orderShards()
	sort, n := unit/shards, unit%shards
	places := window(e.boards.orders[sort], n, site.RankedOrderSize)
	emit(objectBytes+len("1000000,")*len(places), func(b []byte) []byte {
		b = appendShardHead(append(b, '{'), len(e.boards.accounts), n, shards, site.RankedOrderSize)
		for _, place := range places {
			b = append(strconv.AppendUint(b, uint64(place), 10), ',')
		}
		return append(withoutComma(b), "]}"...)
	}, site.RankedOrderKey(site.RankedSorts()[sort], n))
}

// detailRanks are the ranks in the order of details.
var detailRanks = []namedMeasure{{"mutuals", mutuals}, {"followers", followers}, {"following", following}, {"top8", top8}, {"blocks", blocks}}

// renderRecommendedShard emits a shard of the recommended accounts.
func (e *efpRenderer) renderRecommendedShard(n int, _ *scratch, emit emitter) {
	rows := window(e.recommended, n, site.SearchShardSize)
	size := objectBytes
	for _, r := range rows {
		size += rankedRowBytes + len(r.Class) + 2*tokenBytes
		if account, ok := e.numbers.find(r.Address); ok {
			size += len(e.profile(account).ens)
		}
	}
	emit(size, func(b []byte) []byte {
		b = appendShardHead(append(b, '{'), len(e.recommended), n, shardCount(len(e.recommended)), site.SearchShardSize)
		for _, r := range rows {
			b = append(e.appendRecommended(b, r), ',')
		}
		return append(withoutComma(b), "]}"...)
	}, site.RecommendedShardKey(n))
}

// appendRecommended appends the row of a recommended account.
func (e *efpRenderer) appendRecommended(b []byte, r snapshot.Recommended) []byte {
	b = append(b, `["`...)
	b = r.Address.Append(b)
	b = append(b, '"')
	account, known := e.numbers.find(r.Address)
	if !known {
		b = append(b, `,"","",""`...)
	} else {
		name, avatar, header := e.shownTexts(account)
		b = appendTexts(b, name, avatar, header)
	}
	b = append(b, ',')
	if r.Class == "" {
		b = append(b, "null"...)
	} else {
		b = site.AppendString(b, r.Class)
	}
	if !known {
		return append(b, ",{},0,0,[0,0,0,0,0]]"...)
	}
	b = appendTexts(b, recordsText(e.profile(account)))
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(e.ranks.count[followers][account]), 10)
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(e.ranks.count[following][account]), 10)
	b = appendNumbers(b, account, detailRanks, func(m measure) []uint32 { return e.ranks.rank[m] })
	return append(b, ']')
}

func withoutComma(b []byte) []byte { return bytes.TrimSuffix(b, []byte(",")) }
