package ranking

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/site"
)

// Kinds of values of a group; they precede the rows.
const (
	rowsKind   = iota // accounts, as addresses and counts
	startsKind        // measure, and pairs of a count and the place before its first account
)

// flushSize is the size at which rows of a group are emitted before the end of a bundle; pendingMax
// is the same for all groups together.
const (
	flushSize  = 64 << 10
	pendingMax = 16 << 20
)

// A row is an account of a group.
type row struct {
	address site.Address
	counts  wire.Counts
}

func (r *row) append(b []byte) []byte { return r.counts.Append(append(b, r.address[:]...)) }

// groupKey returns the key of a range of addresses.
func groupKey(n int) string { return strconv.Itoa(n) }

// blockKey returns the key of a block of a measure. Keys are UTF-8, so its bytes have 7 bits.
func blockKey(measure byte, block int) string {
	return string([]byte{measure, byte(block >> 7), byte(block & 0x7f)})
}

// blockOfKey returns the measure and block of a key.
func blockOfKey(key string) (measure, block byte) { return key[0], key[1]<<7 | key[2] }

// groupFn sends accounts to the groups of their ranges, many per element.
type groupFn struct {
	What selection

	firsts  []byte
	pending [][]byte // by range; nil before the first account
	size    int
}

func (f *groupFn) ProcessElement(address string, counts []byte, firsts func(*[]byte) bool, emit func(string, []byte)) error {
	if f.pending == nil {
		firsts(&f.firsts) // empty without accounts
		f.pending = make([][]byte, len(f.firsts)/len(site.Address{})+1)
	}
	d := wire.Decode(counts)
	c := d.Counts()
	if d.Err() != nil {
		return wire.ErrMalformed
	}
	if f.What.measures(&c) == 0 {
		return nil
	}
	r := row{wire.KeyAddress(address), c}
	n := rangeOf(f.firsts, string(r.address[:]))
	b := f.pending[n]
	if b == nil {
		b = append(b, rowsKind)
	}
	before := len(b)
	b = r.append(b)
	f.pending[n] = b
	f.size += len(b) - before
	if len(b) >= flushSize {
		f.flush(n, emit)
	} else if f.size >= pendingMax {
		f.flushAll(emit)
	}
	return nil
}

func (f *groupFn) flush(n int, emit func(string, []byte)) {
	f.size -= len(f.pending[n]) - 1
	emit(groupKey(n), f.pending[n])
	f.pending[n] = nil // emitted elements may be kept
}

func (f *groupFn) flushAll(emit func(string, []byte)) {
	for n, b := range f.pending {
		if b != nil {
			f.flush(n, emit)
		}
	}
}

func (f *groupFn) FinishBundle(_ func(*[]byte) bool, emit func(string, []byte)) { f.flushAll(emit) }

// countFn sorts a group, emits it as one element, and counts its accounts by measure and count for
// each block.
type countFn struct{ What selection }

func (f *countFn) ProcessElement(
	group string, values func(*[]byte) bool, emitGroup, emitBlock func(string, []byte), emitSize func(int64),
) error {
	var rows []row
	for value := []byte(nil); values(&value); {
		d := wire.Decode(value)
		d.Byte() // kind
		for d.More() {
			rows = append(rows, row{d.Address(), d.Counts()})
		}
		if d.Err() != nil {
			return d.Err()
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return bytes.Compare(a.address[:], b.address[:]) })

	numbers, sorted := [wire.Measures]table{}, append(make([]byte, 0, len(rows)*32), rowsKind)
	for i := range rows {
		r := &rows[i]
		if i > 0 && r.address == rows[i-1].address {
			return fmt.Errorf("address %s: %w", r.address, errTwice)
		}
		sorted = r.append(sorted)
		measures := f.What.measures(&r.counts)
		for m := range r.counts {
			if measures>>m&1 != 0 {
				numbers[m].add(r.counts[m])
			}
		}
	}
	emitGroup(group, sorted)
	emitSize(int64(len(rows)))
	for m := range numbers {
		numbers[m].emit(byte(m), group, emitBlock)
	}
	return nil
}

var errTwice = errors.New("counted twice")

// placeFn assigns places to the accounts of a group.
type placeFn struct {
	What selection

	above *[wire.Measures][blocks]uint32 // accounts with counts in higher blocks; nil before the first group
}

func (f *placeFn) ProcessElement(
	_ string, values, totals func(*[]byte) bool, emit func(string, []byte),
) error {
	if f.above == nil {
		above, err := sumAbove(totals)
		if err != nil {
			return err
		}
		f.above = above
	}
	var rows []byte
	last := [wire.Measures]table{} // last assigned place
	for value := []byte(nil); values(&value); {
		d := wire.Decode(value)
		switch d.Byte() {
		case rowsKind:
			rows = d.Rest()
		case startsKind:
			m := d.Byte()
			if int(m) >= wire.Measures {
				return wire.ErrMalformed
			}
			for d.More() {
				count := d.Uint32()
				*last[m].at(count) = f.above[m][blockOf(count)] + d.Uint32()
			}
		default:
			return fmt.Errorf("%w: unknown kind", wire.ErrMalformed)
		}
		if d.Err() != nil {
			return d.Err()
		}
	}
	return f.emit(rows, &last, emit)
}

func (f *placeFn) emit(rows []byte, last *[wire.Measures]table, emit func(string, []byte)) error {
	var places []byte // shared by many accounts, to save allocations
	for d := wire.Decode(rows); d.More(); {
		address, counts := d.Address(), d.Counts()
		if d.Err() != nil {
			return d.Err()
		}
		const most = wire.Measures * (1 + 2*binary.MaxVarintLen32)
		if cap(places)-len(places) < most {
			places = make([]byte, 0, 4<<10)
		}
		begin := len(places)
		measures := f.What.measures(&counts)
		for m, count := range counts {
			if measures>>m&1 == 0 {
				continue
			}
			place := last[m].at(count)
			*place++
			places = wire.Place{Measure: byte(m), Place: *place, Count: count}.Append(places)
		}
		emit(wire.AddressKey(address), places[begin:len(places):len(places)])
	}
	return nil
}

// A table maps counts to numbers. Most counts are small.
type table struct {
	small []uint32 // nil if empty
	large map[uint32]*uint32
}

const smallCounts = 1 << 9

// at returns the number of a count.
func (t *table) at(count uint32) *uint32 {
	if count < smallCounts {
		if t.small == nil {
			t.small = make([]uint32, smallCounts)
		}
		return &t.small[count]
	}
	if n := t.large[count]; n != nil {
		return n
	}
	if t.large == nil {
		t.large = map[uint32]*uint32{}
	}
	n := new(uint32)
	t.large[count] = n
	return n
}

func (t *table) add(count uint32) { *t.at(count)++ }

// each calls f for each count with a nonzero number, in ascending order.
func (t *table) each(f func(count, n uint32)) {
	for count, n := range t.small {
		if n != 0 {
			f(uint32(count), n)
		}
	}
	for _, count := range slices.Sorted(maps.Keys(t.large)) {
		f(count, *t.large[count])
	}
}

// emit emits the numbers of a group, one element per block with accounts.
func (t *table) emit(measure byte, group string, emit func(string, []byte)) {
	var b []byte
	block := 0
	flush := func() {
		if b != nil {
			emit(blockKey(measure, block), b)
		}
		b = nil
	}
	t.each(func(count, n uint32) {
		if of := blockOf(count); of != block {
			flush()
			block = of
		}
		if b == nil {
			b = wire.AppendText(b, group)
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(count)), uint64(n))
	})
	flush()
}
