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

// An Order collects rows of a table to sort them by followers.
type Order []sortKey

// A sortKey identifies a row and its place in the order by followers.
type sortKey struct {
	address   site.Address
	followers uint32
	entry     uint32 // twice the index in the table, plus one for a follow
}

func (k sortKey) index() int { return int(k.entry >> 1) }

const sortKeyBytes = 28

// compare orders keys by followers, most first, then by address.
func (k sortKey) compare(other sortKey) int {
	return cmp.Or(cmp.Compare(other.followers, k.followers), bytes.Compare(k.address[:], other.address[:]))
}

// Add adds the row at index, for an account with the given address and number of followers. The
// gate of the answer counts the memory.
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

// Page sorts the rows and returns the indexes of one page.
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

// byFollowers selects rows of shards in the order by followers. It reads all shards unless the
// cache has the table's order.
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

// indexesOf returns the row indexes of a filtered selection, by followers.
func (t *Table) indexesOf(a *compute.Answer, s Selection) (indexes []int, err error) {
	order, err := t.orderOf(a, s.wants)
	if err != nil {
		return nil, err
	}
	return order.Page(a, s.Offset, s.Limit)
}

// orderOf returns the wanted rows, in table order.
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

// orderBytes is the size of a row in a cached order: sortKey.entry.
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
