package graph

import (
	"hash/maphash"
	"slices"
)

// A Numbering numbers keys from 0, in the order in which they are added. It is a hash table of
// numbers next to the slice of keys, so a key takes 4 to 11 bytes besides itself. After the last
// Add, Find and FindAll may be called concurrently.
type Numbering[K comparable] struct {
	seed maphash.Seed
	keys *[]K // by number
	// By hash; the length is a power of 2. A slot holds a number plus 1, in as many low bits as an
	// index of slots has, or 0 if empty. Its other bits are a mark from the key's hash, which
	// usually avoids reading another key far away in memory.
	slots []uint32
}

// NewNumbering returns a numbering of keys, which must be empty.
func NewNumbering[K comparable](keys *[]K) Numbering[K] {
	return Numbering[K]{seed: maphash.MakeSeed(), keys: keys, slots: make([]uint32, 16)}
}

// places returns the mask for an index of slots, and the first index and the mark of a key.
func (n *Numbering[K]) places(key K) (mask, at, mark uint32) {
	hash := maphash.Comparable(n.seed, key)
	mask = uint32(len(n.slots) - 1)
	return mask, uint32(hash), uint32(hash>>32) &^ mask
}

// slot returns the slot of a key, which is empty if the key is new, and the mark of the key.
func (n *Numbering[K]) slot(key K) (slot *uint32, mark uint32) {
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

// Find returns the number of a key, if it has one.
func (n *Numbering[K]) Find(key K) (number uint32, ok bool) {
	slot, mark := n.slot(key)
	if *slot == 0 {
		return 0, false
	}
	return *slot - mark - 1, true
}

// AtOnce is the number of keys that FindAll processes at a time.
const AtOnce = 64

// FindAll finds the numbers of keys, None for unknown ones. Each step is done for many keys before
// the next, and the steps that read distant memory do nothing else: the processor then waits for
// many places at a time.
func (n *Numbering[K]) FindAll(keys []K, numbers []uint32) {
	if len(*n.keys) == 0 {
		for i := range keys {
			numbers[i] = None
		}
		return
	}
	for ; len(keys) > AtOnce; keys, numbers = keys[AtOnce:], numbers[AtOnce:] {
		n.findSome(keys[:AtOnce], numbers[:AtOnce])
	}
	n.findSome(keys, numbers)
}

// findSome is FindAll for at most AtOnce keys. Some key must have a number.
func (n *Numbering[K]) findSome(keys []K, numbers []uint32) {
	var at, marks, slots [AtOnce]uint32
	var found [AtOnce]K
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
		numbers[i] = slots[i] - 1 // None for an empty slot
		if slots[i] != 0 && found[i] != key {
			numbers[i] = None
			if number, ok := n.Find(key); ok { // another key has the same mark
				numbers[i] = number
			}
		}
	}
}

// Add appends a key to the keys unless it exists, and returns its number.
func (n *Numbering[K]) Add(key K) (number uint32, added bool) {
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

// None is an index of no account or list.
const None = ^uint32(0)

// Group groups things by group number, keeping their order. offsets has the index of the first
// thing of each group; its last element is the number of things.
func Group[N uint16 | uint32](things []uint32, groupOf []N, groups int) (offsets, grouped []uint32) {
	offsets = make([]uint32, groups+1)
	for _, group := range groupOf {
		offsets[int(group)+1]++
	}
	for group := range groups {
		offsets[group+1] += offsets[group]
	}
	next := slices.Clone(offsets)
	grouped = make([]uint32, len(things))
	for i, group := range groupOf {
		grouped[next[group]] = things[i]
		next[group]++
	}
	return offsets, grouped
}

// NumbersBelow returns the numbers from 0 to n-1.
func NumbersBelow(n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

// Window returns the n-th part of a table cut into parts of a size.
func Window[T any](all []T, n, size int) []T {
	return all[min(n*size, len(all)):min((n+1)*size, len(all))]
}
