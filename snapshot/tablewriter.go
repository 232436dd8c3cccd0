package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"

	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/memory"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// chunkBytes is how many bytes of rows a table gathers before it compresses them.
const chunkBytes = 128 << 10

// A tableWriter writes the file of one table.
type tableWriter struct {
	path   string
	rows   int
	begun  bool   // it is there without rows, too
	copied string // the file that the table was copied from; "" for none
	buf    []byte // rows that were not compressed yet
	out    io.WriteCloser
	file   *os.File // nil unless open
	err    error    // the first failure; later calls repeat it

	memory bool   // rows are kept instead
	kept   []byte // all rows but those in buf
}

// endingOf returns the ending of files with a compression.
func endingOf(compression string) (string, error) {
	switch compression {
	case "", "zstd":
		return ".ndjson.zst", nil
	case "gzip":
		return ".ndjson.gz", nil
	case "none":
		return ".ndjson", nil
	}
	return "", fmt.Errorf("compression %q: use gzip, zstd or none", compression)
}

// add adds a row: what row appends. Once the row is known to be good, it calls once, if not nil,
// which may still refuse it.
func (t *tableWriter) add(row func([]byte) ([]byte, error), once func() error) error {
	if t.copied != "" {
		return fmt.Errorf("%s was copied from %s: it takes no more rows", filepath.Base(t.path), t.copied)
	}
	if t.err != nil {
		return t.err
	}
	b, err := row(t.buf)
	if err == nil && len(b)-len(t.buf) > rowjson.MaxLineBytes {
		err = fmt.Errorf("a line of more than %d MiB", rowjson.MaxLineBytes>>20)
	}
	if err == nil && once != nil {
		err = once()
	}
	if err != nil {
		return &RowError{File: filepath.Base(t.path), Line: t.rows + 1, Reason: err.Error()}
	}
	return t.end(b)
}

// end ends a row that was appended to t.buf.
func (t *tableWriter) end(b []byte) error {
	t.buf = append(b, '\n')
	t.rows++
	if len(t.buf) >= chunkBytes {
		t.flush()
	}
	return t.err
}

// flush compresses the rows in t.buf.
func (t *tableWriter) flush() {
	if t.memory {
		t.kept, t.buf = append(t.kept, t.buf...), t.buf[:0]
		return
	}
	if t.open() != nil {
		return
	}
	if _, err := t.out.Write(t.buf); err != nil {
		t.err = fmt.Errorf("write %s: %w", filepath.Base(t.path), err)
	}
	t.buf = t.buf[:0]
}

// open creates the file, unless it is open.
func (t *tableWriter) open() error {
	if t.file != nil || t.memory || t.err != nil {
		return t.err
	}
	t.file, t.err = os.Create(t.path)
	if t.err != nil {
		return t.err
	}
	switch filepath.Ext(t.path) {
	case ".zst":
		t.out, t.err = Compress(t.file)
	case ".gz":
		t.out = gzip.NewWriter(t.file)
	default:
		t.out = uncompressed{t.file}
	}
	return t.err
}

// close completes the file, if there is one. The table cannot be written to any more.
func (t *tableWriter) close() error {
	if len(t.buf) > 0 && t.err == nil {
		t.flush()
	}
	err := t.err
	if t.file != nil && err == nil {
		err = errors.Join(t.out.Close(), t.file.Close())
		t.file = nil
	}
	t.finish(err)
	return err
}

// abandon closes the file of a table that nobody will read.
func (t *tableWriter) abandon() {
	if t.file != nil {
		_ = t.file.Close() // the file is removed next
		t.file = nil
	}
	t.finish(t.err)
}

// finish makes the table refuse rows, and gives back the megabytes of its compressor.
func (t *tableWriter) finish(err error) {
	t.err = errors.Join(err, errClosed)
	t.out, t.buf = nil, nil
}

// errClosed says that a Writer was used after Commit or Close.
var errClosed = errors.New("the snapshot is closed")

// uncompressed is a file without compression, whose Close leaves the file open as that of a
// compressor does.
type uncompressed struct{ io.Writer }

// Close does nothing.
func (uncompressed) Close() error { return nil }

// InMemory is a Writer whose rows stay in memory, for Rows. It cannot be committed.
func InMemory() *Writer {
	w := newWriter()
	for _, table := range rowjson.AllTables() {
		w.tables[table] = &tableWriter{path: string(table) + lines.Formats[0].Ending, memory: true}
	}
	return w
}

// Rows are what was written to a table of a Writer in memory, which takes no more rows. ok is false if
// nothing was, unless Begin made the table.
func (w *Writer) Rows(t Table) (r Rows, ok bool, err error) {
	table := w.tables[t]
	if !table.memory {
		return Rows{}, false, errors.New("the rows of " + string(t) + " are not in memory")
	}
	if table.err == nil {
		table.flush()
	}
	r, ok, err = memory.RowsOf(table.kept, table.rows), table.rows > 0 || table.begun || table.copied != "", table.err
	table.finish(err)
	return r, ok, err
}
