package parquet

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	lib "github.com/parquet-go/parquet-go"
	parquetformat "github.com/parquet-go/parquet-go/format"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// A columnKind is the kind of values in a column of a table.
type columnKind int

const (
	textColumn   columnKind = iota // BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY with text
	jsonColumn                     // the same, with JSON
	numberColumn                   // INT32 or INT64
	tagsColumn                     // a list of texts
	timeColumn                     // a text or a timestamp
)

// A column is a member of rows.
type column struct {
	name     string
	kind     columnKind
	optional bool
}

// tableColumns are the columns of each table. Others are ignored.
var tableColumns = map[rowjson.Table][]column{
	rowjson.TableEvents: {
		{name: "id", kind: numberColumn}, {name: "fancy_id"}, {name: "name"}, {name: "event_url"}, {name: "image_url"}, {name: "country"},
		{name: "city"}, {name: "description"}, {name: "year", kind: numberColumn}, {name: "start_date"}, {name: "end_date"}, {name: "expiry_date"},
	},
	rowjson.TableLists: {{name: "token_id"}, {name: "owner"}, {name: "user", optional: true}},
	// In the order of the constants below.
	rowjson.TableRecords: {
		{name: "token_id"}, {name: "version", kind: numberColumn}, {name: "record_type"}, {name: "data"},
		{name: "tags", kind: tagsColumn, optional: true}, {name: "added", kind: timeColumn, optional: true},
	},
	rowjson.TableAccounts:    {{name: "address"}, {name: "primary_list", optional: true}, {name: "ens", kind: jsonColumn, optional: true}},
	rowjson.TableBadges:      {{name: "event_id"}, {name: "token_id"}, {name: "owner"}},
	rowjson.TableRecommended: {{name: "address"}, {name: "class", optional: true}},
	rowjson.TableOps: {
		{name: "token_id"}, {name: "time", kind: timeColumn}, {name: "chain_id", kind: numberColumn}, {name: "block", kind: numberColumn},
		{name: "log_index", kind: numberColumn}, {name: "op"},
	},
}

const (
	recordToken = iota
	recordVersion
	recordType
	recordData
	recordTags
	recordAdded
)

// A File is an open file of a table.
type File struct {
	name    string
	file    afero.File
	at      io.ReaderAt // the file
	size    int64
	meta    parquetformat.FileMetaData
	parquet *lib.File // sees all pages uncompressed
	columns []leaf    // as in tableColumns
}

// A leaf is a column of a file.
type leaf struct {
	column
	source   *lib.Column
	index    int   // among the leaf columns of the file; -1 if missing
	element  int   // lists: definition level of elements, null or not
	unsigned bool  // numbers are unsigned
	isNumber bool  // times are stored as numbers
	divisor  int64 // times stored as numbers: units per millisecond; 0 for INT96

	// Of members of ens, if that is a struct:
	inside string // JSON name of the struct in ens with the member; "" for ens itself
	quoted string // JSON name of the member; "" for columns of the table
}

// maxMembers is the maximum number of texts in a struct. Each row has a value of each in memory.
const maxMembers = 256

// Columns returns the columns to read. Without timed, times are ignored, valid or not.
func Columns(t rowjson.Table, timed bool) []column {
	columns := tableColumns[t]
	if t == rowjson.TableRecords && !timed {
		return columns[:recordAdded]
	}
	return columns
}

// Open opens a table and finds its columns.
func Open(files afero.Fs, name string, columns []column) (*File, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open table %s: %w", name, err)
	}
	p := &File{name: name, file: file}
	if err := p.open(columns); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), file.Close())
	}
	return p, nil
}

