// Package tarfile reads a site from a tar file without unpacking it.
package tarfile

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/followpress/followpress/internal/regular"
	"github.com/followpress/followpress/internal/tarentry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage/internal/object"
)

// A File reads objects from a tar file. (afero's tarfs would load the whole file into memory, and its open files
// share an offset.)
type File struct {
	path      string
	reopening sync.Mutex        // held by Reopen
	indexed   func(bytes int64) // called by Reopen; may be nil
	mu        sync.Mutex
	current   *openFile // under mu
}

// An openFile is an open tar file, even after another file has taken its name.
type openFile struct {
	file    *os.File
	path    string
	info    fs.FileInfo    // as of opening
	root    []byte         // nil if the root is not the last entry
	readers sync.WaitGroup // reads in progress
	seed    maphash.Seed   // random, because names are input and could be chosen to collide

	indexing sync.Mutex
	index    fileIndex // guarded by indexing; nil until needed
}

// A fileIndex locates the entries of a tar file in 8 bytes each: the upper half is a hash of the key, the lower half
// the block where the entry begins. Elements are sorted. A read compares the key with the header there.
type fileIndex []uint64

// indexElement is the size of an element of a fileIndex, in bytes.
const indexElement = 8

// Open opens a tar file. If the root is the last entry, Open does not index the file; the first read of another
// object does. A publish of an unchanged site may need the root only.
func Open(path string) (*File, error) {
	opened, err := open(path)
	if err != nil {
		return nil, err
	}
	if opened.root == nil {
		if _, err := opened.entries(context.Background()); err != nil {
			return nil, errors.Join(err, opened.file.Close())
		}
	}
	return &File{path: path, current: opened}, nil
}

func open(path string) (*openFile, error) {
	file, err := os.OpenFile(path, regular.Flags, 0)
	if err != nil {
		return nil, err
	}
	t := &openFile{file: file, path: path, seed: maphash.MakeSeed()}
	if t.info, err = file.Stat(); err == nil {
		err = regular.Check(path, t.info.Mode())
	}
	if err == nil {
		t.root, err = lastRoot(file, t.info.Size())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), file.Close())
	}
	return t, nil
}

// use returns the current file, which stays open until done is called.
func (t *File) use() (opened *openFile, done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.readers.Add(1)
	return t.current, t.current.readers.Done
}

// Get reads an object, or returns ErrNotFound.
func (t *File) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return t.GetAdmitted(ctx, key, object.AdmitAll)
}

// GetAdmitted is like Get, but first calls admit with the size in bytes, before it allocates memory. It returns
// admit's error, if any. A replaced file stays open while admit waits.
func (t *File) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	opened, done := t.use()
	defer done()
	return opened.get(ctx, key, admit)
}

// Read reads an object with its Info, or returns ErrNotFound. Modified is the time of the file.
func (t *File) Read(ctx context.Context, key site.Key) ([]byte, object.Info, error) {
	opened, done := t.use()
	defer done()
	body, err := opened.get(ctx, key, object.AdmitAll)
	if err != nil {
		return nil, object.Info{}, err
	}
	return body, object.InfoOfFile(key, site.Sum(body), opened.info), nil
}

// settleTime is the age from which a new file counts as complete. File times are coarse, so a younger file may change
// without a new time. Tests change it.
var settleTime = 50 * time.Millisecond

// OnIndex makes Reopen report the memory of indexes in bytes, which includes both files during a switch. It must be
// called before any other method.
func (t *File) OnIndex(report func(bytes int64)) { t.indexed = report }

func (t *File) tell(elements int) {
	if t.indexed != nil {
		t.indexed(int64(elements) * indexElement)
	}
}

// Reopen switches to the file that has the name now, if that file differs or has changed, and indexes it. After an
// error, the old file stays in use. Reads in progress continue in the old file, and Reopen waits for them.
func (t *File) Reopen(ctx context.Context) error {
	t.reopening.Lock()
	defer t.reopening.Unlock()
	was := t.current // only Reopen changes it
	info, err := os.Stat(t.path)
	if err != nil {
		return fmt.Errorf("look for a new site: %w", err)
	}
	if os.SameFile(info, was.info) && sameContent(info, was.info) {
		index, err := was.entries(ctx)
		t.tell(len(index))
		return err
	}
	if age := time.Since(info.ModTime()); 0 <= age && age < settleTime {
		return nil // the next Reopen finds it
	}
	next, err := open(t.path)
	if err != nil {
		return fmt.Errorf("open the new site: %w", err)
	}
	t.tell(was.elements() + int(next.expected()))
	defer func() { t.tell(t.current.elements()) }()
	if err := next.check(ctx); err != nil {
		return errors.Join(fmt.Errorf("open the new site: %w", err), next.file.Close())
	}
	t.mu.Lock()
	t.current = next
	t.mu.Unlock()
	was.readers.Wait()
	_ = was.file.Close() // read-only, so an error does not matter
	return nil
}

// check returns an error if the file cannot be indexed or has no valid root.
func (t *openFile) check(ctx context.Context) error {
	if _, err := t.entries(ctx); err != nil {
		return err
	}
	body, err := t.get(ctx, site.RootKey, object.AdmitAll)
	if errors.Is(err, object.ErrNotFound) {
		return fmt.Errorf("%s has no %s: not a site, or an incomplete one", t.path, site.RootKey)
	}
	if err == nil {
		_, err = site.ParseRoot(body)
	}
	return err
}

