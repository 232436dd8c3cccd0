// Package spool stores per-object records of a run, in memory or in a temporary file.
package spool

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Sizes in bytes.
const (
	Memory       = 16 << 20 // default bytes in memory, the entries of some 200,000 objects
	scratchChunk = 16 << 10 // bytes written to the file at once
)

// A Scratch stores per-object records so that memory does not grow with their number: beyond its
// limit it uses a temporary file. The file has no name, so nothing is left when the process ends.
// If no file can be made or the disk is full, everything stays in memory.
//
// Only one goroutine may write at a time. Many may read.
type Scratch struct {
	log    *slog.Logger
	limit  int         // limit of memory, bytes
	memory int         // bytes in memory, except the last chunk of each part
	file   scratchFile // nil until memory is not enough
	size   int64       // bytes in the file
	failed bool        // whether the file is full or cannot be made
}

type scratchFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// New returns a Scratch that keeps up to limit bytes in memory. It logs one warning if it cannot
// make a file.
func New(log *slog.Logger, limit int) *Scratch { return &Scratch{log: log, limit: limit} }

// Close frees the disk space. Nothing may be read afterwards.
func (s *Scratch) Close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

// store takes over a chunk. The memory of a chunk written to the file can be reused.
func (s *Scratch) store(data []byte) (stored chunk, reusable []byte) {
	if s.memory+len(data) > s.limit && !s.failed {
		at, err := s.write(data)
		if err == nil {
			return chunk{at: at, size: len(data)}, data[:0]
		}
		s.failed = true
		s.log.Warn("no temporary file: the run will take more memory; TMPDIR chooses the folder", "error", err)
	}
	s.memory += len(data)
	return chunk{data: data}, nil
}

func (s *Scratch) write(data []byte) (at int64, err error) {
	if s.file == nil {
		file, err := os.CreateTemp("", "followpress-publish-")
		if err != nil {
			return 0, err
		}
		s.file = file
		if err := os.Remove(file.Name()); err != nil {
			s.log.Warn("a temporary file will be left", "error", err)
		}
	}
	at = s.size
	n, err := s.file.WriteAt(data, at)
	s.size += int64(n)
	return at, err
}

// A Spool is a list of records in a scratch, in one or several parts.
type Spool struct {
	scratch *Scratch
	Parts   []spoolPart
	Records int // in all parts
}

type spoolPart struct {
	chunks []chunk
	last   []byte // the chunk that is being filled
}

// A chunk holds records, each after its length.
type chunk struct {
	data []byte // nil if the records are in the file
	at   int64
	size int
}

// List returns an empty Spool with this number of parts.
func (s *Scratch) List(parts int) *Spool { return &Spool{scratch: s, Parts: make([]spoolPart, parts)} }

// Add appends a record to a part. The caller may reuse record.
func (s *Spool) Add(part int, record []byte) {
	s.Records++
	p := &s.Parts[part]
	if len(p.last) > 0 && len(p.last)+len(record)+binary.MaxVarintLen64 > min(scratchChunk, s.scratch.limit) {
		var full chunk
		full, p.last = s.scratch.store(p.last)
		p.chunks = append(p.chunks, full)
	}
	p.last = binary.AppendUvarint(p.last, uint64(len(record)))
	p.last = append(p.last, record...)
}

// all returns the records of a part in the order of Add.
func (s *Spool) all(part int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		p := &s.Parts[part]
		var buffer []byte
		for i := range len(p.chunks) + 1 {
			data := p.last
			if i < len(p.chunks) {
				c := p.chunks[i]
				if data = c.data; data == nil {
					if cap(buffer) < c.size {
						buffer = make([]byte, c.size)
					}
					data = buffer[:c.size]
					if _, err := s.scratch.file.ReadAt(data, c.at); err != nil {
						yield("", fmt.Errorf("read the temporary file: %w", err))
						return
					}
				}
			}
			text := string(data) // once for all records of the chunk
			for at := 0; at < len(data); {
				size, n := binary.Uvarint(data[at:])
				at += n
				if !yield(text[at:at+int(size)], nil) {
					return
				}
				at += int(size)
			}
		}
	}
}

// AddEntry appends the MD5, size and key of an entry to a part.
func (s *Spool) AddEntry(part int, e site.Entry) {
	var space [256]byte
	record := append(space[:0], e.MD5[:]...)
	record = binary.BigEndian.AppendUint64(record, uint64(e.Size))
	s.Add(part, append(record, e.Key...))
}

// Entries returns the entries of a part, with the fields that AddEntry stores.
func (s *Spool) Entries(part int) iter.Seq2[site.Entry, error] {
	return decoded(s.all(part), func(record string) (e site.Entry) {
		n := copy(e.MD5[:], record)
		e.Size = int64(binary.BigEndian.Uint64([]byte(record[n : n+8])))
		e.Key = site.Key(record[n+8:])
		return e
	})
}

// AddInfo appends a listed object to a part: its size, time, ETag and key.
func (s *Spool) AddInfo(part int, info storage.Info) {
	var space [256]byte
	record := binary.AppendVarint(space[:0], info.Size)
	record = binary.AppendVarint(record, info.Modified.Unix())
	record = binary.AppendVarint(record, int64(info.Modified.Nanosecond()))
	record = binary.AppendUvarint(record, uint64(len(info.ETag)))
	record = append(record, info.ETag...)
	s.Add(part, append(record, info.Key...))
}

// Infos returns the listed objects of a part, with the fields that AddInfo stores.
func (s *Spool) Infos(part int) iter.Seq2[storage.Info, error] {
	return decoded(s.all(part), func(record string) (info storage.Info) {
		varint := func() int64 {
			value, n := binary.Varint([]byte(record[:min(len(record), binary.MaxVarintLen64)]))
			record = record[n:]
			return value
		}
		info.Size = varint()
		seconds := varint()
		info.Modified = time.Unix(seconds, varint()).UTC()
		size, n := binary.Uvarint([]byte(record[:min(len(record), binary.MaxVarintLen64)]))
		record = record[n:]
		info.ETag, info.Key = record[:size], site.Key(record[size:])
		return info
	})
}

// Keys returns the keys of a part whose records are keys.
func (s *Spool) Keys(part int) iter.Seq2[site.Key, error] {
	return decoded(s.all(part), func(record string) site.Key { return site.Key(record) })
}

func decoded[T any](records iter.Seq2[string, error], decode func(string) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for record, err := range records {
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			if !yield(decode(record), nil) {
				return
			}
		}
	}
}