func (p *File) open(columns []column) (err error) {
	defer recovered(&err)
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	var at io.ReaderAt = p.file
	if _, shared := p.file.(interface{ Shared() }); !shared {
		at = &lockedReader{file: p.file}
	}
	p.at = at
	p.size = info.Size()
	if err := p.openFooter(); err != nil {
		return err
	}
	for _, wanted := range columns {
		found, err := p.findColumn(wanted)
		if err != nil {
			return fmt.Errorf("column %s: %w", wanted.name, err)
		}
		p.columns = append(p.columns, found)
		if found.kind == jsonColumn && found.source != nil && !found.source.Leaf() {
			err = p.addMembers(found.source, "")
			if len(p.columns) > len(columns)+maxMembers {
				err = fmt.Errorf("more than %d texts", maxMembers)
			}
			if err != nil {
				return fmt.Errorf("column %s: %w", wanted.name, err)
			}
		}
	}
	return nil
}

// addMembers adds the profile members among the members of a struct, which is ens or inside it.
func (p *File) addMembers(of *lib.Column, inside string) error {
	for _, c := range of.Columns() {
		l := leaf{column: column{name: c.Name(), optional: true}, source: c, index: c.Index(), inside: inside}
		l.quoted = string(rawjson.AppendString(nil, l.name))
		switch known := strings.ToLower(l.name); {
		case inside != "" || slices.Contains([]string{"name", "avatar", "header", "display", "resolver"}, known):
		case known == "fresh":
			l.kind = numberColumn
		case !slices.Contains([]string{"records", "chains", "errors"}, known):
			continue
		case !c.Leaf() && c.MaxRepetitionLevel() == 0:
			if err := p.addMembers(c, l.quoted); err != nil {
				return err
			}
			continue
		default:
			l.kind = jsonColumn
		}
		switch {
		case !c.Leaf() || c.MaxRepetitionLevel() != 0 || !utf8.ValidString(l.name):
			return fmt.Errorf("its member %s has another structure than %s", site.Quoted(l.name), kindNames[l.kind])
		case l.takes(c.Type()):
			p.columns = append(p.columns, l)
		case !p.empty() && !p.allNull(l.index):
			return fmt.Errorf("its member %s has the type %s, not %s", site.Quoted(l.name), c.Type(), kindNames[l.kind])
		}
	}
	return nil
}

// Close closes the file.
func (p *File) Close() error {
	if err := p.file.Close(); err != nil {
		return fmt.Errorf("close %s: %w", p.name, err)
	}
	return nil
}

// recovered turns a panic of the library, which trusts a file's claims, into an error.
func recovered(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("the file is damaged: %v", cause)
	}
}

// A lockedReader serializes ReadAt for file systems that do not allow concurrent calls.
type lockedReader struct {
	mutex sync.Mutex
	file  io.ReaderAt
}

func (l *lockedReader) ReadAt(p []byte, off int64) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.file.ReadAt(p, off)
}

// named returns the column with a name, in any letter case, or nil.
func named(file *lib.File, name string) (found *lib.Column, err error) {
	for _, c := range file.Root().Columns() {
		if !strings.EqualFold(c.Name(), name) {
			continue
		}
		if found != nil {
			return nil, errors.New("duplicate")
		}
		found = c
	}
	return found, nil
}

// findColumn returns the column with a name, in any letter case.
func (p *File) findColumn(wanted column) (leaf, error) {
	found, err := named(p.parquet, wanted.name)
	if err != nil {
		return leaf{}, err
	}
	l := leaf{column: wanted, index: -1}
	switch {
	case found != nil:
	case wanted.optional:
		return l, nil
	default:
		return l, errors.New("missing")
	}
	for wanted.kind == tagsColumn && len(found.Columns()) == 1 {
		found = found.Columns()[0]
	}
	depth := 0
	switch {
	case wanted.name == "ens" && !found.Leaf() && found.MaxRepetitionLevel() == 0:
		l.source = found // its members are columns
		return l, nil
	case wanted.kind == tagsColumn && found.Leaf() && found.MaxRepetitionLevel() == 0:
		l.kind = jsonColumn // fastparquet writes lists as JSON; or the type is Null
	case wanted.kind == tagsColumn:
		depth = 1
	}
	if !found.Leaf() || found.MaxRepetitionLevel() != depth {
		return l, fmt.Errorf("it has another structure than %s", kindNames[wanted.kind])
	}
	l.source, l.index, l.element = found, found.Index(), found.MaxDefinitionLevel()
	if found.Optional() {
		l.element--
	}
	if !l.takes(found.Type()) {
		if p.hasNone(&l) {
			l.index = -1
			return l, nil
		}
		return l, fmt.Errorf("it has the type %s, not %s", found.Type(), kindNames[wanted.kind])
	}
	return l, nil
}

