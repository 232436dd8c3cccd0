package answer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// A table is what a list holds, or who holds an account. Its rows are in a bucket if they are few, else in
// shards, of which the most popular rows are in a head too.
type table struct {
	owner    string // of its shards
	total    int
	bucket   site.Key
	packed   func(bucket []byte) (rows []byte, total int, err error)
	shardKey func(n int) site.Key
	headKey  site.Key
	parse    func(row []byte) (tableRow, error)
	newest   bool // the first row is the latest, not the earliest
}

// A tableRow is what a selection needs of a row.
type tableRow struct {
	address, tags, name []byte
	followers           int
	state               rules.State // of a follower: what the primary list of the account says of it
}

// heldTable is what a list holds.
func (c *computation) heldTable(s subject) table {
	return table{
		owner: s.list, total: s.held, bucket: c.tokenBucket(s.list),
		packed: func(bucket []byte) ([]byte, int, error) {
			node, _, err := scan.FindListNode(bucket, s.list)
			if node.Account != s.address || node.Primary != s.primary {
				return nil, -1, err
			}
			return node.Rows, node.Held, err
		},
		shardKey: func(n int) site.Key { return site.SearchShardKey(s.list, n) },
		headKey:  site.ListHeadKey(s.list),
		parse: func(row []byte) (tableRow, error) {
			r, err := scan.ParseHeldRow(row)
			return tableRow{address: r.Address, tags: r.Tags, name: r.Name, followers: r.Followers}, err
		},
	}
}

// followerTable is who holds an account.
func (c *computation) followerTable(s subject) table {
	return table{
		owner: s.address, total: s.followers, bucket: site.UserBucketKey(site.UserBucket(s.address, c.root.BucketDigits)), newest: true,
		packed: func(bucket []byte) ([]byte, int, error) {
			node, _, err := scan.FindUserNode(bucket, s.address)
			if s.primary && node.List != s.list {
				return nil, -1, err
			}
			return node.Rows, node.Followers, err
		},
		shardKey: func(n int) site.Key { return site.FollowerShardKey(s.address, n) },
		headKey:  site.FollowerHeadKey(s.address),
		parse: func(row []byte) (tableRow, error) {
			r, err := scan.ParseFollowerRow(row)
			return tableRow{r.Address, r.Tags, r.Name, r.Followers, r.State}, err
		},
	}
}

// A selection is the rows of a table that a request asks for.
type selection struct {
	all           bool        // not only follows
	shown         rules.State // which blocks and mutes do not keep an entry out
	mutualOf      string      // only those who follow this account and are followed back; "" for all
	objects       int         // more objects that the page needs, about
	tags          scan.TagFilter
	match         *scan.Matcher // nil for all
	byFollowers   bool          // the order: by followers,
	backwards     bool          // or that of the table or its reverse
	offset, limit int
}

// Values of site.Ask.Sort for pages. Any other means latest.
const (
	sortEarliest  = "earliest"
	sortFollowers = "followers"
)

// selection is the page of a table that the request asks for.
func (c *computation) selection(t table, all bool) selection {
	return selection{
		all: all, shown: c.shown(), tags: scan.NewTagFilter(c.ask.Tags), byFollowers: c.ask.Sort == sortFollowers,
		backwards: (c.ask.Sort == sortEarliest) == t.newest, offset: c.ask.Offset, limit: c.ask.Limit,
	}
}

// shown is the blocks and mutes that the request includes.
func (c *computation) shown() (s rules.State) {
	if c.ask.Blocked {
		s |= rules.Block
	}
	if c.ask.Muted {
		s |= rules.Mute
	}
	return s
}

// wants reports whether the request asks for a row, on this page or another.
func (s *selection) wants(r tableRow) bool {
	return (s.all || scan.StateOf(r.tags)&^s.shown&^rules.Follow == 0) && s.tags.Match(r.tags) && (s.match == nil || s.match.MatchText(r.address, r.name)) &&
		(s.mutualOf == "" || isMutual(s.mutualOf, r.address, r.tags, r.state))
}

// isFiltered reports whether the selection has other rows than all, or all follows.
func (s *selection) isFiltered() bool {
	return len(s.tags) > 0 || s.match != nil || s.mutualOf != "" || !s.all && s.shown != 0
}

// A sortKey is what puts a row in the order by followers, and which row it is.
type sortKey struct {
	address   site.Address
	followers uint32
	entry     uint32 // twice the index in the table, plus one for a follow
}

