package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/followpress/followpress/site"
)

// WriteOptions are options of a Writer.
type WriteOptions struct {
	Compression string // gzip, zstd or none; "" is zstd
	NoSync      bool   // do not sync the snapshot to disk before it replaces the old one
}

// A Writer writes a snapshot. The tables are independent of each other: rows of several tables may
// be mixed, and tables may be written from different goroutines, one goroutine a table.
//
// An invalid row is a *RowError and is not written; the snapshot may go on without it. After any
// other error Commit fails.
type Writer struct {
	dir    string // of the new snapshot
	target string
	work   string
	ending string
	tables map[Table]*tableWriter

	lists    map[string]struct{} // token ids that were written; one goroutine each, as the tables
	accounts map[site.Address]struct{}
	events   map[uint64]struct{}
}

// Create begins a snapshot that Commit puts into the folder dir. Until then the snapshot that is
// there stays as it is. An error wraps ErrBusy if another Writer writes to that folder.
func Create(dir string, o WriteOptions) (*Writer, error) {
	ending, ok := map[string]string{"": ".ndjson.zst", "zstd": ".ndjson.zst", "gzip": ".ndjson.gz", "none": ".ndjson"}[o.Compression]
	if !ok {
		return nil, fmt.Errorf("compression %q: use gzip, zstd or none", o.Compression)
	}
	target, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	work := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".followpress-snapshot")
	w := &Writer{
		dir: filepath.Join(work, "next"), target: target, work: work, ending: ending, tables: map[Table]*tableWriter{},
		lists: map[string]struct{}{}, accounts: map[site.Address]struct{}{}, events: map[uint64]struct{}{},
	}
	if err := errors.Join(os.RemoveAll(work), os.MkdirAll(w.dir, 0o755)); err != nil {
		return nil, err
	}
	for _, name := range append([]Table{TableRecommended}, Tables...) {
		w.tables[name] = &tableWriter{name: name, path: filepath.Join(w.dir, string(name)+ending)}
	}
	return w, nil
}

// WriteList writes a row of lists.
func (w *Writer) WriteList(l List) error {
	t := w.tables[TableLists]
	if err := site.CheckTokenID("token_id", l.TokenID); err != nil {
		return t.invalid(err)
	}
	if _, ok := w.lists[l.TokenID]; ok {
		return t.invalid(fmt.Errorf("token_id: a second list with the token_id %s", l.TokenID))
	}
	if err := t.append(func(b []byte) ([]byte, error) { return appendList(b, l), nil }); err != nil {
		return err
	}
	w.lists[l.TokenID] = struct{}{}
	return nil
}

// WriteRecord writes a row of records.
func (w *Writer) WriteRecord(r Record) error {
	return w.tables[TableRecords].append(func(b []byte) ([]byte, error) { return appendRecord(b, r) })
}

// WriteAccount writes a row of accounts.
func (w *Writer) WriteAccount(a Account) error {
	t := w.tables[TableAccounts]
	if _, ok := w.accounts[a.Address]; ok {
		return t.invalid(fmt.Errorf("address: a second account with the address %s", a.Address))
	}
	if err := t.append(func(b []byte) ([]byte, error) { return appendAccount(b, a) }); err != nil {
		return err
	}
	w.accounts[a.Address] = struct{}{}
	return nil
}

// WriteEvent writes a row of events.
func (w *Writer) WriteEvent(e site.Event) error {
	t := w.tables[TableEvents]
	if _, ok := w.events[e.ID]; ok {
		return t.invalid(fmt.Errorf("id: a second event with the id %d", e.ID))
	}
	if err := t.append(func(b []byte) ([]byte, error) { return appendEvent(b, e) }); err != nil {
		return err
	}
	w.events[e.ID] = struct{}{}
	return nil
}

// WriteBadge writes a row of badges.
func (w *Writer) WriteBadge(badge Badge) error {
	return w.tables[TableBadges].append(func(b []byte) ([]byte, error) { return appendBadge(b, badge) })
}

