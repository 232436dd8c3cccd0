package snapshot

import (
	"bytes"

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