func sameContent(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// lastRoot returns the root if it is the last entry, as in files of the generator, else nil.
func lastRoot(file *os.File, size int64) ([]byte, error) {
	size -= size % tarentry.Block
	tail := make([]byte, min(size, site.MaxRootBytes))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	zeros := len(bytes.TrimRight(tail, "\x00"))
	for at := len(tail) - tarentry.Block; at >= 0; at -= tarentry.Block {
		if !bytes.HasPrefix(tail[at:], []byte(site.RootKey+"\x00")) {
			continue
		}
		header, err := tar.NewReader(bytes.NewReader(tail[at:][:tarentry.Block])).Next()
		if err != nil || header.Name != string(site.RootKey) || header.Typeflag != tar.TypeReg { // content that looks like a header
			continue // part of an object
		}
		body := tail[at+tarentry.Block:]
		if header.Size > int64(len(body)) || int64(at+tarentry.Block)+header.Size+tarentry.Padding(header.Size) < int64(zeros) { // truncated, or not the last entry
			continue // it is not whole, or something is behind it
		}
		return bytes.Clone(body[:header.Size]), nil
	}
	return nil, nil
}

// entries returns the index, and builds it in the first call.
func (t *openFile) entries(ctx context.Context) (fileIndex, error) {
	t.indexing.Lock()
	defer t.indexing.Unlock()
	if t.index == nil {
		index, err := t.makeIndex(ctx)
		if err == nil {
			err = t.unchanged()
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", t.path, err)
		}
		t.index = index
	}
	return t.index, nil
}

// elements returns the length of the index, or 0 before it is built.
func (t *openFile) elements() int {
	t.indexing.Lock()
	defer t.indexing.Unlock()
	return len(t.index)
}

func (t *openFile) makeIndex(ctx context.Context) (fileIndex, error) {
	// Reading sequentially is faster than seeking past each of many small bodies.
	position := &counter{reader: bufio.NewReaderSize(io.NewSectionReader(t.file, 0, math.MaxInt64), 1<<20)}
	archive := tar.NewReader(position)
	index := make(fileIndex, 0, t.expected())
	for {
		begin := (position.read + tarentry.Block - 1) / tarentry.Block
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			slices.Sort(index)
			return slices.Clip(index), nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, t.cutOff(err)
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case begin > math.MaxUint32:
			return nil, errors.New("it is larger than 2 TiB")
		case header.Size > t.info.Size():
			return nil, fmt.Errorf("%s is larger than the file", header.Name)
		}
		if header.Typeflag == tar.TypeReg {
			index = append(index, t.hash(site.Key(header.Name))|uint64(begin))
		}
		if _, err := io.Copy(io.Discard, archive); errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, t.cutOff(err)
		} else if err != nil {
			return nil, err
		}
	}
}

func (t *openFile) cutOff(err error) error {
	return fmt.Errorf("truncated at %d bytes: %w; copy or generate it again", t.info.Size(), err)
}

// expected returns the number of entries according to the root, or 0 without one, to allocate the index once: growing
// would need twice the memory for a while. It never exceeds what fits into the file.
func (t *openFile) expected() int64 {
	root, err := site.ParseRoot(t.root)
	if err != nil {
		return 0
	}
	n := int64(root.Counts.Objects) + int64(len(shards.Names(&root))) + 1
	return max(0, min(n, t.info.Size()/tarentry.Block))
}

// hash returns the upper half of an index element.
func (t *openFile) hash(key site.Key) uint64 {
	return maphash.String(t.seed, string(key)) &^ math.MaxUint32
}

type counter struct {
	reader io.Reader
	read   int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.read += int64(n)
	return n, err
}

// get reads an object. It fails if the file was written to after it was opened.
func (t *openFile) get(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	if key == site.RootKey && t.root != nil {
		return bytes.Clone(t.root), nil
	}
	body, err := t.read(ctx, key, admit)
	// A write to the file changes its time before its bytes.
	if changed := t.unchanged(); changed != nil {
		return nil, fmt.Errorf("read %s: %s: %w", key, t.path, changed)
	}
	return body, err
}

func (t *openFile) read(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	index, err := t.entries(ctx)
	if err != nil {
		return nil, err
	}
	hash := t.hash(key)
	first, _ := slices.BinarySearch(index, hash)
	last, _ := slices.BinarySearchFunc(index, hash, func(entry, hash uint64) int {
		return cmp.Or(cmp.Compare(entry&^math.MaxUint32, hash), -1)
	})
	for at := last - 1; at >= first; at-- { // the last entry of a name wins
		begin := int64(index[at]&math.MaxUint32) * tarentry.Block
		position := &counter{reader: io.NewSectionReader(t.file, begin, math.MaxInt64-begin)}
		header, err := tar.NewReader(position).Next()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		if header.Name != string(key) {
			continue
		}
		if header.Size > t.info.Size() {
			return nil, errChanged
		}
		if err := admit(ctx, header.Size); err != nil {
			return nil, err
		}
		body := make([]byte, header.Size)
		// The tar reader consumed the header only, so the body begins here.
		if _, err := t.file.ReadAt(body, begin+position.read); err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		return body, nil
	}
	return nil, object.ErrNotFound
}

var errChanged = errors.New("the file was overwritten while in use; replace it by renaming a new one")

// unchanged returns errChanged if the file was written to after it was opened.
func (t *openFile) unchanged() error {
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	if !sameContent(info, t.info) {
		return errChanged
	}
	return nil
}

// Close closes the file.
func (t *File) Close() error { return t.current.file.Close() }
