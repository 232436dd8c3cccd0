package ranking

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"

	"github.com/followpress/followpress/beam/internal/wire"
)

// blocks is the number of blocks of counts. The key of a block has its measure and number, as two
// bytes.
const blocks = 8 * (32 - 8)

// blockOf returns the number of a count's block, in the order of counts: blocks of 64 counts up to
// 512, then eight blocks per doubling. Each group has an element for each block that contains its
// accounts, so there must be few blocks; and each must have few of the counts of a large network.
func blockOf(count uint32) int {
	length := bits.Len32(count)
	if length <= 9 {
		return int(count >> 6)
	}
	return (length-9)*8 + int(count>>(length-4)&7)
}

// A number is the number of accounts of a group with a count.
type number struct {
	count, group, accounts uint32
}

// blockFn sorts the numbers of a block. It emits the starts of each group, the histogram, and the
// number of accounts of the block.
type blockFn struct{}

func (*blockFn) ProcessElement(
	key string, values func(*[]byte) bool, emitStarts, emitHistogram func(string, []byte), emitTotal func([]byte),
) error {
	numbers, err := readNumbers(values)
	if err != nil {
		return err
	}
	slices.SortFunc(numbers, func(a, b number) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.group, b.group))
	})
	measure, block := blockOfKey(key)
	before := uint32(0)
	starts := map[uint32][]byte{}
	var histogram []number
	for i, n := range numbers {
		b := starts[n.group]
		if b == nil {
			b = append(b, startsKind, measure)
		}
		starts[n.group] = binary.AppendUvarint(binary.AppendUvarint(b, uint64(n.count)), uint64(before))
		before += n.accounts
		if i == 0 || numbers[i-1].count != n.count {
			histogram = append(histogram, number{count: n.count})
		}
		histogram[len(histogram)-1].accounts += n.accounts
	}
	for group, b := range starts {
		emitStarts(groupKey(int(group)), b)
	}
	var b []byte
	for _, n := range slices.Backward(histogram) {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(n.count)), uint64(n.accounts))
	}
	emitHistogram(key[:1], b)
	emitTotal(binary.AppendUvarint([]byte{measure, block}, uint64(before)))
	return nil
}

func readNumbers(values func(*[]byte) bool) (numbers []number, err error) {
	for value := []byte(nil); values(&value); {
		d := wire.Decode(value)
		group, err := strconv.ParseUint(d.Text(), 10, 32)
		if err != nil {
			return nil, wire.ErrMalformed
		}
		for d.More() {
			numbers = append(numbers, number{d.Uint32(), uint32(group), d.Uint32()})
		}
		if d.Err() != nil {
			return nil, d.Err()
		}
	}
	return numbers, nil
}

// sumAbove sums the accounts of the blocks above each block.
func sumAbove(totals func(*[]byte) bool) (*[wire.Measures][blocks]uint32, error) {
	above := &[wire.Measures][blocks]uint32{}
	for value := []byte(nil); totals(&value); {
		d := wire.Decode(value)
		measure, block, accounts := d.Byte(), d.Byte(), d.Uint32()
		if d.Err() != nil || int(measure) >= wire.Measures || block >= blocks {
			return nil, wire.ErrMalformed
		}
		for lower := range above[measure][:block] {
			above[measure][lower] += accounts
		}
	}
	return above, nil
}
