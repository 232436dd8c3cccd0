package output

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/followpress/followpress/site"
)

const (
	// partitionDigits is the number of leading hexadecimal digits of a shard's name that select its
	// partition.
	partitionDigits = 2
	// spillBytes is the size at which a partition in memory is written to the file.
	spillBytes = 64 << 10
	// entriesAtOnce bounds the entries added to a partition at once: less than its memory.
	entriesAtOnce = 256
)

// An entryStore has the entries of all objects of a site. A site may have tens of millions, which
// are needed only when all are known, shard by shard. So they wait in a temporary file, in 256
// partitions of successive shards. Memory is 16 MiB at most, plus 64 KiB for each goroutine that
// adds, and a partition for each that reads one.
type entryStore struct {
	base       string // path of the API, with a slash
	digits     int    // length of shard names
	shardNames []string
	partitions []partitionOfEntries

	objects, bytes atomic.Int64 // totals of all entries
	counting       sync.Mutex
	kinds          kindCounts // guarded by counting

	create func() (*os.File, error) // creates the file; nil if everything stays in memory
	once   sync.Once
	file   *os.File // nil until something is spilled
	err    error    // error of create
	end    atomic.Int64
	free   sync.Pool // holds *adding
}

// partitionOfEntries has the encoded entries of some shards, in any order.
type partitionOfEntries struct {
	mu      sync.Mutex
	last    []byte
	full    [][]byte // used if there is no file
	spilled []extent
}

// An extent is a part of the file.
type extent struct{ at, bytes int64 }

// newEntryStore returns a store for a site with this base path and number of objects. create opens
// the temporary file when needed; if nil, all entries stay in memory. The caller must close the
// store.
func newEntryStore(base string, objects int64, create func() (*os.File, error)) *entryStore {
	digits := site.ShardDigits(int(objects))
	return &entryStore{
		base: base + "/", digits: digits, shardNames: site.HashPrefixes(digits), create: create,
		partitions: make([]partitionOfEntries, 1<<(4*min(digits, partitionDigits))),
		kinds:      kindCounts{},
		free:       sync.Pool{New: func() any { return &adding{kinds: kindCounts{}} }},
	}
}

// InTempFolder creates an unnamed file in the folder of temporary files.
func InTempFolder() (*os.File, error) {
	file, err := os.CreateTemp("", "followpress-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (s *entryStore) shardsPerPartition() int { return len(s.shardNames) / len(s.partitions) }

// An adding is memory for adding entries.
type adding struct {
	shards  []uint16 // by entry
	order   []uint32 // entries by partition
	encoded []byte
	spare   []byte // a buffer of a partition
	kinds   kindCounts
}

// add adds entries. It may be called concurrently. It locks a partition once for all of its
// entries, unless they are very many.
func (s *entryStore) add(entries []site.Entry) error {
	a := s.free.Get().(*adding)
	defer s.free.Put(a)
	per := s.shardsPerPartition()
	var ends [1<<(4*partitionDigits) + 1]int // end of each partition in order, once filled
	bytes := int64(0)
	a.shards, a.order = a.shards[:0], slices.Grow(a.order[:0], len(entries))[:len(entries)]
	for i := range entries {
		bytes += entries[i].Size
		a.kinds.add(kindOf(entries[i].Key, s.base), kindCount{1, entries[i].Size})
		shard := shardNumber(entries[i].Key, s.digits)
		a.shards = append(a.shards, uint16(shard))
		ends[shard/per+1]++
	}
	for i := range s.partitions {
		ends[i+1] += ends[i]
	}
	for i, shard := range a.shards {
		end := &ends[int(shard)/per]
		a.order[*end] = uint32(i)
		*end++
	}
	first := 0
	for i := range s.partitions {
		for part := range slices.Chunk(a.order[first:ends[i]], entriesAtOnce) {
			a.encoded = a.encoded[:0]
			for _, n := range part {
				a.encoded = appendEntry(a.encoded, byte(int(a.shards[n])%per), &entries[n])
			}
			if err := s.append(&s.partitions[i], a); err != nil {
				return err
			}
		}
		first = ends[i]
	}
	s.objects.Add(int64(len(entries)))
	s.bytes.Add(bytes)
	s.counting.Lock()
	defer s.counting.Unlock()
	for kind, n := range a.kinds {
		s.kinds.add(kind, n)
	}
	clear(a.kinds)
	return nil
}

// append appends the encoded entries of a to a partition. The partition is unlocked while a full
// buffer is written.
func (s *entryStore) append(p *partitionOfEntries, a *adding) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last)+len(a.encoded) > spillBytes {
		var full []byte
		full, p.last = p.last, append(a.spare[:0], a.encoded...)
		a.spare = nil
		if s.create == nil {
			p.full = append(p.full, full)
			return nil
		}
		p.mu.Unlock()
		e, err := s.spill(full)
		p.mu.Lock()
		a.spare = full
		p.spilled = append(p.spilled, e)
		return err
	}
	p.last = append(p.last, a.encoded...)
	return nil
}

// spill writes to the file.
func (s *entryStore) spill(b []byte) (extent, error) {
	s.once.Do(func() { s.file, s.err = s.create() })
	if s.err != nil {
		return extent{}, fmt.Errorf("create a temporary file for the manifest: %w", s.err)
	}
	e := extent{s.end.Add(int64(len(b))) - int64(len(b)), int64(len(b))}
	if _, err := s.file.WriteAt(b, e.at); err != nil {
		return e, fmt.Errorf("write the temporary file of the manifest: %w", err)
	}
	return e, nil
}

// encoded returns all entries of a partition.
func (s *entryStore) encoded(p *partitionOfEntries) (encodedEntries, error) {
	size, longest := int64(len(p.last)), int64(0)
	for _, e := range p.spilled {
		size, longest = size+e.bytes, max(longest, e.bytes)
	}
	for _, b := range p.full {
		size += int64(len(b))
	}
	var all strings.Builder // a string from the start, because keys point into it
	all.Grow(int(size))
	buffer := make([]byte, longest)
	for _, e := range p.spilled {
		part := buffer[:e.bytes]
		if _, err := s.file.ReadAt(part, e.at); err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the temporary file of the manifest: %w", err)
		}
		all.Write(part)
	}
	for _, b := range p.full {
		all.Write(b)
	}
	all.Write(p.last)
	return encodedEntries(all.String()), nil
}

// shards returns the shards of a partition in order. It may be called concurrently, once all
// entries have been added.
func (s *entryStore) shards(partition int) ([]shardEntries, error) {
	encoded, err := s.encoded(&s.partitions[partition])
	if err != nil {
		return nil, err
	}
	per := s.shardsPerPartition()
	shards := make([]shardEntries, per)
	for i, rows := range encoded.byShard(per) {
		encoded.sort(rows, 0)
		shards[i] = shardEntries{s.shardNames[partition*per+i], encoded, rows}
	}
	return shards, nil
}

func (s *entryStore) close() error {
	s.partitions = nil
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// shardNumber returns the index of site.ManifestShard among all shard names of this length.
func shardNumber(key site.Key, digits int) int {
	var short [128]byte // most keys fit, without an allocation
	sum := sha256.Sum256(append(short[:0], key...))
	return int(binary.BigEndian.Uint16(sum[:]) >> (16 - 4*digits))
}
