package generator

import (
	"slices"

	"github.com/followpress/followpress/generator/render"
)

// incomingRecords are records in the order of the snapshot, before they are grouped by list: the blocks
// of a snapshot one after the other. An array for all would be copied whenever it grows.
type incomingRecords struct {
	blocks []incomingBlock
	forms  uint32 // more than the number of any form
}

const incomingBlockSize = 1 << 16

type incomingBlock struct {
	render.RecordList
	runs  []listRun
	added []int64 // nil unless the API is efp
}

// A listRun are successive records of a list. Most snapshots have one for each list.
type listRun struct{ list, n uint32 }

func (in *incomingRecords) add(list, data, form uint32, added int64, timed bool) {
	last := len(in.blocks) - 1
	if last < 0 || in.blocks[last].Len() == incomingBlockSize {
		b := incomingBlock{RecordList: render.NewRecords(incomingBlockSize)}
		if timed {
			b.added = make([]int64, 0, incomingBlockSize)
		}
		in.blocks = append(in.blocks, b)
		last++
	}
	b := &in.blocks[last]
	in.forms = max(in.forms, form+1)
	b.Append(data, form)
	if timed {
		b.added = append(b.added, added)
	}
	if n := len(b.runs); n == 0 || b.runs[n-1].list != list {
		b.runs = append(b.runs, listRun{list, 0})
	}
	b.runs[len(b.runs)-1].n++
}

// group groups the records by list, those of a list in the order of the snapshot. It frees the blocks.
// offsets are as in a graph.
func (in *incomingRecords) group(lists int, timed bool) (offsets []uint64, records render.RecordList, added []int64) {
	offsets = make([]uint64, lists+1)
	for i := range in.blocks {
		for _, run := range in.blocks[i].runs {
			offsets[run.list+1] += uint64(run.n)
		}
	}
	for list := range lists {
		offsets[list+1] += offsets[list]
	}
	n := offsets[lists]
	records = render.MakeRecords(int(n), int(in.forms))
	if timed {
		added = make([]int64, n)
	}
	next := slices.Clone(offsets)
	for i := range in.blocks {
		b := &in.blocks[i]
		from := uint64(0)
		for _, run := range b.runs {
			part, at := b.Part(from, from+uint64(run.n)), next[run.list]
			records.Set(at, part)
			if timed {
				copy(added[at:], b.added[from:from+uint64(run.n)])
			}
			next[run.list] += uint64(run.n)
			from += uint64(run.n)
		}
		*b = incomingBlock{}
	}
	in.blocks = nil
	return offsets, records, added
}
