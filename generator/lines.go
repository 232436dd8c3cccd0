package generator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/afero"
)

const (
	blockBytes   = 256 << 10 // of whole lines that one worker parses at a time
	maxLineBytes = 16 << 20  // a longer line is no row of ours
)

// A RowError says which row of a snapshot, or which refreshed object, cannot be read,
// and why.
type RowError struct {
	File   string `json:"file"` // the key of an object
	Line   int    `json:"line"` // from 1; 0 for an object
	Reason string `json:"reason"`
}

// Error is file:line: reason.
func (e *RowError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}

// A block is a run of whole lines of a table.
type block struct {
	lines []byte
	first int // number of the first line
}

// A row is a line of a table, parsed.
type row[T any] struct {
	line  int
	value T
}

// parsedBlock holds the rows of a block and those that could not be read, each in
// the order of the lines.
type parsedBlock[T any] struct {
	rows    []row[T]
	invalid []row[error]
}

// readTable parses a table on all workers and hands its rows, and what is wrong
// with the others, to the reader in the order of the lines. Blank lines are
// skipped.
func readTable[T any](
	ctx context.Context, r *reader, t table, parse func(line []byte) (T, error), accept func(row[T]) error,
) (err error) {
	file, err := openTable(r.snapshot, t)
	if err != nil {
		return err
	}
	defer func() {
		// A reader of a broken file says the same again when it is closed.
		if closeErr := file.close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close %s: %w", file.name, closeErr)
		}
	}()

	counts := r.report.table(t)
	counts.file = file.name
	parseBlock := func(b block, _ *place[parsedBlock[T]]) (parsedBlock[T], error) {
		return parseLines(b, parse), nil
	}
	return inOrder(ctx, r.workers, lineBlocks(file), parseBlock, func(p parsedBlock[T]) error {
		r.progress.Add(int64(len(p.rows)))
		counts.Rows += len(p.rows) + len(p.invalid)
		for len(p.rows) > 0 || len(p.invalid) > 0 {
			var err error
			line := 0
			if len(p.rows) == 0 || len(p.invalid) > 0 && p.invalid[0].line < p.rows[0].line {
				line, err = p.invalid[0].line, p.invalid[0].value
				p.invalid = p.invalid[1:]
			} else {
				line, err = p.rows[0].line, accept(p.rows[0])
				p.rows = p.rows[1:]
			}
			if err == nil {
				continue
			}
			if err := r.refuse(&counts.Skipped, &RowError{file.name, line, err.Error()}); err != nil {
				return err
			}
		}
		return nil
	})
}

func parseLines[T any](b block, parse func([]byte) (T, error)) parsedBlock[T] {
	p := parsedBlock[T]{rows: make([]row[T], 0, bytes.Count(b.lines, []byte{'\n'})+1)}
	number := b.first
	for line := range bytes.Lines(b.lines) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 {
			value, err := parse(line)
			if err != nil {
				p.invalid = append(p.invalid, row[error]{number, err})
			} else {
				p.rows = append(p.rows, row[T]{number, value})
			}
		}
		number++
	}
	return p
}

// lineBlocks cuts a table into runs of whole lines.
func lineBlocks(file *tableFile) iter.Seq2[block, error] {
	return func(yield func(block, error) bool) {
		number := 1
		var rest []byte // the beginning of a line whose end was not read yet
		for {
			// Twice as long each time: a long line is not copied for every block of it.
			buf := make([]byte, len(rest)+max(blockBytes, min(len(rest), maxLineBytes-len(rest))))
			copy(buf, rest)
			n, err := fill(file, buf[len(rest):])
			buf = buf[:len(rest)+n]
			atEnd := errors.Is(err, io.EOF)
			if err != nil && !atEnd {
				yield(block{}, fmt.Errorf("read %s: near line %d: %w", file.name, number, truncated(err)))
				return
			}
			cut := bytes.LastIndexByte(buf, '\n') + 1
			if atEnd {
				cut = len(buf)
			}
			rest = buf[cut:]
			if len(rest) > maxLineBytes {
				yield(block{}, &RowError{file.name, number + bytes.Count(buf[:cut], []byte{'\n'}),
					fmt.Sprintf("a line of more than %d MiB", maxLineBytes>>20)})
				return
			}
			if cut > 0 && !yield(block{buf[:cut], number}, nil) || atEnd {
				return
			}
			number += bytes.Count(buf[:cut], []byte{'\n'})
		}
	}
}

// fill reads until buf is full. Unlike io.ReadFull it passes every error on as it
// is, so that the end of a table (io.EOF) and a cut-off file (decompressors say
// io.ErrUnexpectedEOF) stay apart.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var read int
		read, err = r.Read(buf[n:])
		n += read
	}
	return n, err
}

// A reader reads the tables of a snapshot and keeps what happens to their rows.
type reader struct {
	snapshot    afero.Fs
	workers     int
	skipInvalid bool
	maxText     int       // bytes of a text of a profile; what is longer is left out
	refreshed   Refreshed // nil for none
	report      *Report
	progress    Progress
}

// refuse decides about a row that cannot be read: it stops the run, or is counted.
func (r *reader) refuse(skipped *int, e *RowError) error {
	if !r.skipInvalid {
		return e
	}
	*skipped++
	if len(r.report.Invalid) < maxInvalidListed {
		r.report.Invalid = append(r.report.Invalid, e)
	}
	return nil
}
