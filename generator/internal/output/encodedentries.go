package output

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
)

// encodedEntries are entries waiting for the manifest, without pointers for the garbage collector
// to follow, each with the number of its shard in the partition. Only the entries of one shard are
// decoded at a time, in order.
type encodedEntries string

// Offsets in an encoded entry. The size follows the key.
const (
	md5At    = 1
	sha256At = md5At + len(site.MD5{})
	keyAt    = sha256At + len(site.SHA256{}) // length of the key, then the key
)

func appendEntry(b []byte, shard byte, e *site.Entry) []byte {
	b = append(b, shard)
	b = append(b, e.MD5[:]...)
	b = append(b, e.SHA256[:]...)
	b = binary.AppendUvarint(b, uint64(len(e.Key)))
	b = append(b, e.Key...)
	return binary.AppendUvarint(b, uint64(e.Size))
}

// uvarint decodes a number as written by binary.AppendUvarint, and returns its end.
func (e encodedEntries) uvarint(at int) (n uint64, end int) {
	for shift := 0; ; shift += 7 {
		b := e[at]
		at++
		n |= uint64(b&0x7F) << shift
		if b < 0x80 {
			return n, at
		}
	}
}

// key returns the key of the entry at an offset, and the key's end.
func (e encodedEntries) key(at int) (key string, end int) {
	length, at := e.uvarint(at + keyAt)
	end = at + int(length)
	return string(e[at:end]), end
}

// entry decodes the entry at an offset.
func (e encodedEntries) entry(at int) (decoded site.Entry) {
	key, end := e.key(at)
	copy(decoded.MD5[:], e[at+md5At:])
	copy(decoded.SHA256[:], e[at+sha256At:])
	size, _ := e.uvarint(end)
	decoded.Key, decoded.Size = site.Key(key), int64(size)
	return decoded
}

// A row is the offset of an entry.
type row struct {
	at   int
	word uint64 // eight bytes of the key, during sorting
}

// byShard returns the rows of each shard, in any order.
func (e encodedEntries) byShard(shards int) [][]row {
	counts := make([]int, shards)
	var starts []int
	for at := 0; at < len(e); {
		counts[e[at]]++
		starts = append(starts, at)
		_, at = e.key(at)
		_, at = e.uvarint(at)
	}
	all := make([]row, len(starts))
	rows := make([][]row, shards)
	for i, n := range counts {
		rows[i], all = all[:0:n], all[n:]
	}
	for _, at := range starts {
		rows[e[at]] = append(rows[e[at]], row{at: at})
	}
	return rows
}

// fewRows are sorted by comparing whole keys.
const fewRows = 6

// sort sorts rows by keys whose first `equal` bytes agree. Many keys have long common prefixes, so
// sort compares eight bytes of each as a number, and recurses into rows with the same number. No
// key contains a zero byte, which marks its end.
func (e encodedEntries) sort(rows []row, equal int) {
	if len(rows) <= fewRows {
		slices.SortFunc(rows, func(a, b row) int {
			keyA, _ := e.key(a.at)
			keyB, _ := e.key(b.at)
			return strings.Compare(keyA[equal:], keyB[equal:])
		})
		return
	}
	for i := range rows {
		key, _ := e.key(rows[i].at)
		rows[i].word = wordOf(key[equal:])
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.word, b.word) })
	for len(rows) > 0 {
		same := 1
		for same < len(rows) && rows[same].word == rows[0].word {
			same++
		}
		if same > 1 && byte(rows[0].word) != 0 {
			e.sort(rows[:same], equal+8)
		}
		rows = rows[same:]
	}
}

// wordOf returns the first eight bytes of a text as a number with the same order.
func wordOf(text string) uint64 {
	var word [8]byte
	copy(word[:], text)
	return binary.BigEndian.Uint64(word[:])
}

// shardEntries are the entries of one shard, sorted by key.
type shardEntries struct {
	name    string
	encoded encodedEntries
	rows    []row
}

// all yields the entries in order.
func (s shardEntries) all() iter.Seq[site.Entry] {
	return func(yield func(site.Entry) bool) {
		for _, r := range s.rows {
			if !yield(s.encoded.entry(r.at)) {
				return
			}
		}
	}
}

// manifest returns the shard. It puts the objects into buffer, if it is large enough.
func (s shardEntries) manifest(buffer []site.Entry) site.Manifest {
	return site.Manifest{Shard: s.name, Objects: slices.AppendSeq(slices.Grow(buffer[:0], len(s.rows)), s.all())}
}
