package graph

import (
	"iter"

	"github.com/followpress/followpress/site/rules"
)

// A PackedRecord is an entry of a list.
type PackedRecord struct {
	Data uint32 // account, or OtherData and an index
	Form
}

// Identity returns the identity of the record, by numbers.
func (r PackedRecord) Identity() rules.Identity[uint32, uint32] {
	return rules.Identity[uint32, uint32]{Kind: r.Kind, Data: r.Data}
}

// A Form is the common part of many records: there are few different forms.
type Form struct {
	Kind uint32 // index into Graph.kinds
	Tags uint32 // index into Graph.TagSets
}

// A RecordList is a sequence of records, each in 5 bytes, or 8 if there are more than 256 forms.
type RecordList struct {
	data   []uint32
	narrow []uint8  // form numbers; nil if a byte is not enough
	wide   []uint32 // form numbers if narrow is nil
	forms  []Form   // by number
}

// Len returns the number of records.
func (l *RecordList) Len() int { return len(l.data) }

// Data returns the subject of a record, as in PackedRecord.
func (l *RecordList) Data(i int) uint32 { return l.data[i] }

// Form returns the number of the form of a record.
func (l *RecordList) Form(i int) uint32 {
	if l.wide != nil {
		return l.wide[i]
	}
	return uint32(l.narrow[i])
}

// At returns a record. The forms must be set.
func (l *RecordList) At(i int) PackedRecord { return PackedRecord{l.data[i], l.forms[l.Form(i)]} }

// All yields the records.
func (l RecordList) All() iter.Seq2[int, PackedRecord] {
	return func(yield func(int, PackedRecord) bool) {
		for i, data := range l.data {
			if !yield(i, PackedRecord{data, l.forms[l.Form(i)]}) {
				return
			}
		}
	}
}

// Part returns the records [from, to).
func (l *RecordList) Part(from, to uint64) RecordList {
	p := RecordList{data: l.data[from:to], forms: l.forms}
	if l.wide != nil {
		p.wide = l.wide[from:to]
	} else {
		p.narrow = l.narrow[from:to]
	}
	return p
}

// Move copies a record to an earlier index.
func (l *RecordList) Move(to, from int) {
	l.data[to] = l.data[from]
	if l.wide != nil {
		l.wide[to] = l.wide[from]
	} else {
		l.narrow[to] = l.narrow[from]
	}
}

// MakeRecords returns n records, for this number of forms.
func MakeRecords(n, forms int) RecordList {
	l := RecordList{data: make([]uint32, n)}
	if forms > maxNarrow {
		l.wide = make([]uint32, n)
	} else {
		l.narrow = make([]uint8, n)
	}
	return l
}

// maxNarrow is the number of forms that fit a byte.
const maxNarrow = 1 << 8

// widen makes room for the numbers of more than maxNarrow forms.
func (l *RecordList) widen() {
	if l.wide != nil {
		return
	}
	l.wide = make([]uint32, len(l.narrow), max(1, cap(l.data)))
	for i, form := range l.narrow {
		l.wide[i] = uint32(form)
	}
	l.narrow = nil
}

// Use sets the forms of all records, by number.
func (l *RecordList) Use(forms []Form) { l.forms = forms }

// SetData sets the subject of a record.
func (l *RecordList) SetData(at int, data uint32) { l.data[at] = data }

// SetForm sets the number of the form of a record.
func (l *RecordList) SetForm(at uint64, form uint32) {
	if form >= maxNarrow {
		l.widen()
	}
	if l.wide != nil {
		l.wide[at] = form
	} else {
		l.narrow[at] = uint8(form)
	}
}

// NewRecords returns an empty list with a capacity.
func NewRecords(room int) RecordList {
	return RecordList{data: make([]uint32, 0, room), narrow: make([]uint8, 0, room)}
}

// Append appends a record.
func (l *RecordList) Append(data, form uint32) {
	if form >= maxNarrow {
		l.widen()
	}
	l.data = append(l.data, data)
	if l.wide != nil {
		l.wide = append(l.wide, form)
	} else {
		l.narrow = append(l.narrow, uint8(form))
	}
}

// Reset removes the records and keeps their memory.
func (l *RecordList) Reset() { *l = RecordList{data: l.data[:0], narrow: l.narrow[:0]} }

// Room returns the number of records that can be appended without allocation.
func (l *RecordList) Room() int { return cap(l.data) - len(l.data) }

// AppendAll appends records.
func (l *RecordList) AppendAll(part *RecordList) {
	if part.wide != nil {
		l.widen()
	}
	l.data = append(l.data, part.data...)
	switch {
	case l.wide == nil:
		l.narrow = append(l.narrow, part.narrow...)
	case part.wide != nil:
		l.wide = append(l.wide, part.wide...)
	default:
		for _, form := range part.narrow {
			l.wide = append(l.wide, uint32(form))
		}
	}
}

// Truncate keeps the first n records.
func (l *RecordList) Truncate(n uint64) {
	*l = l.Part(0, n)
}

// CopyWithin copies a part to an earlier index and returns its length.
func (l *RecordList) CopyWithin(to, begin, end uint64) uint64 {
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

// Set replaces the records from an index on. Records with wide numbers accept narrow ones.
func (l *RecordList) Set(at uint64, part RecordList) {
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

// OtherData marks PackedRecord.Data as an index into Graph.Other instead of an account.
const OtherData = uint32(1) << 31
