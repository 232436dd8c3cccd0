package generator

import (
	"hash/maphash"
	"strings"
)

// A numbering numbers keys from 0, in the order in which they are added. It is a hash table of
// numbers beside the slice of keys, so a key takes 4 to 11 bytes besides itself. Once nothing is added
// any more, find and findAll may be called from many goroutines.
type numbering[K comparable] struct {
	seed maphash.Seed
	keys *[]K // by number
	// By hash; their number is a power of 2. A slot has a number plus 1 in as many bits as the index of
	// a slot has, or 0 for none. Its other bits are of the key's hash: the mark of the key, which mostly
	// saves a look at another key, far away in memory.
	slots []uint32
}

func newNumbering[K comparable](keys *[]K) numbering[K] {
	return numbering[K]{seed: maphash.MakeSeed(), keys: keys, slots: make([]uint32, 16)}
}

// places returns what to mask an index of slots with, and the first index and the mark of a key.
func (n *numbering[K]) places(key K) (mask, at, mark uint32) {
	hash := maphash.Comparable(n.seed, key)
	mask = uint32(len(n.slots) - 1)
	return mask, uint32(hash), uint32(hash>>32) &^ mask
}

// slot returns the slot of a key, which is empty if the key is new, and the mark of the key.
func (n *numbering[K]) slot(key K) (slot *uint32, mark uint32) {
	mask, at, mark := n.places(key)
	for ; ; at++ {
		slot := &n.slots[at&mask]
		if *slot == 0 {
			return slot, mark
		}
		if *slot&^mask == mark && (*n.keys)[*slot&mask-1] == key {
			return slot, mark
		}
	}
}

// find returns the number of a key, if it has one.
func (n *numbering[K]) find(key K) (number uint32, ok bool) {
	slot, mark := n.slot(key)
	if *slot == 0 {
		return 0, false
	}
	return *slot - mark - 1, true
}

// atOnce is how many keys findAll looks for at a time.
const atOnce = 64

// findAll finds the numbers of keys, none for unknown ones. Each step is done for many keys before the
// next one, so that the processor waits for many places in memory at a time.
func (n *numbering[K]) findAll(keys []K, numbers []uint32) {
	var slots, marks [atOnce]uint32
	mask := uint32(len(n.slots) - 1)
	for ; len(keys) > 0; keys, numbers = keys[min(atOnce, len(keys)):], numbers[min(atOnce, len(keys)):] {
		some := keys[:min(atOnce, len(keys))]
		for i, key := range some {
			_, at, mark := n.places(key)
			slots[i], marks[i] = n.slots[at&mask], mark
		}
		for i, key := range some {
			slot := slots[i]
			if slot != 0 && slot&^mask == marks[i] && (*n.keys)[slot&mask-1] == key {
				numbers[i] = slot&mask - 1
			} else if number, ok := n.find(key); ok {
				numbers[i] = number
			} else {
				numbers[i] = none
			}
		}
	}
}

// add appends a key to the keys unless it is among them, and returns its number.
func (n *numbering[K]) add(key K) (number uint32, added bool) {
	slot, mark := n.slot(key)
	if *slot != 0 {
		return *slot - mark - 1, false
	}
	*n.keys = append(*n.keys, key)
	*slot = mark | uint32(len(*n.keys))
	number = uint32(len(*n.keys) - 1)
	if len(*n.keys) > len(n.slots)/4*3 {
		n.slots = make([]uint32, 2*len(n.slots))
		for i, key := range *n.keys {
			slot, mark := n.slot(key)
			*slot = mark | uint32(i+1)
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
