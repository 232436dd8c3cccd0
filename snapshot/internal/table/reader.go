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

// Table reads a table whose rows are of the type T.
func (r Reader[T]) Table(ctx context.Context, t rowjson.Table) error {
	return readTable(ctx, r, t, decoded(rowjson.Parser[T](r.Untimed)), same)
}

// Parse parses, checks and normalizes a line as Table does. References to other rows are not checked.
func (r Reader[T]) Parse(line []byte) (T, error) { return rowjson.Parser[T](r.Untimed)(line) }

// Records reads the table records. convert converts each valid row for Done. It must not modify the record, which is
// valid until it returns.
func (r Reader[T]) Records(ctx context.Context, convert func(*rowjson.Record) (T, error)) error {
	timed := !r.Untimed
	return readTable(ctx, r, rowjson.TableRecords, form[rowjson.Record]{
		scan: func(s *rowjson.Scanner, line []byte) (*rowjson.Record, bool) { return s.ScanRecord(line, timed) },
		columns: func(s *rowjson.Scanner, rows *parquet.Rows, row int) (*rowjson.Record, bool) {
			return rows.Record(s, row)
		},
		decode: func(line []byte) (rowjson.Record, error) { return rowjson.DecodeRecord(line, timed) },
	}, convert)
}

// Accounts reads the table accounts, like Records.
func (r Reader[T]) Accounts(ctx context.Context, convert func(*rowjson.Account) (T, error)) error {
	return readTable(ctx, r, rowjson.TableAccounts, form[rowjson.Account]{
		scan: (*rowjson.Scanner).ScanAccount, columns: noColumns[rowjson.Account], decode: rowjson.DecodeAccount,
	}, convert)
}

// A form parses the rows of a table. columns reads usual rows of Parquet, scan usual lines without a JSON decoder. For
// other rows both return false, and decode reads their lines, so that all rows have the same rules and errors.
type form[R any] struct {
	scan    func(s *rowjson.Scanner, line []byte) (value *R, ok bool)
	columns func(s *rowjson.Scanner, rows *parquet.Rows, row int) (value *R, ok bool)
	decode  func(line []byte) (R, error)
}

// decoded returns the form of a small table, whose rows are all decoded.
func decoded[R any](decode func(line []byte) (R, error)) form[R] {
	return form[R]{
		scan:    func(*rowjson.Scanner, []byte) (*R, bool) { return nil, false },
		columns: noColumns[R],
		decode:  decode,
	}
}

// noColumns has all rows of Parquet read as lines. Accounts take twice as long as by columns: 0.7 instead of 0.4 µs each
// on two cores. Only the table records is so large that this would matter more.
func noColumns[R any](*rowjson.Scanner, *parquet.Rows, int) (*R, bool) { return nil, false }

// parse parses a line. decoded is memory for its row.
func (f form[R]) parse(s *rowjson.Scanner, line []byte, decoded *R) (row *R, err error) {
	if row, ok := f.scan(s, line); ok {
		return row, nil
	}
	*decoded, err = f.decode(line)
	return decoded, err
}

// same returns the identity conversion.
func same[R any](value *R) (R, error) { return *value, nil }

func readTable[R, T any](ctx context.Context, r Reader[T], t rowjson.Table, f form[R], convert func(*R) (T, error)) (err error) {
	r.Workers = cmp.Or(r.Workers, runtime.GOMAXPROCS(0))
	spare := make(lines.Recycler[byte], lines.Spares(r.Workers))
	table, err := openTable(r.Snapshot, selection{t, r.File}, !r.Untimed, spare)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.close()) }()
	hashed := r.Digest != nil
	parse := func(p *Block[T], b block, s *rowjson.Scanner) {
		p.digest = r.Digest
		parseBlock(p, b, s, f, convert)
		if r.Complete != nil {
			p.take = r.Complete(p.Rows)
		}
	}
	return readBlocks(ctx, sideBySide(table.sources, r.Workers), r.Workers, spare, hashed, parse, r.Done)
}

func parseBlock[R, T any](p *Block[T], b block, s *rowjson.Scanner, f form[R], convert func(*R) (T, error)) {
	take := func(number int, row *R, err error) {
		var value T
		if err == nil && p.digest != nil {
			p.sums, err = s.Sum(p.sums, row)
		}
		if err == nil {
			value, err = convert(row)
			if err != nil && p.digest != nil {
				p.sums = p.sums[:len(p.sums)-sha256.Size]
			}
		}
		if op, ok := any(row).(*rowjson.Op); ok && err == nil {
			p.keys = append(p.keys, op.Key())
		}
		p.add(number, value, err)
	}
	if b.rows != nil {
		parseColumns(b, s, f, take)
	} else {
		var decoded R
		lines.Block{First: b.first, Lines: b.lines}.Each(func(number int, line []byte) {
			row, err := f.parse(s, line, &decoded)
			take(number, row, err)
		})
	}
}

// parseColumns parses rows of Parquet.
func parseColumns[R any](b block, s *rowjson.Scanner, f form[R], take func(number int, row *R, err error)) {
	var line []byte
	var decoded R
	for i := range b.rows.N {
		row, ok := f.columns(s, b.rows, i)
		var err error
		if !ok {
			if line, err = b.rows.AppendLine(line[:0], i); err == nil {
				row, err = f.parse(s, line, &decoded)
			}
		}
		take(b.first+i, row, err)
	}
}

// Lines parses the lines of a file, like Reader.Table. Lines passed to parse are valid until done returns.
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
		parseBlock(p, b, s, decoded(parse), same)
	}, done)
}