// WriteRecommended writes a row of recommended. A snapshot without such rows has no such table.
func (w *Writer) WriteRecommended(r Recommended) error {
	return w.tables[TableRecommended].append(func(b []byte) ([]byte, error) { return appendRecommended(b, r) })
}

// Meta is meta.json without the version of the format.
type Meta struct {
	AsOf    time.Time
	ListOps *uint64 // nil for none
}

// Commit completes the snapshot and puts it into its folder in one step.
func (w *Writer) Commit(m Meta) error {
	var err error
	for _, name := range Tables {
		err = errors.Join(err, w.tables[name].open())
	}
	for _, t := range w.tables {
		err = errors.Join(err, t.close())
	}
	if err != nil {
		return err
	}
	meta, err := appendMeta(nil, m)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "meta.json"), meta, 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(w.target); err != nil {
		return err
	}
	return os.Rename(w.dir, w.target)
}

// Close gives the snapshot up, unless it was committed.
func (w *Writer) Close() error {
	var err error
	for _, t := range w.tables {
		err = errors.Join(err, t.close())
	}
	return errors.Join(err, os.RemoveAll(w.work))
}

// chunkBytes is how many bytes of rows a table gathers before it compresses them.
const chunkBytes = 128 << 10

// A tableWriter writes the file of one table.
type tableWriter struct {
	name Table
	path string
	rows int
	buf  []byte // rows that were not compressed yet
	out  io.WriteCloser
	file *os.File
	err  error // the first failure to write; it stays
}

// invalid makes the error of a row that is not written.
func (t *tableWriter) invalid(err error) error {
	return &RowError{filepath.Base(t.path), t.rows + 1, err.Error()}
}

// append adds a row.
func (t *tableWriter) append(row func([]byte) ([]byte, error)) error {
	if t.err != nil {
		return t.err
	}
	b, err := row(t.buf)
	if err != nil {
		return t.invalid(err)
	}
	if len(b)-len(t.buf) > maxLineBytes {
		return t.invalid(fmt.Errorf("a line of more than %d MiB", maxLineBytes>>20))
	}
	t.buf = append(b, '\n')
	t.rows++
	if len(t.buf) >= chunkBytes {
		t.err = t.flush()
	}
	return t.err
}

func (t *tableWriter) flush() error {
	if err := t.open(); err != nil {
		return err
	}
	if _, err := t.out.Write(t.buf); err != nil {
		return fmt.Errorf("write %s: %w", t.path, err)
	}
	t.buf = t.buf[:0]
	return nil
}

// open creates the file, unless it is open.
func (t *tableWriter) open() (err error) {
	if t.file != nil {
		return nil
	}
	if t.file, err = os.Create(t.path); err != nil {
		return err
	}
	switch filepath.Ext(t.path) {
	case ".zst":
		t.out, err = zstd.NewWriter(t.file, zstd.WithEncoderConcurrency(1))
	case ".gz":
		t.out = gzip.NewWriter(t.file)
	default:
		t.out = nopCloser{t.file}
	}
	return err
}

func (t *tableWriter) close() error {
	if len(t.buf) > 0 && t.err == nil {
		t.err = t.flush()
	}
	if t.file == nil {
		return t.err
	}
	err := errors.Join(t.err, t.out.Close(), t.file.Close())
	t.file = nil
	return err
}

type nopCloser struct{ io.Writer }

// Close does nothing.
func (nopCloser) Close() error { return nil }

func appendMeta(b []byte, m Meta) ([]byte, error) {
	if m.AsOf.IsZero() {
		return nil, errors.New("meta.json: as_of: missing")
	}
	b, err := appendTime(append(b, `{"format":1,"as_of":`...), "as_of", m.AsOf.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("meta.json: %w", err)
	}
	if m.ListOps != nil {
		b = strconv.AppendUint(append(b, `,"list_ops":`...), *m.ListOps, 10)
	}
	return append(b, "}\n"...), nil
}

// ErrBusy says that another Writer writes to the same folder.
var ErrBusy = errors.New("another run is writing to it")

// CopyTable takes a whole table from a file.
func (w *Writer) CopyTable(table, file string) error { return errors.New("not yet") }
