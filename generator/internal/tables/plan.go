package tables

import "github.com/followpress/followpress/generator/internal/dataset"

// Limits of files, in estimated bytes. The estimate adds the lengths of texts, as if only digits of
// addresses and numbers could be compressed; for usual graphs it is right within a tenth.
const (
	maxDataFile  = 48 << 20
	maxDataGroup = 24 << 20 // row group, whose dictionaries are in memory
	addressData  = 24       // address
	timeData     = 5        // time within some years of the others
	indexData    = 3        // index in a dictionary
)

// A dataTable is a table of the graph.
type dataTable struct {
	dataset.Table
	rows  int64
	most  int64                                   // estimated maximum bytes of all rows in one row group
	weigh func(p *dataPlan)                       // calls p.row for each row in order
	write func(w *dataset.Writer, from, to int64) // writes rows [from, to)
}

// A dataSpan is a range of rows that becomes a file.
type dataSpan struct {
	from, to int64
	groups   []int64 // ends of the row groups
	bytes    int64   // estimated
}

// A dataPlan cuts a table into files, and files into row groups. Rows must come in order.
type dataPlan struct {
	spans []dataSpan
	rows  int64
	group struct { // current row group
		number uint32 // from 1
		rows   int
		bytes  int64
	}
}

// plan cuts the table. An empty table has one file.
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

// row adds a row of this size.
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

// dataMarks are, by text number, the last row group with the text in its dictionary.
type dataMarks []uint32

// first returns the bytes that a text adds to the dictionary of the row group, 0 if it is there
// already.
func (p *dataPlan) first(m dataMarks, text uint32, bytes int) int {
	if m[text] == p.group.number {
		return 0
	}
	m[text] = p.group.number
	return bytes
}
