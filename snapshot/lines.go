package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

const (
	blockBytes = 256 << 10 // size of a block, which one worker parses
)

// A Row is a parsed line of a table.
type Row[T any] struct {
	Line  int // from 1
	Value T
}

// A Block has successive rows of a table, those that are valid and those that are not, each in the
// order of lines.
type Block[T any] struct {
	File    string // name of the table's file
	Rows    []Row[T]
	Invalid []*RowError
	lines   []byte // what Rows were parsed from
	sums    []byte // the digests of Rows, if they are wanted
	digest  *Digest
	take    func() error // what Reader.Complete returned
}

// sum is the digest of a row.
func (p *Block[T]) sum(row int) []byte { return p.sums[row*sha256.Size : (row+1)*sha256.Size] }

// readBlocks parses the blocks of a source, whose memory goes back to lines.
func readBlocks[T any](
	ctx context.Context, source rowSource, workers int, lines recycler[byte], hashed bool, parse func(*Block[T], block, *rowjson.Scanner), done func(Block[T]) error,
) error {
	rows, sums := make(recycler[Row[T]], spares(workers)), make(recycler[byte], spares(workers))
	parseBlock := func(b block, _ *inorder.Ticket[Block[T]]) (Block[T], error) {
		s := rowjson.TakeScanner()
		defer s.GiveBack()
		p := Block[T]{File: b.file, Rows: rows.take(roundUp(b.mostRows()))[:0], lines: b.lines}
		if hashed {
			p.sums = sums.take(sha256.Size * cap(p.Rows))[:0]
		}
		parse(&p, b, s)
		if b.rows != nil {
			b.rows.GiveBack()
		}
		return p, nil
	}
	return inorder.Do(ctx, workers, source, parseBlock, func(b Block[T]) error {
		err := done(b)
		lines.giveBack(b.lines)
		rows.giveBack(b.Rows)
		if hashed {
			sums.giveBack(b.sums)
		}
		return err
	})
}

// shortestRow is what a row has at least, if it is not invalid: {"address":""}.
const shortestRow = 14

// mostRows is how many rows a block may have. Lines that are too short to be rows do not count.
func (b block) mostRows() int {
	if b.rows != nil {
		return b.rows.N
	}
	return min(bytes.Count(b.lines, []byte{'\n'}), len(b.lines)/shortestRow) + 1
}

// add adds a row, which is not valid if there is an error.
func (p *Block[T]) add(number int, value T, err error) {
	if err != nil {
		p.Invalid = append(p.Invalid, &RowError{File: p.File, Line: number, Reason: err.Error()})
	} else {
		p.Rows = append(p.Rows, Row[T]{number, value})
	}
}

// roundUp rounds up a number of rows, so that memory for the rows of one block suffices for another.
func roundUp(rows int) int { return (rows + 1023) &^ 1023 }

// A recycler has slices whose memory can be used again, without which a large table makes much work
// for the garbage collector.
type recycler[E any] chan []E

// spares is how many slices are worth keeping.
func spares(workers int) int { return 4 * workers }

// take returns a slice of that many elements, which may be anything.
func (r recycler[E]) take(n int) []E {
	select {
	case s := <-r:
		if cap(s) >= n {
			return s[:n]
		}
	default:
	}
	return make([]E, n)
}

// giveBack takes back a slice that is not used any more. It keeps none of a long line.
func (r recycler[E]) giveBack(s []E) {
	if cap(s) > blockBytes {
		return
	}
	select {
	case r <- s:
	default:
	}
}

// Each calls accept with the valid rows and reject with the others, in the order of lines, until one
// of them fails. A row that accept refuses by an error is passed to reject. The others count in Reader.Digest.
func (p Block[T]) Each(accept func(Row[T]) error, reject func(*RowError) error) error {
	rows, invalid := p.Rows, p.Invalid
	hashed := 0 // rows that were added to the digest, or refused
	add := func(to int) {
		if p.digest != nil && to > hashed {
			p.digest.add(p.sums[hashed*sha256.Size : to*sha256.Size])
		}
	}
	for len(rows) > 0 || len(invalid) > 0 {
		var refused *RowError
		if len(rows) == 0 || len(invalid) > 0 && invalid[0].Line < rows[0].Line {
			refused, invalid = invalid[0], invalid[1:]
		} else {
			if err := accept(rows[0]); err != nil {
				refused = &RowError{File: p.File, Line: rows[0].Line, Reason: err.Error()}
				at := len(p.Rows) - len(rows)
				add(at)
				hashed = at + 1
			}
			rows = rows[1:]
		}
		if refused == nil {
			continue
		}
		if err := reject(refused); err != nil {
			return err
		}
	}
	add(len(p.Rows))
	return nil
}

// Take takes all valid rows by what Reader.Complete returned for them, and calls reject with the others, in their order,
// until one of these fails. All valid rows count in Reader.Digest.
func (p Block[T]) Take(reject func(*RowError) error) error {
	for _, e := range p.Invalid {
		if err := reject(e); err != nil {
			return err
		}
	}
	if p.digest != nil {
		p.digest.add(p.sums)
	}
	return p.take()
}

// blocks cuts a file into blocks, in memory that whoever gets them may give back, and closes it.
func (f *tableFile) blocks(memory recycler[byte]) rowSource {
	return func(yield func(block, error) bool) {
		err := f.cut(memory, func(b block) bool { return yield(b, nil) })
		switch closed := f.closed(); {
		case errors.Is(err, errStopped):
		case err != nil: // close only repeats it
			yield(block{}, err)
		case closed != nil:
			yield(block{}, closed)
		}
	}
}

// errStopped says that nobody wants more blocks.
var errStopped = errors.New("stopped")

func (f *tableFile) cut(memory recycler[byte], yield func(block) bool) error {
	number := 1
	var rest []byte // the beginning of an incomplete line
	for {
		size := blockBytes
		if len(rest) > blockBytes/2 {
			// Double the size each time, so that a long line is not copied once per block.
			size = len(rest) + max(blockBytes, min(len(rest), rowjson.MaxLineBytes-len(rest)))
		}
		buf := memory.take(size)
		copy(buf, rest)
		n, err := fill(f, buf[len(rest):])
		buf = buf[:len(rest)+n]
		atEnd := errors.Is(err, io.EOF)
		if err != nil && !atEnd {
			return fmt.Errorf("read %s: near line %d: %w", f.name, number, explainTruncated(err))
		}
		cut := bytes.LastIndexByte(buf, '\n') + 1
		if atEnd {
			cut = len(buf)
		}
		rest = append(rest[:0], buf[cut:]...) // whoever gets the block may give back its memory
		if len(rest) > rowjson.MaxLineBytes {
			return &RowError{File: f.name, Line: number + bytes.Count(buf[:cut], []byte{'\n'}), Reason: fmt.Sprintf("a line of more than %d MiB", rowjson.MaxLineBytes>>20)}
		}
		first := number
		number += bytes.Count(buf[:cut], []byte{'\n'})
		if cut > 0 && !yield(block{file: f.name, first: first, lines: buf[:cut]}) {
			return errStopped
		}
		if atEnd {
			return nil
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