func (k sortKey) index() int { return int(k.entry >> 1) }

const sortKeyBytes = 28

// compare orders keys by followers.
func (k sortKey) compare(other sortKey) int {
	return cmp.Or(cmp.Compare(other.followers, k.followers), bytes.Compare(k.address[:], other.address[:]))
}

// Rows are copies of rows.
type rows struct {
	text  []byte
	spans []span
	ended bool // another row would be too much for a page
}

type span struct{ from, to int }

func (r *rows) len() int { return len(r.spans) }

// isFull reports whether a page with that limit takes no more rows.
func (r *rows) isFull(limit int) bool { return r.ended || r.len() == limit }

func (r *rows) at(i int) []byte { return r.text[r.spans[i].from:r.spans[i].to] }

// mostPageBytes is the size of a page from which on it ends, whatever its limit is: it would take memory
// in proportion to the texts of foreign profiles. It has one entry at least.
const mostPageBytes = 8 << 20

// pageEnds reports whether that many bytes more are too much for a page.
func (b *buffer) pageEnds(more int) bool { return len(b.body)+more > mostPageBytes }

// copyPageRow is copyRow unless the page has to end.
func (c *computation) copyPageRow(to *rows, row []byte) error {
	if to.ended = to.ended || to.len() > 0 && len(to.text)+len(row) > mostPageBytes; to.ended {
		return nil
	}
	return c.copyRow(to, row)
}

// copyRow appends a copy of a row. Its memory counts against the buffer.
func (c *computation) copyRow(to *rows, row []byte) error {
	if more := len(to.text) + len(row) - cap(to.text); more > 0 {
		more = max(more, cap(to.text), bufferBytes)
		if err := c.take(more); err != nil {
			return err
		}
		to.text = append(make([]byte, 0, cap(to.text)+more), to.text...)
	}
	to.spans = append(to.spans, span{len(to.text), len(to.text) + len(row)})
	to.text = append(to.text, row...)
	return nil
}

func (c *computation) selectRows(t table, s selection) (rows, error) {
	if t.total <= s.offset {
		return rows{}, nil
	}
	if err := c.expect(c.ctx, c.pageBytes(t, s), c.pageObjects(t, s)); err != nil {
		return rows{}, err
	}
	switch {
	case t.total <= site.SearchShardSize:
		return c.fromObject(t, s, t.rowsKey(0), func(body []byte) ([][]byte, error) {
			_, all, err := t.shardRows(0, body)
			return slices.Collect(all), err
		})
	case !s.isFiltered() && s.offset+s.limit <= site.HeadRows:
		return c.fromObject(t, s, t.headKey, func(body []byte) ([][]byte, error) {
			head, err := scan.ParseShard(body)
			if err == nil && (head.Owner != t.owner || head.Total != t.total) {
				err = fetch.ErrMixed
			}
			return slices.Collect(head.Rows()), err
		})
	case s.byFollowers:
		return c.byFollowers(t, s)
	}
	return c.inOrder(t, s)
}

// What a row of a page takes, about: its copy, its entry in a body that doubles, and with a profile.
const (
	pageRowBytes    = 512
	pageRowENSBytes = 1 << 10
)

func (c *computation) pageBytes(t table, s selection) int {
	bytes := min(s.limit, t.total-s.offset) * pageRowBytes
	if c.ask.ENS {
		bytes *= pageRowENSBytes / pageRowBytes
	}
	if s.byFollowers && t.total <= site.SearchShardSize { // keys are made for all rows
		bytes += 2 * t.total * sortKeyBytes
	}
	return bytes
}

// pageObjects is about how many objects a page is made of.
func (c *computation) pageObjects(t table, s selection) (objects int) {
	if c.ask.ENS {
		objects = min(s.limit, t.total-s.offset)
	}
	objects += s.objects
	if s.byFollowers || s.isFiltered() {
		objects += t.shardCount() * shardObjects
	}
	return objects
}

// parseShard parses shard n of a table with that many rows, -1 if it is not known how many. size is the
// number of rows of a full shard: the indexes of rows depend on it.
func parseShard(body []byte, owner string, total, n, size int) (scan.Shard, error) {
	shard, err := scan.ParseShard(body)
	switch {
	case err != nil:
	case shard.Size != size:
		err = fmt.Errorf("shard of %d rows: %w", shard.Size, site.ErrMalformed)
	case shard.Owner != owner || shard.Total != total && total >= 0 || shard.Shard != n:
		err = fetch.ErrMixed
	}
	return shard, err
}

