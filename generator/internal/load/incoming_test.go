package load

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/followpress/followpress/generator/render"
)

// TestGroupingEqualsNaiveOne with few forms and many, with and without runs, with and without
// times.
func TestGroupingEqualsNaiveOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		lists, forms, longest, timed := 1+r.IntN(50), uint32(1+r.IntN(600)), 1+r.IntN(40), r.IntN(2) == 0
		type row struct {
			data, form uint32
			added      int64
		}
		want := make([][]row, lists)
		var in incomingRecords
		var p packedRecords
		var rows []snapshotRow
		flush := func() {
			p.pack(rows, timed)
			for _, late := range p.late {
				p.SetData(late.at, binary.BigEndian.Uint32(late.address[:]))
			}
			in.add(&p, timed)
			rows = rows[:0]
		}
		for n := 0; n < incomingBlockSize+incomingBlockSize/2; {
			list := r.IntN(lists)
			for range 1 + r.IntN(longest) {
				add := row{r.Uint32(), r.Uint32N(forms), 0}
				if timed {
					add.added = r.Int64()
				}
				row := snapshotRow{Value: incomingRecord{list: uint32(list), data: add.data, form: add.form, added: add.added}}
				if r.IntN(4) == 0 { // without a number yet
					row.Value.data = render.None
					binary.BigEndian.PutUint32(row.Value.address[:], add.data)
				}
				if rows = append(rows, row); r.IntN(3000) == 0 {
					flush()
				}
				want[list] = append(want[list], add)
				n++
			}
		}
		flush()
		offsets, records, added := in.group(lists, timed, 1+r.IntN(8))
		records.Use(make([]render.Form, forms))
		for list := range want {
			part := records.Part(offsets[list], offsets[list+1])
			got := make([]row, part.Len())
			for i := range got {
				got[i] = row{part.At(i).Data, part.Form(i), 0}
				if timed {
					got[i].added = added[offsets[list]+uint64(i)]
				}
			}
			if !slices.Equal(got, want[list]) {
				t.Fatalf("seed %d: list %d has other records", seed, list)
			}
		}
	}
}
