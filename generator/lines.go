package generator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/inorder"
)

const (
	blockBytes   = 256 << 10 // size of a block, which one worker parses
	maxLineBytes = 16 << 20  // limit of a row
)

// A RowError is an invalid row of a snapshot, or an invalid refreshed object.
type RowError struct {
	File   string `json:"file"` // name of the table's file, or key of the object
	Line   int    `json:"line"` // from 1; 0 for an object
	Reason string `json:"reason"`
}

// Error is "file:line: reason", or "key: reason" for an object.
func (e *RowError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}

// A block is a sequence of whole lines of a table.
type block struct {
	lines []byte
	first int // number of the first line
}

// A row is a parsed line of a table.
type row[T any] struct {
	line  int
	value T
}

// A parsedBlock holds the valid and the invalid rows of a block, each in the order of lines.
type parsedBlock[T any] struct {
	rows    []row[T]
	invalid []row[error]
}

// readTable parses a table on all workers. It calls accept with each valid row, in the order of lines
// and never concurrently, and rejects the other rows. Blank lines are skipped.
func readTable[T any](
	ctx context.Context, r *reader, t table, parse func(line []byte) (T, error), accept func(row[T]) error,
) (err error) {
	file, err := openTable(r.snapshot, t)
	if err != nil {
		return err
	}
	defer func() {
		// After a read error, close only repeats it.
		if closeErr := file.close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close %s: %w", file.name, closeErr)
		}
	}()

	counts := r.report.table(t)
	counts.file = file.name
	parseBlock := func(b block, _ *inorder.Ticket[parsedBlock[T]]) (parsedBlock[T], error) {
		return parseLines(b, parse), nil
	}
	return inorder.Do(ctx, r.workers, lineBlocks(file), parseBlock, func(p parsedBlock[T]) error {
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
			if err := r.reject(&counts.Skipped, &RowError{file.name, line, err.Error()}); err != nil {
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

// lineBlocks cuts a table into blocks.
func lineBlocks(file *tableFile) iter.Seq2[block, error] {
	return func(yield func(block, error) bool) {
		number := 1
		var rest []byte // the beginning of an incomplete line
		for {
			// Double the size each time, so that a long line is not copied once per block.
			buf := make([]byte, len(rest)+max(blockBytes, min(len(rest), maxLineBytes-len(rest))))
			copy(buf, rest)
			n, err := fill(file, buf[len(rest):])
			buf = buf[:len(rest)+n]
			atEnd := errors.Is(err, io.EOF)
			if err != nil && !atEnd {
				yield(block{}, fmt.Errorf("read %s: near line %d: %w", file.name, number, explainTruncated(err)))
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

// fill reads until buf is full. Unlike io.ReadFull, it does not change errors, so that the end of a
// table (io.EOF) differs from a truncated file (io.ErrUnexpectedEOF of decompressors).
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var read int
		read, err = r.Read(buf[n:])
		n += read
	}
	return n, err
}

// A reader reads the tables of a snapshot and reports on their rows.
type reader struct {
	snapshot    afero.Fs
	workers     int
	skipInvalid bool
	maxText     int       // limit of a profile's text in bytes; longer ones are left out
	refreshed   Refreshed // nil for none
	efp         bool      // whether the site has the API efp, which shows more of a snapshot
	report      *Report
	progress    Progress
}

// reject counts an invalid row, or returns its error unless invalid rows are skipped.
func (r *reader) reject(skipped *int, e *RowError) error {
	if !r.skipInvalid {
		return e
	}
	*skipped++
	if len(r.report.Invalid) < maxInvalidListed {
		r.report.Invalid = append(r.report.Invalid, e)
	}
	return nil
}
