package table

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// An Order puts rows of a table in the order by followers.
type Order []sortKey

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

// Add adds the row with an index: the account with that address and so many followers. The memory counts as that of
// the answer.
func (order *Order) Add(a *compute.Answer, index int, address []byte, followers int) error {
	return order.add(a, index, row{address: address, followers: followers})
}

func (order *Order) add(a *compute.Answer, index int, r row) error {
	address, err := site.ParseAddress(r.address)
	if err != nil {
		return site.ErrMalformed
	}
	entry := uint32(index) << 1
	if scan.StateOf(r.tags) == rules.Follow {
		entry++
	}
	if len(*order) == cap(*order) {
		more := max(64, cap(*order))
		if err := a.Take(more * sortKeyBytes); err != nil {
			return err
		}
		*order = slices.Grow(*order, more)
	}
	*order = append(*order, sortKey{address, uint32(min(r.followers, 1<<32-1)), entry})
	return nil
}

// Page sorts the rows, and returns the indexes of a page of them.
func (order Order) Page(a *compute.Answer, offset, limit int) (indexes []int, err error) {
	err = order.sort(a)
	for _, k := range Window(order, offset, limit) {
		indexes = append(indexes, k.index())
	}
	return indexes, err
}

func (order Order) sort(a *compute.Answer) error {
	return a.Scan(len(order)*sortKeyBytes, func() error {
		slices.SortFunc(order, sortKey.compare)
		return nil
	})
}

// byFollowers selects rows of shards in the order by followers. It reads all shards, unless the cache has
// the order of the table.
func (t *Table) byFollowers(a *compute.Answer, s Selection) (compute.Rows, error) {
	indexesFor := t.indexesOf
	if !s.isFiltered() {
		indexesFor = t.indexesInOrder
	}
	indexes, err := indexesFor(a, s)
	if err != nil {
		return compute.Rows{}, err
	}
	return t.RowsAt(a, indexes)
}

// indexesOf returns the indexes of the rows of a filtered selection by followers.
func (t *Table) indexesOf(a *compute.Answer, s Selection) (indexes []int, err error) {
	order, err := t.orderOf(a, s.wants)
	if err != nil {
		return nil, err
	}
	return order.Page(a, s.Offset, s.Limit)
}

// orderOf returns the rows that are wanted, in the order of the table.
func (t *Table) orderOf(a *compute.Answer, wants func(row) bool) (order Order, err error) {
	for r, err := range t.Rows(a) {
		if err != nil {
			return nil, err
		}
		parsed, err := t.parse(r.Text)
		if err == nil && wants(parsed) {
			err = order.add(a, r.Index, parsed)
		}
		if err != nil {
			return nil, err
		}
	}
	return order, nil
}

// indexesInOrder is indexesOf for an unfiltered selection.
func (t *Table) indexesInOrder(a *compute.Answer, s Selection) (indexes []int, err error) {
	order, err := a.Kept(t.headKey+"?sort=followers", t.Total*orderBytes, func() ([]byte, error) { return t.entries(a) })
	if err != nil {
		return nil, err
	}
	defer order.Release()
	for i := 0; i < len(order.Body) && len(indexes) < s.Limit; i += orderBytes {
		entry := binary.LittleEndian.Uint32(order.Body[i:])
		switch {
		case !s.all && entry&1 == 0:
		case s.Offset > 0:
			s.Offset--
		default:
			indexes = append(indexes, int(entry>>1))
		}
	}
	return indexes, nil
}

// orderBytes are the bytes of a row in the order of a table as the cache keeps it: sortKey.entry.
const orderBytes = 4

// entries returns the order of the whole table by followers.
func (t *Table) entries(a *compute.Answer) ([]byte, error) {
	order, err := t.orderOf(a, func(row) bool { return true })
	switch {
	case err != nil:
		return nil, err
	case len(order) > t.Total:
		return nil, site.ErrMalformed
	case len(order) < t.Total:
		return nil, fetch.ErrMixed
	}
	if err := order.sort(a); err != nil {
		return nil, err
	}
	if err := a.Take(len(order) * orderBytes); err != nil {
		return nil, err
	}
	body := make([]byte, 0, len(order)*orderBytes)
	for _, k := range order {
		body = binary.LittleEndian.AppendUint32(body, k.entry)
	}
	return body, nil
}
