package snapshot

import (
	"bytes"
	"context"

	"github.com/followpress/followpress/snapshot/internal/parquet"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// WriteOp writes a row of ops. Rows must come in the order of Op.Compare, each once. A snapshot without
// such rows has no such table, unless Begin made it.
func (w *Writer) WriteOp(o Op) error {
	return w.tables[TableOps].add(
		func(b []byte) ([]byte, error) { return rowjson.AppendOp(b, o) },
		func() error { return w.ops.Add(&o) })
}

// OpRows makes rows of ops, in the order of Op.Compare. It refuses what WriteOp would refuse.
func OpRows(ops []Op) (_ Rows, err error) {
	b := make([]byte, 0, 192*len(ops))
	var order rowjson.Order
	for i := range ops {
		if b, err = rowjson.AppendOp(b, ops[i]); err == nil {
			err = order.Add(&ops[i])
		}
		if err != nil {
			return Rows{}, err
		}
		b = append(b, '\n')
	}
	return Rows{b, len(ops)}, nil
}

// keyed is what a row was converted to, and the row without its bytes.
type keyed[T any] struct {
	key   Op
	value T
}

// Ops reads the table ops: convert makes of each valid row what Done gets, as for Records. A row that is
// not after all valid rows before it is invalid. Complete is not called concurrently.
func (r Reader[T]) Ops(ctx context.Context, convert func(*Op) (T, error)) error {
	var order rowjson.Order
	if r.After != nil {
		order = rowjson.OrderAfter(r.After)
	}
	var rows []Row[T]
	var sums []byte
	inner := reading[keyed[T]]{Snapshot: r.Snapshot, File: r.File, Workers: r.Workers, hashed: r.Digest != nil}
	inner.Done = func(b Block[keyed[T]]) error {
		whole := Block[T]{File: b.File, lines: b.lines, digest: r.Digest}
		rows, sums = rows[:0], sums[:0]
		n := 0
		err := b.Each(func(row Row[keyed[T]]) error {
			n++
			if err := order.Add(&row.Value.key); err != nil {
				return err
			}
			if r.Digest != nil {
				sums = append(sums, b.sum(n-1)...)
			}
			rows = append(rows, Row[T]{row.Line, row.Value.value})
			return nil
		}, func(e *RowError) error { whole.Invalid = append(whole.Invalid, e); return nil })
		if err != nil {
			return err
		}
		whole.Rows, whole.sums = rows, sums
		if r.Complete != nil {
			whole.take = r.Complete(whole.Rows)
		}
		return r.Done(whole)
	}
	return readTable(ctx, inner, TableOps, form[Op]{
		scan: (*rowjson.Scanner).ScanOp,
		columns: func(s *rowjson.Scanner, rows *parquet.Rows, row int) (*Op, bool) {
			return rows.Op(s, row)
		},
		decode: rowjson.DecodeOp,
	}, func(o *Op) (keyed[T], error) {
		value, err := convert(o)
		return keyed[T]{o.Key(), value}, err
	})
}

// Ops are the rows as they were when OpRows made them.
func (r Rows) Ops() ([]Op, error) {
	ops := make([]Op, 0, r.lines)
	for line := range bytes.Lines(r.text) {
		o, err := ParseOp(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			return nil, err
		}
		ops = append(ops, o)
	}
	return ops, nil
}