// hasNone reports whether a column has no value, so that its type does not matter: NULL in DuckDB is a number.
func (p *File) hasNone(l *leaf) bool { return p.empty() || l.optional && p.allNull(l.index) }

func (p *File) empty() bool {
	return !slices.ContainsFunc(p.meta.RowGroups, func(g parquetformat.RowGroup) bool { return g.NumRows > 0 })
}

// allNull reports whether a column has only nulls, according to the file.
func (p *File) allNull(column int) bool {
	for _, group := range p.meta.RowGroups {
		if chunk := &group.Columns[column].MetaData; chunk.Statistics.NullCount != chunk.NumValues {
			return false
		}
	}
	return true
}

var kindNames = map[columnKind]string{
	textColumn: "texts", jsonColumn: "JSON as text", numberColumn: "whole numbers of 32 or 64 bits", tagsColumn: "a list of texts, or JSON as text", timeColumn: "timestamps or texts",
}

// takes reports whether values of a type suit the column, and records how to read them.
func (l *leaf) takes(t lib.Type) bool {
	kind := t.Kind()
	var logical parquetformat.LogicalTypeValue
	if annotation := t.LogicalType(); annotation != nil {
		logical = annotation.Value
	}
	if _, isNull := logical.(*parquetformat.NullType); isNull {
		return true // only nulls, as in a table without rows
	}
	integer, isInteger := logical.(*parquetformat.IntType)
	switch {
	case l.kind == numberColumn:
		l.unsigned = isInteger && !integer.IsSigned
		return (kind == lib.Int32 || kind == lib.Int64) && (logical == nil || isInteger)
	case kind == lib.ByteArray || kind == lib.FixedLenByteArray:
		_, isDecimal := logical.(*parquetformat.DecimalType)
		return !isDecimal
	case l.kind != timeColumn:
		return false
	}
	l.isNumber = true
	timestamp, ok := logical.(*parquetformat.TimestampType)
	if !ok {
		return kind == lib.Int96
	}
	l.divisor = int64(time.Millisecond / max(timestamp.Unit.Value.Duration(), 1))
	return kind == lib.Int64 && l.divisor > 0
}

// milliseconds returns a time in milliseconds since the Unix epoch, rounded down.
func (l *leaf) milliseconds(v lib.Value) int64 {
	if l.divisor != 0 {
		n := v.Int64()
		ms := n / l.divisor
		if n%l.divisor < 0 {
			ms--
		}
		return ms
	}
	// Nanoseconds of a Julian day; the epoch is day 2440588.
	at := v.Int96()
	const day = 24 * 60 * 60 * 1000
	return (int64(at[2])-2_440_588)*day + int64(uint64(at[1])<<32|uint64(at[0]))/1_000_000
}

// Maximum size of a block.
const (
	rowsInBlock  = 2048
	bytesInBlock = 16 << 20 // limit of value bytes in a block, in addition to the rest of their pages
)

// Rows are a sequence of rows, stored by column.
type Rows struct {
	N       int // number of rows
	columns []leaf
	values  [][]lib.Value // by column; nil for a missing one
	begins  []int32       // start of each row's tags, and the end
	Bytes   int           // approximate memory of the values
}

// spareRows holds Rows for reuse, which saves the garbage collector much work.
var spareRows = sync.Pool{New: func() any { return new(Rows) }}

// takeRows returns Rows for n rows, whose values are still to be read.
func (p *File) takeRows(n int) *Rows {
	rows := spareRows.Get().(*Rows)
	rows.N, rows.columns, rows.Bytes = n, p.columns, 0
	rows.values = slices.Grow(rows.values[:0], len(p.columns))[:len(p.columns)]
	for i, l := range p.columns {
		if l.index < 0 {
			rows.values[i] = nil
		}
	}
	return rows
}

