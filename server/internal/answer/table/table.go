// Package table pages through long tables: the records of a list, the followers of an account, and
// tables of the whole site.
package table

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// A Table keeps few rows in a bucket and many in shards, with the most popular rows repeated in a
// head. A table of the whole site has shards only.
type Table struct {
	Total int // number of rows

	owner    string // owner of the shards
	bucket   site.Key
	packed   func(bucket []byte) (rows []byte, total int, err error)
	shardKey func(n int) site.Key
	headKey  site.Key
	parse    func(row []byte) (row, error)
	newest   bool // the first row is the latest, not the earliest
}

// A row is the part of a row that selections use.
type row struct {
	address, tags, name []byte
	followers           int
	state               rules.State // for a follower: its state in the account's primary list
}

// Held returns the table of the records of a list.
func Held(a *compute.Answer, s lookup.Subject) *Table {
	return &Table{
		owner: s.List, Total: s.Held, bucket: lookup.ListBucket(a, s.List),
		packed: func(bucket []byte) ([]byte, int, error) {
			node, _, err := scan.FindListNode(bucket, s.List)
			if node.Account != s.Address || node.Primary != s.Primary {
				return nil, -1, err
			}
			return node.Rows, node.Held, err
		},
		shardKey: func(n int) site.Key { return site.SearchShardKey(s.List, n) },
		headKey:  site.ListHeadKey(s.List),
		parse: func(text []byte) (row, error) {
			r, err := scan.ParseHeldRow(text)
			return row{address: r.Address, tags: r.Tags, name: r.Name, followers: r.Followers}, err
		},
	}
}

// Followers returns the table of the accounts that hold an account.
func Followers(a *compute.Answer, s lookup.Subject) *Table {
	return &Table{
		owner: s.Address, Total: s.Followers, bucket: lookup.UserBucket(a, s.Address), newest: true,
		packed: func(bucket []byte) ([]byte, int, error) {
			node, _, err := scan.FindUserNode(bucket, s.Address)
			if s.Primary && node.List != s.List {
				return nil, -1, err
			}
			return node.Rows, node.Followers, err
		},
		shardKey: func(n int) site.Key { return site.FollowerShardKey(s.Address, n) },
		headKey:  site.FollowerHeadKey(s.Address),
		parse: func(text []byte) (row, error) {
			r, err := scan.ParseFollowerRow(text)
			return row{r.Address, r.Tags, r.Name, r.Followers, r.State}, err
		},
	}
}

// OfSite returns a table of the whole site. It reads the first shard to learn the number of rows.
func OfSite(a *compute.Answer, shardKey func(n int) site.Key) (*Table, error) {
	t := &Table{Total: -1, shardKey: shardKey}
	return t, a.UseKnown(shardKey(0), func(body []byte) error {
		shard, err := t.shard(body, 0)
		t.Total = shard.Total
		return err
	})
}

// Shards returns the number of shards.
func (t *Table) Shards() int { return (t.Total + site.SearchShardSize - 1) / site.SearchShardSize }

// Address returns the account of a row of Held or Followers.
func (t *Table) Address(text []byte) ([]byte, error) {
	r, err := t.parse(text)
	return r.address, err
}

// ParseShard parses shard n of a table with total rows; -1 means that the total is unknown. size is
// the number of rows of a full shard, on which the indexes of rows depend.
func ParseShard(body []byte, owner string, total, n, size int) (scan.Shard, error) {
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

func (t *Table) shard(body []byte, n int) (scan.Shard, error) {
	return ParseShard(body, t.owner, t.Total, n, site.SearchShardSize)
}

// rowsKey returns the key of the object with the rows of shard n: the shard, or a bucket with all
// rows.
func (t *Table) rowsKey(n int) site.Key {
	if t.isPacked() {
		return t.bucket
	}
	return t.shardKey(n)
}

func (t *Table) isPacked() bool { return t.packed != nil && t.Total <= site.PackedRows }

// rowsOf returns the rows of the object at rowsKey(n) and the index of the first.
func (t *Table) rowsOf(n int, body []byte) (first int, all iter.Seq[[]byte], err error) {
	if t.isPacked() {
		packed, total, err := t.packed(body)
		if err == nil && total != t.Total {
			err = fetch.ErrMixed
		}
		return 0, scan.RowsOf(packed), err
	}
	shard, err := t.shard(body, n)
	return shard.First(), shard.Rows(), err
}

// A Row is a row of a table. Its text is valid until the next row.
type Row struct {
	Index int // index in the table
	Text  []byte
}

// Rows yields all rows. It ends after an error.
func (t *Table) Rows(a *compute.Answer) iter.Seq2[Row, error] {
	return t.rowsOfShards(a, t.Shards(), func(i int) int { return i })
}

// rowsOfShards yields the rows of count shards, whose numbers which returns. It ends after an
// error.
func (t *Table) rowsOfShards(a *compute.Answer, count int, which func(i int) int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		i := 0
		for o, err := range a.Objects(compute.Series{Key: func(i int) site.Key { return t.rowsKey(which(i)) }, End: count, Bytes: compute.ShardBytes}) {
			if err != nil {
				yield(Row{}, err)
				return
			}
			first, all, err := t.rowsOf(which(i), o.Body)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for text := range all {
				if !yield(Row{first, text}, nil) {
					return
				}
				first++
			}
			i++
		}
	}
}

// RowsAt returns the rows at the given indexes, in the same order. It omits rows at the end that
// exceed the size limit of a page.
func (t *Table) RowsAt(a *compute.Answer, indexes []int) (selected compute.Rows, err error) {
	byIndex := make([]int, len(indexes)) // positions in indexes
	for i := range byIndex {
		byIndex[i] = i
	}
	slices.SortFunc(byIndex, func(i, j int) int { return cmp.Compare(indexes[i], indexes[j]) })
	found, end, total, taken := make([][]byte, len(indexes)), len(indexes), 0, 0
	add := func(position int, text []byte) error {
		if position >= end {
			return nil
		}
		found[position] = bytes.Clone(text)
		for total += len(text); total > compute.MostPageBytes && end > 1; found[end] = nil {
			end--
			total -= len(found[end])
		}
		more := max(total-taken, 0)
		taken += more
		return a.Take(more)
	}
	var shards []int // shards that have these rows
	for _, position := range byIndex {
		if n := indexes[position] / site.SearchShardSize; len(shards) == 0 || shards[len(shards)-1] != n {
			shards = append(shards, n)
		}
	}
	next := 0
	for r, err := range t.rowsOfShards(a, len(shards), func(i int) int { return shards[i] }) {
		if err != nil {
			return compute.Rows{}, err
		}
		if indexes[byIndex[next]] != r.Index {
			continue
		}
		if err := add(byIndex[next], r.Text); err != nil {
			return compute.Rows{}, err
		}
		if next++; next == len(byIndex) {
			break
		}
	}
	if next < len(byIndex) { // a shard has too few rows
		return compute.Rows{}, fetch.ErrMixed
	}
	for _, text := range found[:end] {
		if err := selected.Copy(a, text); err != nil {
			return compute.Rows{}, err
		}
	}
	return selected, nil
}

// Window returns one page of a slice.
func Window[T any](all []T, offset, limit int) []T {
	all = all[min(offset, len(all)):]
	return all[:min(limit, len(all))]
}
