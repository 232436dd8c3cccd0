package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// chunkBytes is the size of rows gathered before compression.
const chunkBytes = 128 << 10

// A tableWriter writes the file of one table.
type tableWriter struct {
	path   string
	rows   int
	begun  bool   // exists even without rows
	copied string // source file of CopyTable; "" for none
	buf    []byte // rows not yet compressed
	out    io.WriteCloser
	file   *os.File // nil unless open
	err    error    // the first failure; later calls repeat it

	memory bool   // rows stay in memory
	kept   []byte // all rows except those in buf
}

// endingOf returns the file name ending for a compression.
func endingOf(compression string) (string, error) {
	switch compression {
	case "", "zstd":
		return ".ndjson.zst", nil
	case "none":
		return ".ndjson", nil
	}
	return "", fmt.Errorf("compression %q: use zstd or none", compression)
}

// add adds the row that the function row appends. For a valid row, it calls once, if not nil, which may still reject
// it.
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

// end completes a row that was appended to t.buf.
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

// open creates the file unless it is open.
func (t *tableWriter) open() error {
	if t.file != nil || t.memory || t.err != nil {
		return t.err
	}
	t.file, t.err = os.Create(t.path)
	if t.err != nil {
		return t.err
	}
	if filepath.Ext(t.path) == ".zst" {
		// For rows of records, the next level takes twice the time and makes a larger file, and a larger window only
		// takes more memory. A concurrency of 2 means one goroutine that compresses, a third of the work, while rows
		// are encoded. The bytes are the same.
		t.out, t.err = zstd.NewWriter(t.file,
			zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithEncoderConcurrency(2))
	} else {
		t.out = uncompressed{t.file}
	}
	return t.err
}

// close completes the file, if any. The table accepts no more rows.
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

// abandon closes the file of a table that will be deleted.
func (t *tableWriter) abandon() {
	if t.file != nil {
		_ = t.file.Close() // the file is deleted next
		t.file = nil
	}
	t.finish(t.err)
}

// finish makes the table reject rows, and frees its compressor, which takes megabytes.
func (t *tableWriter) finish(err error) {
	t.err = errors.Join(err, errClosed)
	t.out, t.buf = nil, nil
}

// errClosed is returned by a Writer after Commit or Close.
var errClosed = errors.New("the snapshot is closed")

// uncompressed passes rows through. Like that of a compressor, its Close leaves the file open.
type uncompressed struct{ io.Writer }

// Close does nothing.
func (uncompressed) Close() error { return nil }
