package table

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"runtime"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/parquet"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// A Reader reads a table and parses rows concurrently. Done receives all blocks, in order and never concurrently.
// Blank lines are skipped. Methods return the first error of reading or of Done; a line that is too long is a
// *rowjson.RowError.
type Reader[T any] struct {
	Snapshot afero.Fs
	File     string      // one file of the table (TableFiles), for readers that share the work; "" for all
	Workers  int         // number of parsers; 0 means one per core
	Untimed  bool        // ignore the times of records
	After    *rowjson.Op // table ops: rows must also come after this one; nil for none

	// Complete, unless nil, receives the valid rows of each block before Done, and may modify them. It is called
	// concurrently. Block.Take calls its result.
	Complete func(rows []Row[T]) (take func() error)
	// Done receives a block, whose rows are valid until it returns.
	Done func(Block[T]) error

	// Digest, unless nil, receives the rows that Block.Each passes on and that are not rejected, in order; with
	// Untimed, records without their times.
	Digest *Digest
}

// reading converts r for readTable.
func (r Reader[T]) reading() reading[T] {
	return reading[T]{Snapshot: r.Snapshot, File: r.File, Workers: r.Workers, Untimed: r.Untimed, Complete: r.Complete, hashed: r.Digest != nil,
		Done: func(b Block[T]) error {
			b.digest = r.Digest
			return r.Done(b)
		}}
}

// Table reads a table. Lines passed to parse are valid until Done returns; lines from Parquet only until parse
// returns.
func (r Reader[T]) Table(ctx context.Context, t rowjson.Table, parse func(line []byte) (T, error)) error {
	return readTable(ctx, r.reading(), t, decoded(parse), same)
}

// Records reads the table records. convert converts each valid row for Done. It must not modify the record, which is
// valid until it returns.
func (r Reader[T]) Records(ctx context.Context, convert func(*rowjson.Record) (T, error)) error {
	timed := !r.Untimed
	return readTable(ctx, r.reading(), rowjson.TableRecords, form[rowjson.Record]{
		scan: func(s *rowjson.Scanner, line []byte) (*rowjson.Record, bool) { return s.ScanRecord(line, timed) },
		columns: func(s *rowjson.Scanner, rows *parquet.Rows, row int) (*rowjson.Record, bool) {
			return rows.Record(s, row)
		},
		decode: func(line []byte) (rowjson.Record, error) { return rowjson.DecodeRecord(line, timed) },
	}, convert)
}

// Accounts reads the table accounts, like Records.
func (r Reader[T]) Accounts(ctx context.Context, convert func(*rowjson.Account) (T, error)) error {
	return readTable(ctx, r.reading(), rowjson.TableAccounts, form[rowjson.Account]{
		scan: (*rowjson.Scanner).ScanAccount,
		columns: func(s *rowjson.Scanner, rows *parquet.Rows, row int) (*rowjson.Account, bool) {
			return rows.Account(s, row)
		},
		decode: rowjson.DecodeAccount,
	}, convert)
}

// A form parses the rows of a table. scan reads the usual form of rows without a JSON decoder. For other rows it
// returns false, and decode reads them, so that all rows have the same rules and errors.
type form[R any] struct {
	scan    func(s *rowjson.Scanner, line []byte) (value *R, ok bool)
	columns func(s *rowjson.Scanner, rows *parquet.Rows, row int) (value *R, ok bool)
	decode  func(line []byte) (R, error)
}

// decoded returns the form of a small table, whose rows are all decoded.
func decoded[R any](decode func(line []byte) (R, error)) form[R] {
	return form[R]{
		scan:    func(*rowjson.Scanner, []byte) (*R, bool) { return nil, false },
		columns: func(*rowjson.Scanner, *parquet.Rows, int) (*R, bool) { return nil, false },
		decode:  decode,
	}
}

// same returns the identity conversion.
func same[R any](value *R) (R, error) { return *value, nil }

// reading is a Reader without methods: methods of a Reader cannot instantiate one of other rows.
type reading[T any] struct {
	Snapshot afero.Fs
	File     string
	Workers  int
	Untimed  bool
	Complete func([]Row[T]) func() error
	Done     func(Block[T]) error
	hashed   bool // compute the digest of each row
}

func readTable[R, T any](ctx context.Context, r reading[T], t rowjson.Table, f form[R], convert func(*R) (T, error)) (err error) {
	r.Workers = cmp.Or(r.Workers, runtime.GOMAXPROCS(0))
	spare := make(lines.Recycler[byte], lines.Spares(r.Workers))
	table, err := openTable(r.Snapshot, selection{t, r.File}, !r.Untimed, spare, r.Workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.close()) }()
	parse := func(p *Block[T], b block, s *rowjson.Scanner) {
		parseBlock(p, b, s, r.hashed, f, convert)
		if r.Complete != nil {
			p.take = r.Complete(p.Rows)
		}
	}
	return readBlocks(ctx, sideBySide(table.sources, r.Workers), r.Workers, spare, r.hashed, parse, r.Done)
}

func parseBlock[R, T any](p *Block[T], b block, s *rowjson.Scanner, hashed bool, f form[R], convert func(*R) (T, error)) {
	take := func(number int, row *R, err error) {
		var value T
		if err == nil && hashed {
			err = p.hash(s, row)
		}
		if err == nil {
			value, err = convert(row)
			if err != nil && hashed {
				p.sums = p.sums[:len(p.sums)-sha256.Size]
			}
		}
		p.add(number, value, err)
	}
	if b.rows != nil {
		parseColumns(b, s, f, take)
	} else {
		lines.Block{First: b.first, Lines: b.lines}.Each(func(number int, line []byte) {
			row, ok := f.scan(s, line)
			if ok {
				take(number, row, nil)
				return
			}
			decoded, err := f.decode(line)
			take(number, &decoded, err)
		})
	}
}

// hash adds the digest of the next row.
func (p *Block[T]) hash(s *rowjson.Scanner, row any) (err error) {
	p.sums, err = s.Sum(p.sums, row)
	return err
}

// parseColumns parses rows of Parquet. It converts unusual ones to lines of JSON first.
func parseColumns[R any](b block, s *rowjson.Scanner, f form[R], take func(number int, row *R, err error)) {
	var line []byte
	for i := range b.rows.N {
		row, ok := f.columns(s, b.rows, i)
		var err error
		if !ok {
			var decoded R
			if line, err = b.rows.AppendLine(line[:0], i); err == nil {
				decoded, err = f.decode(line)
			}
			row = &decoded
		}
		take(b.first+i, row, err)
	}
}

// Lines parses the lines of a file, like Reader.Table.
func Lines[T any](ctx context.Context, file *lines.File, parse func(line []byte) (T, error), done func(Block[T]) error) error {
	workers := runtime.GOMAXPROCS(0)
	spare := make(lines.Recycler[byte], lines.Spares(workers))
	blocks := func(yield func(block, error) bool) {
		for b, err := range file.Blocks(spare) {
			if !yield(block{first: b.First, lines: b.Lines, file: file.Name}, err) {
				return
			}
		}
	}
	return readBlocks(ctx, blocks, workers, spare, false, func(p *Block[T], b block, s *rowjson.Scanner) {
		parseBlock(p, b, s, false, decoded(parse), same)
	}, done)
}