// fromObject selects rows of an object that has all that can be asked for, in the order of the table.
func (c *computation) fromObject(t table, s selection, key site.Key, list func(body []byte) ([][]byte, error)) (selected rows, err error) {
	return selected, c.useKnown(key, func(body []byte) error {
		all, err := list(body)
		if err != nil {
			return err
		}
		if !s.byFollowers {
			if s.backwards {
				slices.Reverse(all)
			}
			return c.takeRows(t, &s, all, &selected)
		}
		var order []sortKey
		for i, row := range all {
			r, err := t.parse(row)
			if err == nil && s.wants(r) {
				err = c.appendSortKey(&order, r, i)
			}
			if err != nil {
				return err
			}
		}
		slices.SortFunc(order, sortKey.compare)
		for _, p := range window(order, s.offset, s.limit) {
			if err := c.copyPageRow(&selected, all[p.index()]); err != nil {
				return err
			}
		}
		return nil
	})
}

func window[T any](all []T, offset, limit int) []T {
	all = all[min(offset, len(all)):]
	return all[:min(limit, len(all))]
}

// shardCount is the number of shards that hold rows of a table.
func (t *table) shardCount() int { return (t.total + site.SearchShardSize - 1) / site.SearchShardSize }

// inOrder selects rows of shards in the order of the table or its reverse. It reads the shards that hold
// them, and all before if tags or a term leave rows out.
func (c *computation) inOrder(t table, s selection) (selected rows, err error) {
	n, end, step := 0, t.shardCount(), 1
	if s.backwards {
		n, end, step = end-1, -1, -1
	}
	if !s.isFiltered() {
		// No row is further from the start than its offset, and those of all rows are as far.
		n = s.offset / site.SearchShardSize
		if s.backwards {
			n = (t.total - 1 - s.offset) / site.SearchShardSize
		}
	}
	first := n
	for body, err := range c.shards(t, first, end, step, s.isFiltered()) {
		if err != nil {
			return rows{}, err
		}
		shard, err := parseShard(body, t.owner, t.total, n, site.SearchShardSize)
		if err != nil {
			return rows{}, err
		}
		all := slices.Collect(shard.Rows())
		if n == first && !s.isFiltered() {
			passed, err := s.passed(t, shard, all)
			if err != nil || passed > s.offset {
				return rows{}, cmp.Or(err, site.ErrMalformed)
			}
			s.offset -= passed
		}
		if s.backwards {
			slices.Reverse(all)
		}
		if err := c.m.scan(c.ctx, len(body), func() error { return c.takeRows(t, &s, all, &selected) }); err != nil {
			return rows{}, err
		}
		if selected.isFull(s.limit) {
			break
		}
		n += step
	}
	return selected, nil
}

// shards yields the shards of a table from one to the end, whose bodies are valid until the next. With many,
// it reads ahead once the first did not suffice: nobody knows how many the page needs.
func (c *computation) shards(t table, first, end, step int, many bool) iter.Seq2[[]byte, error] {
	count := (end - first) * step
	key := func(i int) site.Key { return t.shardKey(first + i*step) }
	return func(yield func([]byte, error) bool) {
		take := func(o *cache.Object, err error) bool {
			if err != nil {
				return yield(nil, fetch.MixedIfAbsent(err))
			}
			defer o.Release()
			return yield(o.Body, nil)
		}
		alone := count
		if many {
			alone = min(1, count)
		}
		for i := range alone {
			if !take(c.read.get(c.ctx, key(i))) {
				return
			}
		}
		for o, err := range c.m.readAhead(c.ctx, c.read, key, alone, count, shardBytes) {
			if !take(o, err) {
				return
			}
		}
	}
}

// shardBytes is about the size of a shard.
const shardBytes = 200 * site.SearchShardSize

// passed is the number of rows that an unfiltered selection wants from the shards before this one, in its
// direction.
func (s *selection) passed(t table, shard scan.Shard, all [][]byte) (int, error) {
	switch {
	case s.all && s.backwards:
		return t.total - shard.First() - len(all), nil
	case s.all:
		return shard.First(), nil
	case !s.backwards:
		return shard.Before, nil
	}
	passed := shard.Follows - shard.Before
	for _, row := range all {
		r, err := t.parse(row)
		if err != nil {
			return 0, err
		}
		if s.wants(r) {
			passed--
		}
	}
	return passed, nil
}

