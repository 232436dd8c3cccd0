package generator

import (
	"hash/maphash"
	"strings"
)

// A numbering numbers keys from 0, in the order in which they are added. It is a hash table of
// numbers beside the slice of keys, so a key takes 4 to 11 bytes besides itself. Once nothing is added
// any more, find may be called from many goroutines.
type numbering[K comparable] struct {
	seed  maphash.Seed
	keys  *[]K     // by number
	slots []uint32 // by hash; a number plus 1, or 0 for none; their number is a power of 2
}

func newNumbering[K comparable](keys *[]K) numbering[K] {
	return numbering[K]{seed: maphash.MakeSeed(), keys: keys, slots: make([]uint32, 16)}
}

// slot returns the slot of a key, which is empty if the key is new.
func (n *numbering[K]) slot(key K) *uint32 {
	mask := uint64(len(n.slots) - 1)
	for at := maphash.Comparable(n.seed, key); ; at++ {
		slot := &n.slots[at&mask]
		if *slot == 0 || (*n.keys)[*slot-1] == key {
			return slot
		}
	}
}

// find returns the number of a key, if it has one.
func (n *numbering[K]) find(key K) (number uint32, ok bool) {
	if slot := *n.slot(key); slot != 0 {
		return slot - 1, true
	}
	return 0, false
}

// add appends a key to the keys unless it is among them, and returns its number.
func (n *numbering[K]) add(key K) (number uint32, added bool) {
	slot := n.slot(key)
	if *slot != 0 {
		return *slot - 1, false
	}
	*n.keys = append(*n.keys, key)
	*slot = uint32(len(*n.keys))
	number = *slot - 1
	if len(*n.keys) > len(n.slots)/4*3 {
		n.slots = make([]uint32, 2*len(n.slots))
		for i, key := range *n.keys {
			*n.slot(key) = uint32(i + 1)
		}
	}
	return number, true
}

// texts keeps short texts in few pieces of memory.
type texts struct{ block strings.Builder }

const textBytes = 64 << 10

// keep returns a copy of a text.
func (t *texts) keep(text string) string {
	if t.block.Len()+len(text) > t.block.Cap() {
		t.block = strings.Builder{}
		t.block.Grow(max(textBytes, len(text)))
	}
	begin := t.block.Len()
	t.block.WriteString(text)
	return t.block.String()[begin:]
}
