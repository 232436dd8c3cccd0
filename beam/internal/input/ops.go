package input

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
)

// Rows of ops have an order, and a row that breaks it is invalid. So the reader of a file must know
// the last row of the previous file. The worker that reads the whole table for its digest provides
// it.

func init() {
	dofn.Register6x1(&readOps{})
}

// Ops reads the operations: wire.OpRow by token ID. opsAfter comes from Digests.
func (t *Tables) Ops(s beam.Scope, opsAfter beam.PCollection) Rows {
	s = s.Scope("read " + string(snapshot.TableOps))
	rows, counts, notes := beam.ParDo3(s, &readOps{t.reader(), t.opsFrom}, t.elements(s, snapshot.TableOps), beam.SideInput{Input: opsAfter})
	return Rows{Rows: rows, Counts: counts, Notes: notes}
}

type readOps struct {
	reader
	From int64 // earliest time of wanted operations
}

// ProcessElement reads a file. The side input has the row after which each file must begin.
func (r *readOps) ProcessElement(
	ctx context.Context, element string, opsAfter func(*string, *[]byte) bool, emit emitRow, count emitCount, note emitRow,
) error {
	after := map[uint32]*snapshot.Op{}
	var table string
	var value []byte
	for opsAfter(&table, &value) {
		d := wire.Decode(value)
		number, o := d.Uint32(), d.Op()
		if err := d.Err(); err != nil {
			return err
		}
		after[number], value = &o, nil
	}
	c := r.tally(snapshot.TableOps, count, note)
	return r.read(ctx, c, element, func(files afero.Fs, name string) error {
		reader := fileReader(files, name, rows(c, func(line int, o *wire.OpRow) error {
			o.Position = c.at(line)
			emit(o.Op.TokenID, o.Append(nil))
			return nil
		}))
		reader.After = after[c.Number]
		return reader.Ops(ctx, r.convert)
	})
}

// convert keeps the fields of a row that the site needs.
func (r *readOps) convert(o *snapshot.Op) (row wire.OpRow, err error) {
	row.Op = withoutBytes(o)
	parsed, _ := op.Parse(o.Op) // checked by the reader
	address, ok := parsed.Address()
	if !ok {
		return row, nil
	}
	row.Code = parsed.Code
	if row.IsShown = o.Time >= r.From; row.IsShown {
		row.Address, row.Tag = address, string(parsed.Tag)
	}
	return row, nil
}

// withoutBytes returns a copy of the ordering fields of a row.
func withoutBytes(o *snapshot.Op) snapshot.Op {
	c := *o
	c.TokenID, c.Op = strings.Clone(o.TokenID), nil
	return c
}

// digestOps reads the whole table, and emits the row after which each file must begin.
func (r *readDigests) digestOps(ctx context.Context, files afero.Fs, all []file, opsAfter emitRow) (site.SHA256, error) {
	var digest snapshot.Digest
	var last snapshot.Op
	told, any := 0, false
	tell := func() {
		if any {
			opsAfter(string(snapshot.TableOps), wire.AppendOp(binary.AppendUvarint(nil, uint64(all[told].Number)), &last))
		}
		told++
	}
	err := snapshot.Reader[snapshot.Op]{
		Snapshot: files, Workers: workersOfDigest, Digest: &digest,
		Done: func(b snapshot.Block[snapshot.Op]) error {
			for told == 0 || all[told-1].Name != b.File {
				tell()
			}
			return b.Each(func(row snapshot.Row[snapshot.Op]) error {
				last, any = row.Value, true
				return nil
			}, r.reject)
		},
	}.Ops(ctx, func(o *snapshot.Op) (snapshot.Op, error) { return withoutBytes(o), nil })
	for err == nil && told < len(all) {
		tell()
	}
	return digest.Sum(), err
}
