package table

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"

	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// Ops reads the table ops. convert converts each valid row for Done, as in Records. A row that is not after all valid
// rows before it is invalid. Complete is not called concurrently.
func (r Reader[T]) Ops(ctx context.Context, convert func(*rowjson.Op) (T, error)) error {
	var order rowjson.Order
	if r.After != nil {
		order = rowjson.OrderAfter(r.After)
	}
	complete, done := r.Complete, r.Done
	r.Complete = nil
	r.Done = func(b Block[T]) error {
		b.removeUnordered(&order)
		if complete != nil {
			b.take = complete(b.Rows)
		}
		return done(b)
	}
	return readTable(ctx, r, rowjson.TableOps, form[rowjson.Op]{
		scan: (*rowjson.Scanner).ScanOp, columns: noColumns[rowjson.Op], decode: rowjson.DecodeOp,
	}, convert)
}

// removeUnordered makes the rows of ops invalid that are out of order.
func (p *Block[T]) removeUnordered(order *rowjson.Order) {
	kept := 0
	for i, row := range p.Rows {
		if err := order.Add(&p.keys[i]); err != nil {
			p.Invalid = append(p.Invalid, &rowjson.RowError{File: p.File, Line: row.Line, Reason: err.Error()})
			continue
		}
		p.Rows[kept] = row
		if p.digest != nil {
			copy(p.sums[kept*sha256.Size:], p.sum(i))
		}
		kept++
	}
	if kept < len(p.Rows) {
		p.Rows, p.sums = p.Rows[:kept], p.sums[:min(len(p.sums), kept*sha256.Size)]
		slices.SortFunc(p.Invalid, func(a, b *rowjson.RowError) int { return cmp.Compare(a.Line, b.Line) })
	}
}
