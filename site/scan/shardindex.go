package scan

import (
	"bytes"
	"math"
	"slices"
	"sync"
)

// A ShardIndex has what searches need of a search shard, so that they need not scan it: its header,
// where its entries are, and the texts that terms are compared with. It is safe for concurrent use.
type ShardIndex struct {
	Header ShardHeader

	starts []uint32 // of each entry in the shard; at the end, one more than the end of the last entry
	texts  []uint32 // where the text of each entry begins
	text   []byte   // of each entry, the address and the folded name, with fieldEnd after both
}

// fieldEnd ends a text. No term has it, since it is no part of any character's UTF-8, and noText is
// another byte.
const fieldEnd = 0xfe

// An indexer is the memory in which an index is made: its final size is not known before.
type indexer struct {
	starts, texts []uint32
	text          []byte
	fold          Matcher
}

var indexers = sync.Pool{New: func() any { return new(indexer) }}

// mostIndexer is how much text an indexer may have room for if it is to be used again, in bytes. Most
// shards have a quarter of it.
const mostIndexer = 256 << 10

// IndexShard makes the index of a search shard. ok is false if the shard is malformed in any way:
// those are to be scanned.
func IndexShard(shard []byte) (x *ShardIndex, ok bool) {
	header, err := ParseShardHeader(shard)
	if err != nil || len(shard) >= math.MaxUint32 {
		return nil, false
	}
	made := indexers.Get().(*indexer)
	defer func() {
		if cap(made.text) <= mostIndexer {
			indexers.Put(made)
		}
	}()
	if !made.index(shard) {
		return nil, false
	}
	return &ShardIndex{Header: header, starts: slices.Clone(made.starts), texts: slices.Clone(made.texts), text: slices.Clone(made.text)}, true
}

// index sets all but the header, or returns false.
func (x *indexer) index(shard []byte) (ok bool) {
	x.starts, x.texts, x.text = x.starts[:0], x.texts[:0], x.text[:0]
	end := 0
	for entry := range Entries(shard) {
		address, name, ok := searched(entry)
		if !ok || !isASCII(address) {
			return false
		}
		start := cap(shard) - cap(entry) // Entries yields slices of the shard
		end = start + len(entry)
		x.starts = append(x.starts, uint32(start))
		x.texts = append(x.texts, uint32(len(x.text)))
		x.text = append(append(x.text, address...), fieldEnd)
		x.text = append(append(x.text, x.fold.fold(name)...), fieldEnd)
	}
	x.starts = append(x.starts, uint32(end+1))
	return len(x.texts) > 0 && len(x.text) < math.MaxUint32
}

func isASCII(text []byte) bool {
	return !slices.ContainsFunc(text, func(c byte) bool { return c >= 0x80 })
}

// Bytes is the memory of the index.
func (x *ShardIndex) Bytes() int { return 4*cap(x.starts) + 4*cap(x.texts) + cap(x.text) }

// Len is the number of entries.
func (x *ShardIndex) Len() int { return len(x.texts) }

// Entry returns entry i of the shard that the index was made of, as a slice of it.
func (x *ShardIndex) Entry(shard []byte, i int) []byte {
	return shard[x.starts[i] : x.starts[i+1]-1]
}

// Next returns the first entry, not before from, that a Matcher for the term would match; Len if there
// is none.
func (x *ShardIndex) Next(from int, term []byte) int {
	if len(term) == 0 || from >= x.Len() {
		return min(from, x.Len())
	}
	at := bytes.Index(x.text[x.texts[from]:], term)
	if at < 0 {
		return x.Len()
	}
	i, begins := slices.BinarySearch(x.texts, x.texts[from]+uint32(at))
	if !begins { // i is the entry after the one that it is in
		i--
	}
	return i
}
