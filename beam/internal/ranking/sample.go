package ranking

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/site"
)

// A sample is the number of accounts (8 bytes) and the accounts with the lowest hashes, in this
// order. Samples can be merged in any order.
type entry [8 + len(site.Address{})]byte // hash, address

const (
	entrySize  = len(entry{})
	headerSize = 8
)

// sampleFn makes one sample per bundle of accounts.
type sampleFn struct {
	What selection
	Size int
	Seed uint64

	accounts uint64
	lowest   []entry
	full     bool  // whether lowest once had more than Size entries
	limit    entry // entries from here on are not among the lowest, if full
	hashed   [8 + len(site.Address{})]byte
}

func (f *sampleFn) ProcessElement(address string, value []byte, _ func([]byte)) error {
	d := wire.Decode(value)
	counts := d.Counts()
	if d.Err() != nil {
		return d.Err()
	}
	if f.What.measures(&counts) == 0 {
		return nil
	}
	f.accounts++
	a := wire.KeyAddress(address)
	binary.LittleEndian.PutUint64(f.hashed[:], f.Seed)
	copy(f.hashed[8:], a[:])
	// Not a faster hash, for which addresses with equal hashes for every seed could be found.
	sum := sha256.Sum256(f.hashed[:])
	var e entry
	copy(e[:8], sum[:])
	copy(e[8:], a[:])
	if f.full && bytes.Compare(e[:], f.limit[:]) >= 0 {
		return nil
	}
	if f.lowest = append(f.lowest, e); len(f.lowest) >= 2*f.Size {
		f.cut()
	}
	return nil
}

// cut keeps the lowest entries, sorted.
func (f *sampleFn) cut() {
	slices.SortFunc(f.lowest, func(a, b entry) int { return bytes.Compare(a[:], b[:]) })
	if len(f.lowest) > f.Size {
		f.lowest = f.lowest[:f.Size]
		f.full, f.limit = true, f.lowest[f.Size-1]
	}
}

func (f *sampleFn) FinishBundle(emit func([]byte)) {
	f.cut()
	sample := make([]byte, 0, headerSize+len(f.lowest)*entrySize)
	sample = binary.BigEndian.AppendUint64(sample, f.accounts)
	for i := range f.lowest {
		sample = append(sample, f.lowest[i][:]...)
	}
	f.accounts, f.lowest, f.full = 0, nil, false
	emit(sample)
}

// mergeFn merges samples.
type mergeFn struct{ Size int }

func (f *mergeFn) MergeAccumulators(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	accounts := binary.BigEndian.Uint64(a) + binary.BigEndian.Uint64(b)
	a, b = a[headerSize:], b[headerSize:]
	size := min(f.Size*entrySize, len(a)+len(b))
	merged := binary.BigEndian.AppendUint64(make([]byte, 0, headerSize+size), accounts)
	for len(merged) < headerSize+size {
		from := &a
		if len(a) == 0 || len(b) > 0 && bytes.Compare(b[:entrySize], a[:entrySize]) < 0 {
			from = &b
		}
		merged = append(merged, (*from)[:entrySize]...)
		*from = (*from)[entrySize:]
	}
	return merged
}

// rangesFn cuts the addresses into ranges. Its result has the first address of each range except
// the first.
type rangesFn struct{ BucketMax int }

func (f *rangesFn) ProcessElement(sample []byte, emit func([]byte)) {
	if len(sample) > 0 {
		emit(cutRanges(sample, f.BucketMax))
	}
}

func cutRanges(sample []byte, bucketMax int) []byte {
	accounts, entries := binary.BigEndian.Uint64(sample), sample[headerSize:]
	addresses := make([]site.Address, len(entries)/entrySize)
	for i := range addresses {
		addresses[i] = site.Address(entries[i*entrySize+8:])
	}
	slices.SortFunc(addresses, func(a, b site.Address) int { return bytes.Compare(a[:], b[:]) })

	ceil := func(a, b uint64) uint64 { return (a + b - 1) / b }
	ranges := ceil(accounts, uint64(bucketMax))
	if n := uint64(len(addresses)); n < accounts {
		ranges = min(ceil(accounts, max(1, uint64(bucketMax)/2)), max(1, n/samplesPerGroup))
	}
	firsts := make([]byte, 0, int(ranges)*len(site.Address{}))
	for i := uint64(1); i < ranges; i++ {
		first := addresses[i*uint64(len(addresses))/ranges]
		firsts = append(firsts, first[:]...)
	}
	return firsts
}

// rangeOf returns the number of the range of an address.
func rangeOf(firsts []byte, address string) int {
	const size = len(site.Address{})
	low, high := 0, len(firsts)/size
	for low < high {
		middle := (low + high) / 2
		if string(firsts[middle*size:][:size]) <= address {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