// takeRows copies rows until the selection is full. It counts the offset down.
func (c *computation) takeRows(t table, s *selection, all [][]byte, to *rows) error {
	for _, row := range all {
		r, err := t.parse(row)
		switch {
		case err != nil:
			return err
		case !s.wants(r):
		case s.offset > 0:
			s.offset--
		default:
			if err := c.copyPageRow(to, row); err != nil || to.isFull(s.limit) {
				return err
			}
		}
	}
	return nil
}

// rowsKey is the key of what has the rows of shard n of a table: the shard, or the bucket if that has all rows.
func (t *table) rowsKey(n int) site.Key {
	if t.isPacked() {
		return t.bucket
	}
	return t.shardKey(n)
}

func (t *table) isPacked() bool { return t.packed != nil && t.total <= site.PackedRows }

// shardRows returns the rows of the object at rowsKey(n), and the index of the first one.
func (t *table) shardRows(n int, body []byte) (first int, all iter.Seq[[]byte], err error) {
	if t.isPacked() {
		packed, total, err := t.packed(body)
		if err == nil && total != t.total {
			err = fetch.ErrMixed
		}
		return 0, scan.RowsOf(packed), err
	}
	shard, err := parseShard(body, t.owner, t.total, n, site.SearchShardSize)
	return shard.First(), shard.Rows(), err
}

// eachRow calls f for every row of a table, and its index in it.
func (c *computation) eachRow(t table, f func(i int, row []byte) error) error {
	return c.eachShard(t, t.shardCount(), func(i int) int { return i }, func(_, first int, all iter.Seq[[]byte]) error {
		for row := range all {
			if err := f(first, row); err != nil {
				return err
			}
			first++
		}
		return nil
	})
}

// eachShard calls f for some shards of a table: which tells their numbers. first is the index of the first row.
func (c *computation) eachShard(t table, count int, which func(i int) int, f func(n, first int, all iter.Seq[[]byte]) error) error {
	i := 0
	for o, err := range c.m.readAhead(c.ctx, c.read, func(i int) site.Key { return t.rowsKey(which(i)) }, 0, count, shardBytes) {
		if err != nil {
			return fetch.MixedIfAbsent(err)
		}
		err := func() error {
			defer o.Release() // after a panic too
			return c.m.scan(c.ctx, len(o.Body), func() error {
				first, all, err := t.shardRows(which(i), o.Body)
				if err != nil {
					return err
				}
				return f(which(i), first, all)
			})
		}()
		if err != nil {
			return err
		}
		i++
	}
	return nil
}

// byFollowers selects rows of shards in the order by followers. It reads all shards, unless the cache has
// the order of the table.
func (c *computation) byFollowers(t table, s selection) (rows, error) {
	indexesFor := c.indexesOf
	if !s.isFiltered() {
		indexesFor = c.indexesInOrder
	}
	indexes, err := indexesFor(t, s)
	if err != nil {
		return rows{}, err
	}
	return c.rowsAt(t, indexes)
}

// indexesOf returns the indexes of the rows of a filtered selection by followers.
func (c *computation) indexesOf(t table, s selection) (indexes []int, err error) {
	order, err := c.sortKeys(t, s.wants)
	if err != nil {
		return nil, err
	}
	return c.pageOf(order, s.offset, s.limit)
}

// sortKeys returns the keys of the rows of a table that are wanted, in its order.
func (c *computation) sortKeys(t table, wants func(tableRow) bool) (keys []sortKey, err error) {
	err = c.eachRow(t, func(i int, row []byte) error {
		r, err := t.parse(row)
		if err != nil || !wants(r) {
			return err
		}
		return c.appendSortKey(&keys, r, i)
	})
	return keys, err
}

// pageOf sorts keys, and returns the indexes of a page of them.
func (c *computation) pageOf(order []sortKey, offset, limit int) (indexes []int, err error) {
	err = c.sort(order)
	for _, p := range window(order, offset, limit) {
		indexes = append(indexes, p.index())
	}
	return indexes, err
}

func (c *computation) sort(order []sortKey) error {
	return c.m.scan(c.ctx, len(order)*sortKeyBytes, func() error {
		slices.SortFunc(order, sortKey.compare)
		return nil
	})
}

