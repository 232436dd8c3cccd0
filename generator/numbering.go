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
// next one, and the steps that look far away in memory do nothing else: the processor then waits for
// many places at a time.
func (n *numbering[K]) findAll(keys []K, numbers []uint32) {
	if len(*n.keys) == 0 {
		for i := range keys {
			numbers[i] = none
		}
		return
	}
	for ; len(keys) > atOnce; keys, numbers = keys[atOnce:], numbers[atOnce:] {
		n.findSome(keys[:atOnce], numbers[:atOnce])
	}
	n.findSome(keys, numbers)
}

// findSome is findAll of at most atOnce keys. There must be a key that has a number.
func (n *numbering[K]) findSome(keys []K, numbers []uint32) {
	var at, marks, slots [atOnce]uint32
	var found [atOnce]K
	mask := uint32(len(n.slots) - 1)
	for i, key := range keys {
		_, at[i], marks[i] = n.places(key)
	}
	for i := range keys {
		slots[i] = n.slots[at[i]&mask]
	}
	for i := range keys {
		slot := slots[i]
		for j := at[i]; slot != 0 && slot&^mask != marks[i]; {
			j++
			slot = n.slots[j&mask]
		}
		slots[i] = slot & mask
	}
	for i := range keys {
		found[i] = (*n.keys)[max(slots[i], 1)-1]
	}
	for i, key := range keys {
		numbers[i] = slots[i] - 1 // none for an empty slot
		if slots[i] != 0 && found[i] != key {
			numbers[i] = none
			if number, ok := n.find(key); ok { // another key has the same mark
				numbers[i] = number
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