// GiveBack returns the rows for reuse, unless they have many tags.
func (c *Rows) GiveBack() {
	for _, values := range c.values {
		if cap(values) > 4*rowsInBlock {
			return
		}
	}
	spareRows.Put(c)
}

// A Block is a sequence of rows of a file, or an announcement of memory.
type Block struct {
	First int // number of the first row
	Rows  *Rows
	Pages int64 // without Rows: bytes of pages that the row group will hold in memory
}

// RowGroups returns a source for each row group.
func (p *File) RowGroups() []iter.Seq2[Block, error] {
	var sources []iter.Seq2[Block, error]
	first := 1
	for i, group := range p.parquet.RowGroups() {
		rows := group.NumRows()
		sources = append(sources, p.rowGroup(group, i, first))
		if rows > 0 && rows < math.MaxInt32 {
			first += int(rows)
		}
	}
	return sources
}

// rowGroup yields the rows of a row group, numbered from first in the file. Before them, it yields a block that
// announces the memory of its pages.
func (p *File) rowGroup(group lib.RowGroup, number, first int) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		var readers []*columnReader
		defer func() {
			for _, r := range readers {
				r.close()
			}
		}()
		failed := func(err error) { yield(Block{}, fmt.Errorf("read %s: row group %d: %w", p.name, number, err)) }
		var pages, row int64
		for _, l := range p.columns {
			r, size, err := p.reader(group, number, l)
			if err == nil {
				if pages += size; pages > max(MaxGroupBytes, p.size) {
					err = fmt.Errorf("its pages take more than %d MiB together: write smaller ones", MaxGroupBytes>>20)
				}
			}
			if err != nil {
				failed(err)
				return
			}
			readers = append(readers, r)
		}
		if !yield(Block{Pages: max(1, pages)}, nil) {
			return
		}
		for _, r := range readers {
			if err := r.begin(); err != nil {
				failed(err)
				return
			}
			if r.kind != tagsColumn {
				row += r.row
			}
		}
		most := min(rowsInBlock, max(1, bytesInBlock/max(1, row)))
		for left := group.NumRows(); left > 0; {
			rows, err := p.nextRows(readers, int(min(left, most)))
			if err != nil {
				failed(err)
				return
			}
			rows.Bytes += rows.N * int(row)
			n := rows.N // the consumer may give the rows back
			if !yield(Block{First: first, Rows: rows}, nil) {
				return
			}
			left -= int64(n)
			first += n
		}
		if err := checkEnd(readers); err != nil {
			failed(err)
		}
	}
}

// nextRows reads 1 to n rows.
func (p *File) nextRows(readers []*columnReader, n int) (*Rows, error) {
	rows := p.takeRows(n)
	for i, r := range readers {
		if r.kind == tagsColumn && r.index >= 0 { // first, because many tags reduce the number of rows
			if err := r.lists(n, rows, i); err != nil {
				return nil, fmt.Errorf("column %s: %w", r.name, err)
			}
			rows.N = len(rows.begins) - 1
		}
	}
	for i, r := range readers {
		if r.kind != tagsColumn && r.index >= 0 {
			rows.values[i] = slices.Grow(rows.values[i][:0], rows.N)[:rows.N]
			if read, err := r.read(rows.values[i]); err != nil {
				return nil, fmt.Errorf("column %s: %w", r.name, err)
			} else if read < rows.N {
				return nil, fmt.Errorf("column %s: %w", r.name, errTooFew)
			}
		}
	}
	return rows, nil
}

var errTooFew = errors.New("the file is damaged: it has fewer rows than the row group says")

// checkEnd returns an error if a column has more rows than the row group states.
func checkEnd(readers []*columnReader) error {
	for _, r := range readers {
		n, err := r.read(make([]lib.Value, 1))
		if err == nil && n+len(r.ahead) > 0 {
			err = errors.New("the file is damaged: it has more rows than the row group says")
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", r.name, err)
		}
	}
	return nil
}

