package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/followpress/followpress/internal/staging"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
	"github.com/followpress/followpress/snapshot/internal/table"
	"github.com/followpress/followpress/snapshot/memory"
)

// WriteOptions configure a Writer.
type WriteOptions struct {
	Compression string // zstd or none; "" means zstd
	NoSync      bool   // do not sync the snapshot before it replaces the old one
}

// ErrBusy means that another Writer uses the folder.
var ErrBusy = staging.ErrBusy

// A Writer writes a snapshot. Tables are independent: rows of several tables may be interleaved, and different tables
// may be written concurrently, by one goroutine each. Equal rows and options give equal files.
//
// A row that the reader would reject returns a *RowError and is not written; the caller may continue without it.
// After any other error, Commit fails.
type Writer struct {
	staging *staging.Staging
	tables  map[Table]*tableWriter

	// Keys that must be unique.
	lists    unique[string]
	accounts unique[site.Address]
	events   unique[uint64]

	ops rowjson.Order
}

// Create begins a snapshot that Commit moves to the folder dir. Until then, an existing snapshot stays. The error
// wraps ErrBusy if another Writer uses the folder. Create also fails if the folder holds anything but a snapshot. The
// caller must call Close.
func Create(dir string, o WriteOptions) (*Writer, error) {
	ending, err := endingOf(o.Compression)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, errors.New("the snapshot has no name; name a folder")
	}
	target, err := staging.Resolve(dir)
	if err != nil {
		return nil, err
	}
	s, err := staging.Open(context.Background(), staging.Options{
		Target: target, Folder: true, What: "snapshot", Suffix: ".followpress-snapshot", NoSync: o.NoSync,
		IfNotMovable:     "name a folder on another file system",
		IfNotReplaceable: "name a folder that did not, such as one on a volume",
	})
	if err != nil {
		return nil, err
	}
	w := newWriter()
	w.staging = s
	for _, table := range rowjson.AllTables() {
		w.tables[table] = &tableWriter{path: filepath.Join(s.Next(), string(table)+ending)}
	}
	if err := w.prepare(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func newWriter() *Writer {
	return &Writer{
		tables:   map[Table]*tableWriter{},
		lists:    newUnique[string]("token_id: duplicate list"),
		accounts: newUnique[site.Address]("address: duplicate account"),
		events:   newUnique[uint64]("id: duplicate event"),
	}
}

func (w *Writer) prepare() error {
	if err := checkFolder(w.staging.Target); err != nil {
		return err
	}
	if err := w.staging.CheckReplaceable(); err != nil {
		return err
	}
	return os.Mkdir(w.staging.Next(), 0o755)
}

// checkFolder returns an error if a folder holds anything but a snapshot.
func checkFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("inspect the folder of the snapshot: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() || !table.IsFileName(entry.Name()) {
			return fmt.Errorf("%s holds %s, which is not part of a snapshot and would be lost; name another folder", dir, entry.Name())
		}
	}
	return nil
}

// WriteList writes a row of lists.
func (w *Writer) WriteList(l List) error {
	return w.tables[TableLists].add(
		func(b []byte) ([]byte, error) { return rowjson.AppendList(b, l) },
		func() error { return w.lists.add(l.TokenID) })
}

// WriteOp writes a row of ops. Rows must be unique and in the order of Op.Compare. Without rows, the snapshot has no
// such table, unless Begin was called.
func (w *Writer) WriteOp(o Op) error {
	return w.tables[TableOps].add(
		func(b []byte) ([]byte, error) { return rowjson.AppendOp(b, o) },
		func() error { return w.ops.Add(&o) })
}

// WriteRecord writes a row of records.
func (w *Writer) WriteRecord(r Record) error {
	return w.tables[TableRecords].add(func(b []byte) ([]byte, error) { return rowjson.AppendRecord(b, r) }, nil)
}

// WriteAccount writes a row of accounts.
func (w *Writer) WriteAccount(a Account) error {
	return w.tables[TableAccounts].add(
		func(b []byte) ([]byte, error) { return rowjson.AppendAccount(b, a) },
		func() error { return w.accounts.add(a.Address) })
}

// WriteEvent writes a row of events.
func (w *Writer) WriteEvent(e site.Event) error {
	return w.tables[TableEvents].add(
		func(b []byte) ([]byte, error) { return rowjson.AppendEvent(b, e) },
		func() error { return w.events.add(e.ID) })
}

// WriteBadge writes a row of badges.
func (w *Writer) WriteBadge(badge Badge) error {
	return w.tables[TableBadges].add(func(b []byte) ([]byte, error) { return rowjson.AppendBadge(b, badge) }, nil)
}

// WriteRecommended writes a row of recommended. Without rows, the snapshot has no such table, unless Begin was
// called.
func (w *Writer) WriteRecommended(r Recommended) error {
	return w.tables[TableRecommended].add(func(b []byte) ([]byte, error) { return rowjson.AppendRecommended(b, r) }, nil)
}

// Begin creates a table even if it gets no rows. This matters for optional tables only.
func (w *Writer) Begin(t Table) error {
	table, ok := w.tables[t]
	if !ok {
		return fmt.Errorf("table %q: use one of %v", t, rowjson.AllTables())
	}
	table.begun = true
	return table.open()
}

// Commit completes the snapshot and atomically replaces the old one.
func (w *Writer) Commit(m Meta) error {
	if w.staging == nil {
		return errClosed
	}
	meta, err := encodeMeta(m)
	if err != nil {
		return err
	}
	for table, t := range w.tables {
		if !table.Optional() {
			err = errors.Join(err, t.open())
		}
		err = errors.Join(err, t.close())
	}
	if err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	if err := os.WriteFile(filepath.Join(w.staging.Next(), table.MetaName), meta, 0o644); err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	if err := w.staging.SyncNext(); err != nil {
		return err
	}
	// Check again: the run may have taken hours.
	if err := checkFolder(w.staging.Target); err != nil {
		return err
	}
	if err := w.staging.Commit(); err != nil {
		return err
	}
	return w.Close()
}

// Close discards the snapshot unless it was committed.
func (w *Writer) Close() error {
	if w.staging == nil {
		return nil
	}
	for _, t := range w.tables {
		t.abandon()
	}
	err := w.staging.Close(context.Background())
	w.staging = nil
	return err
}

// unique rejects repeated keys.
type unique[K comparable] struct {
	seen   map[K]struct{}
	second string // error message for a repeated key
}

func newUnique[K comparable](second string) unique[K] {
	return unique[K]{map[K]struct{}{}, second}
}

func (u unique[K]) add(key K) error {
	if _, ok := u.seen[key]; ok {
		return fmt.Errorf("%s %v", u.second, key)
	}
	u.seen[key] = struct{}{}
	return nil
}

// InMemory returns a Writer that keeps its rows in memory, for Rows. It cannot be committed.
func InMemory() *Writer {
	w := newWriter()
	for _, table := range rowjson.AllTables() {
		w.tables[table] = &tableWriter{path: string(table) + lines.Formats[0].Ending, memory: true}
	}
	return w
}

// Rows returns the rows of a table in memory, which accepts no more rows. ok is false if nothing was written to the
// table and Begin was not called.
func (w *Writer) Rows(t Table) (r memory.Rows, ok bool, err error) {
	table := w.tables[t]
	if !table.memory {
		return memory.Rows{}, false, errors.New("the rows of " + string(t) + " are not in memory")
	}
	if table.err == nil {
		table.flush()
	}
	r, ok, err = memory.RowsOf(table.kept, table.rows), table.rows > 0 || table.begun || table.copied != "", table.err
	table.finish(err)
	return r, ok, err
}
