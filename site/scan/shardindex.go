package scan

import (
	"bytes"
	"math"
	"slices"
	"sync"
)

// A ShardIndex speeds up searches in a search shard: it has the header, the positions of entries, and the folded
// texts. It is safe for concurrent use.
type ShardIndex struct {
	Header ShardHeader

	starts []uint32 // start of each entry in the shard; then the end of the last entry, plus one
	texts  []uint32 // start of each entry's text
	text   []byte   // text of each entry: the address and the folded name, each followed by fieldEnd
}

// fieldEnd ends a text. No term contains it, because UTF-8 does not, and noText is another byte.
const fieldEnd = 0xfe

// An indexer is reusable memory for building an index of unknown size.
type indexer struct {
	starts, texts []uint32
	text          []byte
	fold          Matcher
}

var indexers = sync.Pool{New: func() any { return new(indexer) }}

// mostIndexer is the maximum text capacity in bytes of an indexer to reuse. Most shards need a quarter.
const mostIndexer = 256 << 10

// IndexShard indexes a search shard. ok is false if the shard is malformed; scan it instead.
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

// index fills the indexer, or returns false.
func (x *indexer) index(shard []byte) (ok bool) {
	x.starts, x.texts, x.text = x.starts[:0], x.texts[:0], x.text[:0]
	end := 0
	for entry := range Entries(shard) {
		address, name, ok := searched(entry)
		if !ok || !isASCII(address) {
			return false
		}
		start := cap(shard) - cap(entry) // works because Entries yields slices of the shard
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

// Bytes returns the memory of the index.
func (x *ShardIndex) Bytes() int { return 4*cap(x.starts) + 4*cap(x.texts) + cap(x.text) }

// Len returns the number of entries.
func (x *ShardIndex) Len() int { return len(x.texts) }

// Entry returns entry i as a slice of the indexed shard.
func (x *ShardIndex) Entry(shard []byte, i int) []byte {
	return shard[x.starts[i] : x.starts[i+1]-1]
}

// Next returns the first entry from index from on that a Matcher for the term would match, or Len.
func (x *ShardIndex) Next(from int, term []byte) int {
	if len(term) == 0 || from >= x.Len() {
		return min(from, x.Len())
	}
	at := bytes.Index(x.text[x.texts[from]:], term)
	if at < 0 {
		return x.Len()
	}
	i, begins := slices.BinarySearch(x.texts, x.texts[from]+uint32(at))
	if !begins { // i is the next entry
		i--
	}
	return i
}