// A columnReader reads the values of a column in a row group; none if the column is missing.
type columnReader struct {
	leaf
	stream *pageStream
	row    int64           // approximate bytes of the longest rows
	pages  lib.Pages       // pages of stream
	values lib.ValueReader // values of the current page; nil between pages
	ahead  []lib.Value     // lists: values already read that belong to later rows
	buf    []lib.Value
}

// reader returns a reader of a column, and the approximate memory of its pages.
func (p *File) reader(group lib.RowGroup, number int, l leaf) (r *columnReader, size int64, err error) {
	r = &columnReader{leaf: l}
	if l.index < 0 {
		return r, 0, nil
	}
	if r.stream, err = p.pagesOf(number, l); err == nil {
		r.row, size, err = r.stream.size()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("column %s: %w", l.name, err)
	}
	r.pages = group.ColumnChunks()[l.index].(*lib.FileColumnChunk).PagesFrom(r.stream)
	return r, size, nil
}

// begin reads the first page and the dictionary, which limits the length of rows.
func (r *columnReader) begin() error {
	if r.pages == nil {
		return nil
	}
	if _, err := r.read(nil); err != nil {
		return fmt.Errorf("column %s: %w", r.name, err)
	}
	r.row = max(r.row, r.stream.longest)
	return nil
}

func (r *columnReader) close() {
	if r.pages != nil {
		_ = r.pages.Close() // read completely, or no longer wanted
	}
}

// read fills `into` from the current page, with fewer values at the end.
func (r *columnReader) read(into []lib.Value) (n int, err error) {
	defer recovered(&err)
	for r.pages != nil {
		if r.values == nil {
			page, err := r.pages.ReadPage()
			if errors.Is(err, io.EOF) {
				return n, nil
			} else if err != nil {
				return n, err
			}
			r.values = page.Values()
		}
		if n == len(into) {
			break
		}
		read, err := r.values.ReadValues(into[n:])
		n += read
		switch {
		case errors.Is(err, io.EOF):
			r.values = nil
		case err != nil:
			return n, err
		case read == 0:
			return n, io.ErrNoProgress
		}
	}
	return n, nil
}

const (
	maxTags      = 1 << 20 // per row
	tagsInBlock  = 1 << 16 // more make a block of fewer rows
	valuesAtOnce = 256
)

// lists reads 1 to n lists into a column of rows: their present values, or null, and the start of each list, and the
// end.
func (r *columnReader) lists(n int, rows *Rows, column int) error {
	values, begins := rows.values[column][:0], rows.begins[:0]
	before := 0 // bytes of the lists before the last one
	for {
		if len(r.ahead) == 0 {
			if err := r.readAhead(); err != nil {
				return err
			}
		}
		atEnd := len(r.ahead) == 0
		if atEnd || r.ahead[0].RepetitionLevel() == 0 {
			full := len(begins) == n || len(values) > tagsInBlock || rows.Bytes > bytesInBlock
			if full || atEnd && len(begins) > 0 {
				rows.values[column], rows.begins = values, append(begins, int32(len(values)))
				return nil
			}
			begins, before = append(begins, int32(len(values))), rows.Bytes
		}
		if atEnd || len(begins) == 0 {
			return errTooFew
		}
		if v := r.ahead[0]; v.DefinitionLevel() >= r.element {
			values = append(values, v)
			rows.Bytes += len(v.ByteArray())
		}
		switch {
		case len(values)-int(begins[len(begins)-1]) > maxTags:
			return fmt.Errorf("a list of more than %d texts", maxTags)
		case rows.Bytes-before > rowjson.MaxLineBytes:
			return fmt.Errorf("a list of more than %d MiB", rowjson.MaxLineBytes>>20)
		}
		r.ahead = r.ahead[1:]
	}
}

// readAhead reads more values of lists.
func (r *columnReader) readAhead() error {
	if r.buf == nil {
		r.buf = make([]lib.Value, valuesAtOnce)
	}
	read, err := r.read(r.buf)
	r.ahead = r.buf[:read]
	return err
}
