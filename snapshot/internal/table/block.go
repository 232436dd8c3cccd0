package table

import (
	"bytes"
	"context"
	"crypto/sha256"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// A Row is a parsed line of a table.
type Row[T any] struct {
	Line  int // from 1
	Value T
}

// A Block has successive valid and invalid rows of a table, each in the order of lines.
type Block[T any] struct {
	File    string // name of the table's file
	Rows    []Row[T]
	Invalid []*rowjson.RowError
	lines   []byte       // source of Rows
	sums    []byte       // digests of Rows, if wanted
	keys    []rowjson.Op // table ops: sort keys of Rows
	digest  *Digest
	take    func() error // result of Reader.Complete
}

// sum returns the digest of a row.
func (p *Block[T]) sum(row int) []byte { return p.sums[row*sha256.Size : (row+1)*sha256.Size] }

// readBlocks parses the blocks of a source, and returns their memory to spare.
func readBlocks[T any](
	ctx context.Context, source rowSource, workers int, spare lines.Recycler[byte], hashed bool, parse func(*Block[T], block, *rowjson.Scanner), done func(Block[T]) error,
) error {
	spares := lines.Spares(workers)
	rows, sums, keys := make(lines.Recycler[Row[T]], spares), make(lines.Recycler[byte], spares), make(lines.Recycler[rowjson.Op], spares)
	parseBlock := func(b block, _ *inorder.Ticket[Block[T]]) (Block[T], error) {
		s := rowjson.TakeScanner()
		defer s.GiveBack()
		p := Block[T]{File: b.file, Rows: rows.Take(roundUp(b.mostRows()))[:0], lines: b.lines, keys: keys.Take(0)}
		if hashed {
			p.sums = sums.Take(sha256.Size * cap(p.Rows))[:0]
		}
		parse(&p, b, s)
		if b.rows != nil {
			b.rows.GiveBack()
		}
		return p, nil
	}
	return inorder.Do(ctx, workers, source, parseBlock, func(b Block[T]) error {
		err := done(b)
		spare.GiveBack(b.lines)
		rows.GiveBack(b.Rows)
		keys.GiveBack(b.keys)
		if hashed {
			sums.GiveBack(b.sums)
		}
		return err
	})
}

// shortestRow is the minimum length of a valid row: {"address":""}.
const shortestRow = 14

// mostRows returns the maximum number of rows in a block. Lines that are too short to be rows do not count.
func (b block) mostRows() int {
	if b.rows != nil {
		return b.rows.N
	}
	return min(bytes.Count(b.lines, []byte{'\n'}), len(b.lines)/shortestRow) + 1
}

// add adds a row, which is invalid if err is not nil.
func (p *Block[T]) add(number int, value T, err error) {
	if err != nil {
		p.Invalid = append(p.Invalid, &rowjson.RowError{File: p.File, Line: number, Reason: err.Error()})
	} else {
		p.Rows = append(p.Rows, Row[T]{number, value})
	}
}

// roundUp rounds up a number of rows, so that memory fits several blocks.
func roundUp(rows int) int { return (rows + 1023) &^ 1023 }

// Each calls accept with valid rows and reject with invalid ones, in the order of lines, until one of them fails. A
// row for which accept returns an error is passed to reject; the others count in Reader.Digest.
func (p Block[T]) Each(accept func(Row[T]) error, reject func(*rowjson.RowError) error) error {
	rows, invalid := p.Rows, p.Invalid
	hashed := 0 // rows added to the digest, or rejected
	add := func(to int) {
		if p.digest != nil && to > hashed {
			p.digest.add(p.sums[hashed*sha256.Size : to*sha256.Size])
		}
	}
	for len(rows) > 0 || len(invalid) > 0 {
		var refused *rowjson.RowError
		if len(rows) == 0 || len(invalid) > 0 && invalid[0].Line < rows[0].Line {
			refused, invalid = invalid[0], invalid[1:]
		} else {
			if err := accept(rows[0]); err != nil {
				refused = &rowjson.RowError{File: p.File, Line: rows[0].Line, Reason: err.Error()}
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

// Take takes all valid rows with the result of Reader.Complete, and calls reject with the others, in order, until it
// fails. All valid rows count in Reader.Digest.
func (p Block[T]) Take(reject func(*rowjson.RowError) error) error {
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
