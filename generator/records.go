package generator

import (
	"iter"
	"slices"
)

// A record is an entry of a list.
type record struct {
	data uint32 // account, or otherData and an index
	form
}

// A form is what records have in common: there are few different ones.
type form struct {
	kind uint32 // index into graph.kinds
	tags uint32 // index into graph.tagSets
}

// A recordList is a sequence of records, each in 5 bytes, or 8 if there are more than 256 forms.
type recordList struct {
	data   []uint32
	narrow []uint8  // the numbers of their forms; nil if they do not suffice
	wide   []uint32 // the same then
	forms  []form   // of all records
}

func (l *recordList) len() int { return len(l.data) }

func (l *recordList) form(i int) uint32 {
	if l.wide != nil {
		return l.wide[i]
	}
	return uint32(l.narrow[i])
}

func (l *recordList) at(i int) record { return record{l.data[i], l.forms[l.form(i)]} }

// all yields the records.
func (l recordList) all() iter.Seq2[int, record] {
	return func(yield func(int, record) bool) {
		for i, data := range l.data {
			if !yield(i, record{data, l.forms[l.form(i)]}) {
				return
			}
		}
	}
}

// part returns records from one index to another.
func (l *recordList) part(from, to uint64) recordList {
	p := recordList{data: l.data[from:to], forms: l.forms}
	if l.wide != nil {
		p.wide = l.wide[from:to]
	} else {
		p.narrow = l.narrow[from:to]
	}
	return p
}

// move copies a record to an earlier index.
func (l *recordList) move(to, from int) {
	l.data[to] = l.data[from]
	if l.wide != nil {
		l.wide[to] = l.wide[from]
	} else {
		l.narrow[to] = l.narrow[from]
	}
}

// makeRecords makes n records with that many forms.
func makeRecords(n, forms int) recordList {
	l := recordList{data: make([]uint32, n)}
	if forms > maxNarrow {
		l.wide = make([]uint32, n)
	} else {
		l.narrow = make([]uint8, n)
	}
	return l
}

// maxNarrow is how many forms a byte tells apart.
const maxNarrow = 1 << 8

// widen makes room for the numbers of more than maxNarrow forms.
func (l *recordList) widen() {
	if l.wide != nil {
		return
	}
	l.wide = make([]uint32, len(l.narrow), max(1, len(l.narrow)))
	for i, form := range l.narrow {
		l.wide[i] = uint32(form)
	}
	l.narrow = nil
}

// setForm sets the number of the form of a record.
func (l *recordList) setForm(at uint64, form uint32) {
	if l.wide != nil {
		l.wide[at] = form
	} else {
		l.narrow[at] = uint8(form)
	}
}

// truncate keeps the first n records.
func (l *recordList) truncate(n uint64) {
	*l = l.part(0, n)
}

// copyWithin copies a part to an earlier index and returns its length.
func (l *recordList) copyWithin(to, begin, end uint64) uint64 {
	if to == begin {
		return end - begin
	}
	if l.wide != nil {
		copy(l.wide[to:], l.wide[begin:end])
	} else {
		copy(l.narrow[to:], l.narrow[begin:end])
	}
	return uint64(copy(l.data[to:], l.data[begin:end]))
}

// incomingRecords are records in the order of the snapshot, before they are grouped by list: the blocks
// of a snapshot one after the other. An array for all would be copied whenever it grows.
type incomingRecords struct {
	blocks []incomingBlock
	forms  uint32 // more than the number of any form
}

// incomingBlockSize bounds the records of a block.
const incomingBlockSize = 1 << 16

type incomingBlock struct {
	recordList
	runs  []listRun
	added []int64 // nil unless the API is efp
}

// A listRun are successive records of a list. Most snapshots have one for each list.
type listRun struct{ list, n uint32 }

// add appends a record of a list.
func (in *incomingRecords) add(list, data, form uint32, added int64, timed bool) {
	last := len(in.blocks) - 1
	if last < 0 || len(in.blocks[last].data) == incomingBlockSize {
		b := incomingBlock{recordList: recordList{data: make([]uint32, 0, incomingBlockSize), narrow: make([]uint8, 0, incomingBlockSize)}}
		if timed {
			b.added = make([]int64, 0, incomingBlockSize)
		}
		in.blocks = append(in.blocks, b)
		last++
	}
	b := &in.blocks[last]
	in.forms = max(in.forms, form+1)
	if form >= maxNarrow && b.wide == nil {
		b.widen()
		b.wide = slices.Grow(b.wide, incomingBlockSize-len(b.wide))
	}
	b.data = append(b.data, data)
	if b.wide != nil {
		b.wide = append(b.wide, form)
	} else {
		b.narrow = append(b.narrow, uint8(form))
	}
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
func (in *incomingRecords) group(lists int, timed bool) (offsets []uint64, records recordList, added []int64) {
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
	records = makeRecords(int(n), int(in.forms))
	if timed {
		added = make([]int64, n)
	}
	next := slices.Clone(offsets)
	for i := range in.blocks {
		b := &in.blocks[i]
		from := uint64(0)
		for _, run := range b.runs {
			part, at := b.part(from, from+uint64(run.n)), next[run.list]
			records.set(at, part)
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

// set replaces the records from an index on. Records with wide numbers take those with narrow ones.
func (l *recordList) set(at uint64, part recordList) {
	copy(l.data[at:], part.data)
	switch {
	case l.wide == nil:
		copy(l.narrow[at:], part.narrow)
	case part.wide != nil:
		copy(l.wide[at:], part.wide)
	default:
		for i, form := range part.narrow {
			l.wide[at+uint64(i)] = uint32(form)
		}
	}
}
