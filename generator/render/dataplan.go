package render

import "github.com/followpress/followpress/generator/internal/dataset"

// Limits of files, in estimated bytes. The estimate adds the lengths of texts, as if only digits of addresses and numbers
// could be compressed; for usual graphs it is right within a tenth.
const (
	maxDataFile  = 48 << 20
	maxDataGroup = 24 << 20 // of a row group, whose dictionaries are in memory
	addressData  = 24       // of an address
	timeData     = 5        // of a time within some years of the others
	indexData    = 3        // of an index in a dictionary
)

// A dataSpan is a range of rows that becomes a file.
type dataSpan struct {
	from, to int64
	groups   []int64 // ends of its row groups
	bytes    int64   // estimated
}

// A dataPlan cuts a table into files, and these into row groups. The rows must come in their order.
type dataPlan struct {
	spans []dataSpan
	rows  int64
	group struct { // that has begun
		number uint32 // from 1
		rows   int
		bytes  int64
	}
}

// plan cuts the table. One without rows has a file.
func (t *dataTable) plan() []dataSpan {
	if t.rows <= dataset.GroupRows && t.most <= maxDataFile {
		return []dataSpan{{to: t.rows, groups: []int64{t.rows}, bytes: t.most}}
	}
	p := &dataPlan{spans: make([]dataSpan, 1)}
	p.group.number = 1
	t.weigh(p)
	p.endGroup()
	return p.spans
}

// row adds a row of so many bytes.
func (p *dataPlan) row(bytes int) {
	p.rows++
	p.group.rows++
	p.group.bytes += int64(bytes)
	if p.group.rows == dataset.GroupRows || p.group.bytes >= maxDataGroup {
		p.endGroup()
	}
}

func (p *dataPlan) endGroup() {
	if p.group.rows == 0 {
		return
	}
	last := &p.spans[len(p.spans)-1]
	if last.to > last.from && last.bytes+p.group.bytes > maxDataFile {
		p.spans = append(p.spans, dataSpan{from: last.to})
		last = &p.spans[len(p.spans)-1]
	}
	last.to, last.groups, last.bytes = p.rows, append(last.groups, p.rows), last.bytes+p.group.bytes
	p.group.number, p.group.rows, p.group.bytes = p.group.number+1, 0, 0
}

// dataMarks are numbers of row groups by the number of a text: the last one that has it in its dictionary.
type dataMarks []uint32

// first returns the bytes that a text adds to the dictionary of the row group: none if that has it.
func (p *dataPlan) first(m dataMarks, text uint32, bytes int) int {
	if m[text] == p.group.number {
		return 0
	}
	m[text] = p.group.number
	return bytes
}