// indexesInOrder is indexesOf for an unfiltered selection.
func (c *computation) indexesInOrder(t table, s selection) (indexes []int, err error) {
	order, err := c.order(t)
	if err != nil {
		return nil, err
	}
	defer order.Release()
	for i := 0; i < len(order.Body) && len(indexes) < s.limit; i += orderBytes {
		entry := binary.LittleEndian.Uint32(order.Body[i:])
		switch {
		case !s.all && entry&1 == 0:
		case s.offset > 0:
			s.offset--
		default:
			indexes = append(indexes, int(entry>>1))
		}
	}
	return indexes, nil
}

// appendSortKey appends the key of a row. The memory counts against the buffer.
func (c *computation) appendSortKey(order *[]sortKey, r tableRow, i int) error {
	address, err := site.ParseAddress(r.address)
	if err != nil {
		return site.ErrMalformed
	}
	entry := uint32(i) << 1
	if scan.StateOf(r.tags) == rules.Follow {
		entry++
	}
	if len(*order) == cap(*order) {
		more := max(64, cap(*order))
		if err := c.take(more * sortKeyBytes); err != nil {
			return err
		}
		*order = slices.Grow(*order, more)
	}
	*order = append(*order, sortKey{address, uint32(min(r.followers, 1<<32-1)), entry})
	return nil
}

// orderBytes are the bytes of a row in the cached order of a table: sortKey.entry.
const orderBytes = 4

// order returns the order of a table by followers, which the cache keeps beside the head.
func (c *computation) order(t table) (*cache.Object, error) {
	k := cache.Key{Version: c.read.version, Key: t.headKey + "?sort=followers"}
	if !c.read.renews {
		if o := c.m.cache.Peek(k); o != nil {
			if len(o.Body) == t.total*orderBytes {
				return o, nil
			}
			o.Release()
		}
	}
	keys, err := c.sortKeys(t, func(tableRow) bool { return true })
	switch {
	case err != nil:
		return nil, err
	case len(keys) > t.total:
		return nil, site.ErrMalformed
	case len(keys) < t.total:
		return nil, fetch.ErrMixed
	}
	if err := c.sort(keys); err != nil {
		return nil, err
	}
	if err := c.take(len(keys) * orderBytes); err != nil {
		return nil, err
	}
	body := make([]byte, 0, len(keys)*orderBytes)
	for _, p := range keys {
		body = binary.LittleEndian.AppendUint32(body, p.entry)
	}
	return c.m.cache.Keep(k, c.m.cache.NewComputed(body)), nil
}

// rowsAt returns the rows of a table with these indexes, in the order of the indexes. Those at
// the end are left out if they are too much for a page.
func (c *computation) rowsAt(t table, indexes []int) (selected rows, err error) {
	byIndex := make([]int, len(indexes)) // positions in indexes
	for i := range byIndex {
		byIndex[i] = i
	}
	slices.SortFunc(byIndex, func(i, j int) int { return cmp.Compare(indexes[i], indexes[j]) })
	found, end, total, taken := make([][]byte, len(indexes)), len(indexes), 0, 0
	add := func(position int, row []byte) error {
		if position >= end {
			return nil
		}
		found[position] = bytes.Clone(row)
		for total += len(row); total > mostPageBytes && end > 1; found[end] = nil {
			end--
			total -= len(found[end])
		}
		more := max(total-taken, 0)
		taken += more
		return c.take(more)
	}
	var shards []int // that have these rows
	for _, position := range byIndex {
		if n := indexes[position] / site.SearchShardSize; len(shards) == 0 || shards[len(shards)-1] != n {
			shards = append(shards, n)
		}
	}
	next := 0
	err = c.eachShard(t, len(shards), func(i int) int { return shards[i] }, func(n, i int, all iter.Seq[[]byte]) error {
		for row := range all {
			if next == len(byIndex) {
				return nil
			}
			if indexes[byIndex[next]] == i {
				if err := add(byIndex[next], row); err != nil {
					return err
				}
				next++
			}
			i++
		}
		if next < len(byIndex) && indexes[byIndex[next]]/site.SearchShardSize == n {
			return fetch.ErrMixed
		}
		return nil
	})
	if err != nil {
		return rows{}, err
	}
	for _, row := range found[:end] {
		if err := c.copyPageRow(&selected, row); err != nil {
			return rows{}, err
		}
	}
	return selected, nil
}
