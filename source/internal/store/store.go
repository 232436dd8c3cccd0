// Package store keeps JSON values by key in a folder, for data collected over many runs. Only an
// index is in memory.
//
// The folder has two files:
//
//	lock      locked by the writing process
//	store.db  a bbolt database: the buckets heads and bodies, both by key
//
// bbolt writes everything put between two flushes in one transaction, so a kill loses all of it or
// nothing. A writer opens the database only during a transaction, so that others can read.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	json "github.com/goccy/go-json"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// ErrBusy means that another process writes to the folder.
var ErrBusy = errors.New("another run is writing")

const (
	fileName = "store.db"
	lockName = "lock"

	mostPending = 16 << 20        // bytes waiting for a flush: keys in random order touch most pages each time
	patience    = 5 * time.Minute // a flush waits for readers, which take milliseconds
)

var (
	heads  = []byte("heads")
	bodies = []byte("bodies")
)

// A Store has entries by key: a small Meta in memory, and a body on disk. It is not safe for
// concurrent use.
type Store[Meta any] struct {
	folder  string
	lock    *os.File // nil if read-only
	db      *bolt.DB // nil for a writer, and if there is no database to read
	heads   map[string]head[Meta]
	pending map[string]*json.RawMessage // bodies of entries changed since the last flush; nil keeps the old body
	size    int                         // bytes of pending bodies
	failed  error                       // error of Flush, after which pending entries are lost and nothing may follow
}

// A head is a value in the bucket heads.
type head[Meta any] struct {
	Meta    Meta `json:"meta"`
	HasBody bool `json:"body,omitempty"`
}

// Open opens a store for reading and writing, and makes the folder if missing. It fails with
// ErrBusy while another process has the store open.
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
	s := &Store[Meta]{folder: folder, lock: lock, pending: map[string]*json.RawMessage{}}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Read opens a store read-only, as it is now. Another process may write; its flushes wait until the
