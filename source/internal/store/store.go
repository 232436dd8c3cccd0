// Package store keeps JSON values by key in a folder, for data that is collected over many runs. Only
// an index is in memory.
//
// The folder has
//
//	lock      locked by the process that writes
//	table     all entries, one per line, in the order of keys
//	journal   entries that were put since the table was written; later ones count
//
// Compact writes a table anew beside the old one and renames it, then removes the journal. So a kill
// loses no more than the entries since the last Flush, and a journal that outlives its table repeats
// what the table has. The last line of a journal may be cut off; then it does not count.
package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	json "github.com/goccy/go-json"
	"golang.org/x/sys/unix"
)

// ErrBusy says that another process writes to the folder.
var ErrBusy = errors.New("another run is writing to it")

const (
	tableName   = "table.ndjson"
	journalName = "journal.ndjson"
	lockName    = "lock"

	bufferSize = 128 << 10
)

// A Store has entries of a key, a small Meta, which is kept in memory, and a body, which is not. It is
// not safe for concurrent use.
type Store[Meta any] struct {
	folder  string
	lock    *os.File // nil if the store is only read
	table   *os.File // nil if there is none
	journal *os.File // likewise
	entries map[string]entry[Meta]
	end     int64        // of the journal, with what is pending
	pending bytes.Buffer // lines for the journal
	forgot  bool         // an entry since the table was written
	failed  error        // of Flush: the journal may end within a line, so nothing may follow
}

type entry[Meta any] struct {
	meta      Meta
	hasBody   bool
	inJournal bool
	at        int64 // offset of the line
	length    int   // without the line end
}

// A line is an entry in a file.
type line[Meta any] struct {
	Key  string          `json:"key"`
	Meta Meta            `json:"meta"`
	Body json.RawMessage `json:"body,omitempty"`
}

// Open opens a store for reading and writing, and makes the folder if need be. It fails with ErrBusy
// while another process has it open.
func Open[Meta any](folder string) (*Store[Meta], error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(folder, lockName), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", folder, err), lock.Close())
	}
	s := &Store[Meta]{folder: folder, lock: lock}
	if err := s.load(os.O_CREATE | os.O_RDWR); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Read opens a store for reading: what it has now, also while another process writes. A folder that
