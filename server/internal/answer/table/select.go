package table

import (
	"cmp"
	"slices"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// Select returns the rows of a selection. It waits for the memory of the page, so the body must
// still be empty.
func (t *Table) Select(a *compute.Answer, s Selection) (compute.Rows, error) {
	if t.Total <= s.Offset {
		return compute.Rows{}, nil
	}
	if err := a.Expect(t.pageBytes(s, a.Ask.ENS), t.pageObjects(s, a.Ask.ENS)); err != nil {
		return compute.Rows{}, err
	}
	switch {
	case t.Total <= site.SearchShardSize:
		return t.fromObject(a, s, t.rowsKey(0), func(body []byte) ([][]byte, error) {
			_, all, err := t.rowsOf(0, body)
			return slices.Collect(all), err
		})
	case !s.isFiltered() && s.Offset+s.Limit <= site.HeadRows:
		return t.fromObject(a, s, t.headKey, func(body []byte) ([][]byte, error) {
			head, err := scan.ParseShard(body)
			if err == nil && (head.Owner != t.owner || head.Total != t.Total) {
				err = fetch.ErrMixed
			}
			return slices.Collect(head.Rows()), err
		})
	case s.byFollowers:
		return t.byFollowers(a, s)
	}
	return t.inOrder(a, s)
}

// Approximate bytes of a row on a page: its copy, its entry in a doubling body, and its profile.
const (
	PageRowBytes    = 512
	PageRowENSBytes = 1 << 10
)

func (t *Table) pageBytes(s Selection, ens bool) int {
	bytes := min(s.Limit, t.Total-s.Offset) * PageRowBytes
	if ens {
		bytes *= PageRowENSBytes / PageRowBytes
	}
	if s.byFollowers && t.Total <= site.SearchShardSize { // sorting needs a key for each row
		bytes += 2 * t.Total * sortKeyBytes
	}
	return bytes
}

// pageObjects returns the approximate number of objects that a page reads.
func (t *Table) pageObjects(s Selection, ens bool) (objects int) {
	if ens {
		objects = min(s.Limit, t.Total-s.Offset)
	}
	objects += s.Objects
	if s.byFollowers || s.isFiltered() {
		objects += t.Shards() * compute.ShardObjects
	}
	return objects
}

// fromObject selects rows, in table order, from one object that has all of them.
func (t *Table) fromObject(a *compute.Answer, s Selection, key site.Key, list func(body []byte) ([][]byte, error)) (selected compute.Rows, err error) {
	return selected, a.UseKnown(key, func(body []byte) error {
		all, err := list(body)
		if err != nil {
			return err
		}
		if !s.byFollowers {
			if s.backwards {
				slices.Reverse(all)
			}
			return t.take(a, &s, all, &selected)
		}
		var order Order
		for i, text := range all {
			r, err := t.parse(text)
			if err == nil && s.wants(r) {
				err = order.add(a, i, r)
			}
			if err != nil {
				return err
			}
		}
		slices.SortFunc(order, sortKey.compare)
		for _, k := range Window(order, s.Offset, s.Limit) {
			if err := selected.Copy(a, all[k.index()]); err != nil {
				return err
			}
		}
		return nil
	})
}

// inOrder selects rows of shards in table order or in reverse. It reads the shards that hold the
// page. If tags or a term exclude rows, it reads all shards up to the page, and prefetches after
// the first, since nobody knows how many it needs.
func (t *Table) inOrder(a *compute.Answer, s Selection) (selected compute.Rows, err error) {
	first, step, end := 0, 1, t.Shards()
	if s.backwards {
		first, step, end = end-1, -1, -1
	}
	series := compute.Series{Alone: 1, Bytes: compute.ShardBytes}
	if !s.isFiltered() {
		// Each row counts, so the offset determines the first shard.
		first = s.Offset / site.SearchShardSize
		if s.backwards {
			first = (t.Total - 1 - s.Offset) / site.SearchShardSize
		}
		series.Alone = t.Shards()
	}
	series.Key = func(i int) site.Key { return t.shardKey(first + i*step) }
	series.End = (end - first) * step
	n := first
	for o, err := range a.Objects(series) {
		if err != nil {
			return compute.Rows{}, err
		}
		shard, err := t.shard(o.Body, n)
		if err != nil {
			return compute.Rows{}, err
		}
		all := slices.Collect(shard.Rows())
		if n == first && !s.isFiltered() {
			passed, err := t.passed(&s, shard, all)
			if err != nil || passed > s.Offset {
				return compute.Rows{}, cmp.Or(err, site.ErrMalformed)
			}
			s.Offset -= passed
		}
		if s.backwards {
			slices.Reverse(all)
		}
		if err := t.take(a, &s, all, &selected); err != nil {
			return compute.Rows{}, err
		}
		if selected.IsFull(s.Limit) {
			break
		}
		n += step
	}
	return selected, nil
}

// passed returns the number of rows that an unfiltered selection takes from the shards before this
// one, in its direction.
func (t *Table) passed(s *Selection, shard scan.Shard, all [][]byte) (int, error) {
	switch {
	case s.all && s.backwards:
		return t.Total - shard.First() - len(all), nil
	case s.all:
		return shard.First(), nil
	case !s.backwards:
		return shard.Before, nil
	}
	passed := shard.Follows - shard.Before
	for _, text := range all {
		r, err := t.parse(text)
		if err != nil {
			return 0, err
		}
		if s.wants(r) {
			passed--
		}
	}
	return passed, nil
}

// take copies rows until the selection is full, counting the offset down.
func (t *Table) take(a *compute.Answer, s *Selection, all [][]byte, to *compute.Rows) error {
	for _, text := range all {
		r, err := t.parse(text)
		switch {
		case err != nil:
			return err
		case !s.wants(r):
		case s.Offset > 0:
			s.Offset--
		default:
			if err := to.Copy(a, text); err != nil || to.IsFull(s.Limit) {
				return err
			}
		}
	}
	return nil
}

// A Selection selects rows of a table, by default in table order.
type Selection struct {
	MutualOf      string        // only followers of this account that it follows back; "" for all
	Objects       int           // approximate number of other objects that the page needs
	Match         *scan.Matcher // nil matches all
	Offset, Limit int

	all         bool        // all records, not only follows
	shown       rules.State // blocks and mutes that do not exclude an entry
	tags        scan.TagFilter
	byFollowers bool // order by followers
	backwards   bool // reverse table order
}

// Values of site.Ask.Sort for pages. Any other value means latest.
const (
	sortEarliest  = "earliest"
	sortFollowers = "followers"
)

// Asked returns the page that the request asks for: of all rows, or of the follows only.
func (t *Table) Asked(a *compute.Answer, all bool) Selection {
	s := Selection{
		all: all, tags: scan.NewTagFilter(a.Ask.Tags), byFollowers: a.Ask.Sort == sortFollowers,
		backwards: (a.Ask.Sort == sortEarliest) == t.newest, Offset: a.Ask.Offset, Limit: a.Ask.Limit,
	}
	if a.Ask.Blocked {
		s.shown |= rules.Block
	}
	if a.Ask.Muted {
		s.shown |= rules.Mute
	}
	return s
}

// wants reports whether the request selects a row, on this page or another.
func (s *Selection) wants(r row) bool {
	return (s.all || scan.StateOf(r.tags)&^s.shown&^rules.Follow == 0) && s.tags.Match(r.tags) && (s.Match == nil || s.Match.MatchText(r.address, r.name)) &&
		(s.MutualOf == "" || IsMutual(s.MutualOf, r.address, r.tags, r.state))
}

// IsMutual reports whether the account of a table of followers and a follower in it follow each
// other.
func IsMutual(account string, follower []byte, tags []byte, back rules.State) bool {
	return scan.StateOf(tags) == rules.Follow && rules.IsMutual(account, string(follower), back&rules.Follow != 0)
}

// isFiltered reports whether the selection is neither all rows nor all follows.
func (s *Selection) isFiltered() bool {
	return len(s.tags) > 0 || s.Match != nil || s.MutualOf != "" || !s.all && s.shown != 0
}
