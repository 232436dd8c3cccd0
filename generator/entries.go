package generator

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/followpress/followpress/site"
)

const (
	// partitionDigits are the hexadecimal digits of a shard's name that tell its partition.
	partitionDigits = 2
	// spillBytes is the memory of a partition, before it goes to the file.
	spillBytes = 64 << 10
)

// An entry is a line of the manifest, and the unit that renders the object.
type entry struct {
	site.Entry
	unit uint32 // its number among the units of all parts
}

// An entryStore has the entries of all objects of a site. A site may have tens of millions, and they
// are needed only when all are known, shard by shard: so they wait in a temporary file, in 256
// partitions of successive shards. Memory is 16 MiB at most, besides a partition for each goroutine
// that reads one.
type entryStore struct {
	digits     int // of the names of shards
	shardNames []string
	partitions []partitionOfEntries

	objects, bytes atomic.Int64 // of all entries

	create func() (*os.File, error) // creates the file; nil if all stays in memory
	once   sync.Once
	file   *os.File // nil until something is spilled
	err    error    // of create
	end    atomic.Int64
}

// A partitionOfEntries has the entries of some shards, encoded, in any order.
type partitionOfEntries struct {
	mu      sync.Mutex
	last    []byte
	full    [][]byte // if there is no file
	spilled []extent
}

// An extent is a part of the file.
type extent struct{ at, bytes int64 }

// newEntryStore returns a store for a site of that many objects. create opens the temporary file once
// it is needed; without it all entries stay in memory. close must be called.
func newEntryStore(objects int64, create func() (*os.File, error)) *entryStore {
	digits := site.ShardDigits(int(objects))
	return &entryStore{
		digits: digits, shardNames: site.HashPrefixes(digits), create: create,
		partitions: make([]partitionOfEntries, 1<<(4*min(digits, partitionDigits))),
	}
}

// inTempFolder creates a file without a name in the folder of temporary files.
func inTempFolder() (*os.File, error) {
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

// add adds entries. It may be called from many goroutines.
func (s *entryStore) add(entries []entry) error {
	per := s.shardsPerPartition()
	bytes := int64(0)
	var b []byte
	for i := range entries {
		e := &entries[i]
		bytes += e.Size
		shard := site.ManifestShardNumber(e.Key, s.digits)
		b = binary.AppendUvarint(b[:0], uint64(shard%per))
		b = binary.AppendUvarint(b, uint64(e.unit))
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = append(b, e.MD5[:]...)
		b = append(b, e.SHA256[:]...)
		b = binary.AppendUvarint(b, uint64(len(e.Key)))
		b = append(b, e.Key...)
		if err := s.append(&s.partitions[shard/per], b); err != nil {
			return err
		}
	}
	s.objects.Add(int64(len(entries)))
	s.bytes.Add(bytes)
	return nil
}

func (s *entryStore) append(p *partitionOfEntries, encoded []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last)+len(encoded) > spillBytes {
		if err := s.spill(p); err != nil {
			return err
		}
	}
	p.last = append(p.last, encoded...)
	return nil
}

// spill empties the memory of a partition.
func (s *entryStore) spill(p *partitionOfEntries) error {
	if s.create == nil {
		p.full = append(p.full, p.last)
		p.last = make([]byte, 0, spillBytes)
		return nil
	}
	s.once.Do(func() { s.file, s.err = s.create() })
	if s.err != nil {
		return fmt.Errorf("create a temporary file for the manifest: %w", s.err)
	}
	e := extent{s.end.Add(int64(len(p.last))) - int64(len(p.last)), int64(len(p.last))}
	if _, err := s.file.WriteAt(p.last, e.at); err != nil {
		return fmt.Errorf("write the temporary file of the manifest: %w", err)
	}
	p.spilled = append(p.spilled, e)
	p.last = p.last[:0]
	return nil
}

func (s *entryStore) encoded(p *partitionOfEntries) ([]byte, error) {
	size := int64(len(p.last))
	for _, e := range p.spilled {
		size += e.bytes
	}
	for _, b := range p.full {
		size += int64(len(b))
	}
	all := make([]byte, 0, size)
	for _, e := range p.spilled {
		part := all[len(all) : len(all)+int(e.bytes)]
		if _, err := s.file.ReadAt(part, e.at); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the temporary file of the manifest: %w", err)
		}
		all = all[:len(all)+len(part)]
	}
	for _, b := range p.full {
		all = append(all, b...)
	}
	return append(all, p.last...), nil
}

// A shardEntries are the entries of one shard, sorted by key.
type shardEntries struct {
	name    string
	entries []entry
}

func (s shardEntries) manifest() site.Manifest {
	m := site.Manifest{Shard: s.name, Objects: make([]site.Entry, len(s.entries))}
	for i, e := range s.entries {
		m.Objects[i] = e.Entry
	}
	return m
}

// shards returns the shards of a partition in their order. It may be called from many goroutines, once
// all entries have been added.
func (s *entryStore) shards(partition int) ([]shardEntries, error) {
	encoded, err := s.encoded(&s.partitions[partition])
	if err != nil {
		return nil, err
	}
	per := s.shardsPerPartition()
	shards := make([]shardEntries, per)
	for i := range shards {
		shards[i].name = s.shardNames[partition*per+i]
	}
	text := string(encoded) // the memory of all keys
	for len(encoded) > 0 {
		next := func() uint64 {
			n, size := binary.Uvarint(encoded)
			encoded = encoded[size:]
			return n
		}
		shard := next()
		e := entry{unit: uint32(next()), Entry: site.Entry{Size: int64(next())}}
		encoded = encoded[copy(e.MD5[:], encoded):]
		encoded = encoded[copy(e.SHA256[:], encoded):]
		length := int(next())
		at := len(text) - len(encoded)
		e.Key = site.Key(text[at : at+length])
		encoded = encoded[length:]
		shards[shard].entries = append(shards[shard].entries, e)
	}
	for _, shard := range shards {
		slices.SortFunc(shard.entries, func(a, b entry) int { return cmp.Compare(a.Key, b.Key) })
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
