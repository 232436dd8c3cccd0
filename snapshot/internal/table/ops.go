package table

import (
	"context"

	"github.com/followpress/followpress/snapshot/internal/parquet"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// A keyed is a converted row with its sort key.
type keyed[T any] struct {
	key   rowjson.Op
	value T
}

// Ops reads the table ops. convert converts each valid row for Done, as in Records. A row that is not after all valid
// rows before it is invalid. Complete is not called concurrently.
func (r Reader[T]) Ops(ctx context.Context, convert func(*rowjson.Op) (T, error)) error {
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
		}, func(e *rowjson.RowError) error { whole.Invalid = append(whole.Invalid, e); return nil })
		if err != nil {
			return err
		}
		whole.Rows, whole.sums = rows, sums
		if r.Complete != nil {
			whole.take = r.Complete(whole.Rows)
		}
		return r.Done(whole)
	}
	return readTable(ctx, inner, rowjson.TableOps, form[rowjson.Op]{
		scan: (*rowjson.Scanner).ScanOp,
		columns: func(s *rowjson.Scanner, rows *parquet.Rows, row int) (*rowjson.Op, bool) {
			return rows.Op(s, row)
		},
		decode: rowjson.DecodeOp,
	}, func(o *rowjson.Op) (keyed[T], error) {
		value, err := convert(o)
		return keyed[T]{o.Key(), value}, err
	})
}
