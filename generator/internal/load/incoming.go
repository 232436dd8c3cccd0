package load

import (
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// incomingRecords are records in the order of the snapshot, before they are grouped by list, in
// blocks. A single array would be copied whenever it grows.
type incomingRecords struct {
	blocks []incomingBlock
	forms  uint32 // greater than any form number
}

const incomingBlockSize = 1 << 16

type incomingBlock struct {
	graph.RecordList
	runs  []listRun
	added []int64 // nil unless the API is efp
}

// A listRun counts successive records of a list. Most snapshots have one run per list.
type listRun struct{ list, n uint32 }

func (b *incomingBlock) add(list, data, form uint32) {
	b.Append(data, form)
	if n := len(b.runs); n == 0 || b.runs[n-1].list != list {
		b.runs = append(b.runs, listRun{list, 0})
	}
	b.runs[len(b.runs)-1].n++
}

// packedRecords are successive records packed by a worker, so that the goroutine that collects them
// in order only copies columns. It resolves only accounts that no other table names.
type packedRecords struct {
	incomingBlock
	forms   uint32 // greater than any form number
	late    []lateRecord
	unknown int // records of unknown lists
}

// A lateRecord is about an account without a number yet.
type lateRecord struct {
	at      int // index of the record
	address site.Address
}

// pack replaces the packed records.
func (p *packedRecords) pack(rows []snapshotRow, timed bool) {
	p.Reset()
	p.runs, p.added, p.late, p.forms, p.unknown = p.runs[:0], p.added[:0], p.late[:0], 0, 0
	for i := range rows {
		in := &rows[i].Value
		if in.list == graph.None {
			p.unknown++
			continue
		}
		if in.data == graph.None {
			p.late = append(p.late, lateRecord{p.Len(), in.address})
		}
		p.add(in.list, in.data, in.form)
		p.forms = max(p.forms, in.form+1)
		if timed {
			p.added = append(p.added, in.added)
		}
	}
}

// add copies packed records whose accounts all have numbers.
func (in *incomingRecords) add(p *packedRecords, timed bool) {
	in.forms = max(in.forms, p.forms)
	last := len(in.blocks) - 1
	if last < 0 || in.blocks[last].Room() < p.Len() {
		room := max(incomingBlockSize, p.Len())
		b := incomingBlock{RecordList: graph.NewRecords(room)}
		if timed {
			b.added = make([]int64, 0, room)
		}
		in.blocks = append(in.blocks, b)
		last++
	}
	b := &in.blocks[last]
	b.AppendAll(&p.RecordList)
	b.runs, b.added = append(b.runs, p.runs...), append(b.added, p.added...)
}

// group groups the records by list, keeping the order of the snapshot within a list, and frees the
// blocks. offsets are as in a graph.
func (in *incomingRecords) group(lists int, timed bool, workers int) (offsets []uint64, records graph.RecordList, added []int64) {
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
	records = graph.MakeRecords(int(n), int(in.forms))
	if timed {
		added = make([]int64, n)
	}
	next := slices.Clone(offsets)
	var group errgroup.Group
	group.SetLimit(workers)
	for i := range in.blocks {
		b := &in.blocks[i]
		places := make([]uint64, len(b.runs)) // blocks can be copied in any order
		for i, run := range b.runs {
			places[i] = next[run.list]
			next[run.list] += uint64(run.n)
		}
		group.Go(func() error {
			from := uint64(0)
			for i, run := range b.runs {
				to := from + uint64(run.n)
				records.Set(places[i], b.Part(from, to))
				if timed {
					copy(added[places[i]:], b.added[from:to])
				}
				from = to
			}
			*b = incomingBlock{}
			return nil
		})
	}
	_ = group.Wait() // copying cannot fail
	in.blocks = nil
	return offsets, records, added
}

// An incomingRecord is a row of records, numbered as far as workers can.
type incomingRecord struct {
	list    uint32 // None for an unknown list
	form    uint32
	data    uint32       // None for an address without a number yet
	address site.Address // set if data is None
	added   int64
}

type snapshotRow = snapshot.Row[incomingRecord]