// reader closes the store. A missing folder is an empty store.
func Read[Meta any](folder string) (*Store[Meta], error) {
	s := &Store[Meta]{folder: folder}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// load reads the index. A read-only store stays open.
func (s *Store[Meta]) load() error {
	s.heads = map[string]head[Meta]{}
	index := func(tx *bolt.Tx) error {
		if tx.Bucket(heads) == nil || tx.Bucket(bodies) == nil {
			return errors.New("the buckets are missing")
		}
		return tx.Bucket(heads).ForEach(func(key, value []byte) error {
			var h head[Meta]
			if err := json.Unmarshal(value, &h); err != nil {
				return fmt.Errorf("entry %q: %w", key, err)
			}
			s.heads[string(key)] = h
			return nil
		})
	}
	err := s.guarded(func() (err error) {
		if s.lock == nil {
			if s.db, err = openFile(s.path(), true); err != nil {
				return err
			}
		}
		return s.view(index)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Store[Meta]) path() string { return filepath.Join(s.folder, fileName) }

// openFile opens a database. It rejects a file shorter than its header states, which would cause a
// memory fault later.
func openFile(path string, readOnly bool) (*bolt.DB, error) {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return nil, errors.New("an empty file") // bbolt would create a database in it, or fail
	}
	db, err := bolt.Open(path, 0o644, &bolt.Options{ReadOnly: readOnly, Timeout: patience})
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = fmt.Errorf("%w, or has read it for more than %s", ErrBusy, patience)
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err == nil {
		err = db.View(func(tx *bolt.Tx) error {
			if info.Size() < tx.Size() {
				return fmt.Errorf("%d bytes, want %d", info.Size(), tx.Size())
			}
			return nil
		})
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// guarded turns a panic into an error, because bbolt maps the file into memory and trusts it.
func (s *Store[Meta]) guarded(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("damaged: %v", cause)
		}
		var ofSystem *fs.PathError
		switch {
		case err == nil:
		case errors.Is(err, ErrBusy) || errors.As(err, &ofSystem):
			err = fmt.Errorf("%s: %w", s.folder, err)
		default:
			err = fmt.Errorf("%s: %w; remove the folder to start over", s.path(), err)
		}
	}()
	return do()
}

func (s *Store[Meta]) view(read func(*bolt.Tx) error) error {
	if s.db != nil {
		return s.db.View(read)
	}
	db, err := openFile(s.path(), true)
	if err != nil {
		return err
	}
	return errors.Join(db.View(read), db.Close())
}

// Meta returns the meta of an entry and whether it has a body; ok is false if there is no such
// entry.
func (s *Store[Meta]) Meta(key string) (meta Meta, hasBody, ok bool) {
	h, ok := s.heads[key]
	return h.Meta, h.HasBody, ok
}

// Bodies returns the number of entries with a body.
func (s *Store[Meta]) Bodies() (n int) {
	for _, h := range s.heads {
		if h.HasBody {
			n++
		}
	}
	return n
}

// Keys returns the sorted keys of all entries.
func (s *Store[Meta]) Keys() []string { return slices.Sorted(maps.Keys(s.heads)) }

// Body returns the body of an entry; nil if it has none.
func (s *Store[Meta]) Body(key string) (body json.RawMessage, err error) {
	if !s.heads[key].HasBody {
		return nil, nil
	}
	if changed := s.pending[key]; changed != nil {
		return *changed, nil
	}
	err = s.guarded(func() error {
		return s.view(func(tx *bolt.Tx) error {
			body = slices.Clone(tx.Bucket(bodies).Get([]byte(key)))
			return nil
		})
	})
	return body, err
}

// Put sets an entry; a nil body means none. Flush makes it durable.
func (s *Store[Meta]) Put(key string, meta Meta, body json.RawMessage) error {
	s.heads[key] = head[Meta]{meta, body != nil}
	s.pending[key] = &body
	if s.size += len(key) + len(body); s.size >= mostPending {
		return s.Flush()
	}
	return nil
}

// PutMeta sets the meta of an entry, which may be new, and keeps its body.
func (s *Store[Meta]) PutMeta(key string, meta Meta) {
	s.heads[key] = head[Meta]{meta, s.heads[key].HasBody}
	if _, changed := s.pending[key]; !changed {
		s.pending[key] = nil
	}
}

// Forget removes an entry.
func (s *Store[Meta]) Forget(key string) {
	delete(s.heads, key)
	s.pending[key] = new(json.RawMessage)
}

// Flush writes all changes or none. After an error it returns only that error.
func (s *Store[Meta]) Flush() error {
	if s.failed != nil || len(s.pending) == 0 {
		return s.failed
	}
	s.failed = s.guarded(s.commit)
	s.size = 0
	clear(s.pending)
	return s.failed
}

// commit writes the pending entries. A new database is renamed into place when complete.
func (s *Store[Meta]) commit() error {
	path := s.path()
	_, missing := os.Stat(path)
	if missing != nil {
		path += ".new"
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	db, err := openFile(path, false)
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(s.write), db.Close()); err != nil || missing == nil {
		return err
	}
	if err := os.Rename(path, s.path()); err != nil {
		return err
	}
	folder, err := os.Open(s.folder) // a power failure must not undo the rename, after which later flushes write there
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func (s *Store[Meta]) write(tx *bolt.Tx) error {
	headsNow, err := tx.CreateBucketIfNotExists(heads)
	if err != nil {
		return err
	}
	bodiesNow, err := tx.CreateBucketIfNotExists(bodies)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.pending)) { // neighbors share pages
		key, body := []byte(name), s.pending[name]
		if h, kept := s.heads[name]; kept {
			var value []byte
			if value, err = json.MarshalWithOption(h, json.DisableHTMLEscape()); err == nil {
				err = headsNow.Put(key, value)
			}
		} else {
			err = headsNow.Delete(key)
		}
		switch {
		case err != nil || body == nil:
		case *body == nil:
			err = bodiesNow.Delete(key)
		default:
			err = bodiesNow.Put(key, *body)
		}
		if err != nil {
			return fmt.Errorf("entry %s: %w", name, err)
		}
	}
	return nil
}

// Close flushes and closes the store. Calling it again has no effect.
func (s *Store[Meta]) Close() error {
	err := s.Flush()
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
		s.db = nil
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close()) // closing unlocks it
		s.lock = nil
	}
	return err
}