// does not exist is an empty store.
func Read[Meta any](folder string) (*Store[Meta], error) {
	s := &Store[Meta]{folder: folder}
	if err := s.load(os.O_RDONLY); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// load reads the index. The journal is opened first: if a table replaces both in between, that table
// has what is in the journal.
func (s *Store[Meta]) load(journalMode int) (err error) {
	s.entries, s.end, s.forgot = map[string]entry[Meta]{}, 0, false
	if s.journal, err = openExisting(filepath.Join(s.folder, journalName), journalMode); err != nil {
		return err
	}
	if s.table, err = openExisting(filepath.Join(s.folder, tableName), os.O_RDONLY); err != nil {
		return err
	}
	if s.table != nil {
		if _, err := s.index(s.table, false); err != nil {
			return fmt.Errorf("%w; without %s the next run begins anew", err, s.folder)
		}
	}
	if s.journal == nil {
		return nil
	}
	if s.end, err = s.index(s.journal, true); err != nil || s.lock == nil {
		return err
	}
	return s.journal.Truncate(s.end) // a line that was cut off
}

// openExisting returns nil for a file that does not exist.
func openExisting(path string, mode int) (*os.File, error) {
	f, err := os.OpenFile(path, mode, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// index adds the entries of a file and returns where they end. An invalid line ends a journal.
func (s *Store[Meta]) index(f *os.File, isJournal bool) (end int64, err error) {
	r := bufio.NewReaderSize(f, bufferSize)
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if err == io.EOF && (isJournal || len(text) == 0) {
			return end, nil
		} else if err != nil && err != io.EOF {
			return end, err
		}
		var l line[Meta]
		if err := json.Unmarshal(text, &l); err != nil || l.Key == "" {
			if isJournal {
				return end, nil
			}
			return end, fmt.Errorf("%s:%d: damaged", f.Name(), n)
		}
		s.entries[l.Key] = entry[Meta]{l.Meta, l.Body != nil, isJournal, end, len(bytes.TrimSuffix(text, []byte{'\n'}))}
		end += int64(len(text))
	}
}

// Meta returns the meta of an entry, and whether it has a body; ok is false if there is no such entry.
func (s *Store[Meta]) Meta(key string) (meta Meta, hasBody, ok bool) {
	e, ok := s.entries[key]
	return e.meta, e.hasBody, ok
}

// All are the keys and metas of all entries that have a body, in no order.
func (s *Store[Meta]) All() iter.Seq2[string, Meta] {
	return func(yield func(string, Meta) bool) {
		for key, e := range s.entries {
			if e.hasBody && !yield(key, e.meta) {
				return
			}
		}
	}
}

// Keys are the keys of all entries in order.
func (s *Store[Meta]) Keys() []string { return slices.Sorted(maps.Keys(s.entries)) }

// Body returns the body of an entry, nil if it has none.
func (s *Store[Meta]) Body(key string) (json.RawMessage, error) {
	e, ok := s.entries[key]
	if !ok || !e.hasBody {
		return nil, nil
	}
	text, err := s.text(e)
	if err != nil {
		return nil, err
	}
	var l line[Meta]
	if err := json.Unmarshal(text, &l); err != nil || l.Key != key {
		return nil, fmt.Errorf("%s: the entry %s changed while it was read", s.folder, key)
	}
	return l.Body, nil
}

// text is the line of an entry.
func (s *Store[Meta]) text(e entry[Meta]) ([]byte, error) {
	file := s.table
	if e.inJournal {
		file = s.journal
		if err := s.Flush(); err != nil {
			return nil, err
		}
	}
	text := make([]byte, e.length)
	_, err := file.ReadAt(text, e.at)
	return text, err
}

// Put puts an entry; a nil body is none. Flush makes it outlive the process.
func (s *Store[Meta]) Put(key string, meta Meta, body json.RawMessage) error {
	text, err := json.MarshalWithOption(line[Meta]{key, meta, body}, json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("entry %s: %w", key, err)
	}
	s.entries[key] = entry[Meta]{meta, body != nil, true, s.end, len(text)}
	s.end += int64(len(text)) + 1
	s.pending.Write(text)
	s.pending.WriteByte('\n')
	if s.pending.Len() >= bufferSize {
		return s.Flush()
	}
	return nil
}

// PutMeta changes the meta of an entry, which may be new, and keeps its body.
func (s *Store[Meta]) PutMeta(key string, meta Meta) error {
	body, err := s.Body(key)
	if err != nil {
		return err
	}
	return s.Put(key, meta, body)
}

// Forget removes an entry. It comes back unless Compact follows.
func (s *Store[Meta]) Forget(key string) {
	delete(s.entries, key)
	s.forgot = true
}

// Flush writes what was put into the journal. It outlives the process, but perhaps not the machine.
// After an error it only returns that.
func (s *Store[Meta]) Flush() error {
	if s.failed != nil || s.pending.Len() == 0 {
		return s.failed
	}
	if s.journal == nil {
		return errors.New("the store is only read")
	}
	_, s.failed = s.journal.WriteAt(s.pending.Bytes(), s.end-int64(s.pending.Len()))
	s.pending.Reset()
	return s.failed
}

// Compact makes one table of table and journal, and waits until it is on disk.
func (s *Store[Meta]) Compact() error {
	if s.end == 0 && !s.forgot {
		return nil // the table has it all
	}
	path := filepath.Join(s.folder, tableName)
	if err := s.writeTable(path + ".new"); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	if err := syncFolder(s.folder); err != nil {
		return err
	}
	if err := errors.Join(s.closeFiles(), os.Remove(filepath.Join(s.folder, journalName))); err != nil {
		return err
	}
	return s.load(os.O_CREATE | os.O_RDWR)
}

func (s *Store[Meta]) writeTable(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, bufferSize)
	for _, key := range s.Keys() {
		text, err := s.text(s.entries[key])
		if err != nil {
			return err
		}
		if _, err := w.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Close flushes and closes the store. It does nothing the second time.
func (s *Store[Meta]) Close() error {
	err := errors.Join(s.Flush(), s.closeFiles())
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close()) // which unlocks it
		s.lock = nil
	}
	return err
}

func (s *Store[Meta]) closeFiles() (err error) {
	for _, f := range []**os.File{&s.table, &s.journal} {
		if *f != nil {
			err = errors.Join(err, (*f).Close())
			*f = nil
		}
	}
	return err
}
