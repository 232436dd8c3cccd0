package dataset

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/followpress/followpress/site"
)

const (
	// GroupRows bounds the rows of a row group. Engines read a group at a time, and each group has
	// its own dictionaries.
	GroupRows = 1 << 20
	// batchRows is the number of rows encoded at a time, column by column.
	batchRows = 1 << 10
	batchText = 1 << 20 // bytes after which a batch ends early
	pageBytes = 1 << 20
)

// A Writer writes a file row by row: the values of a row in the order of the columns, then EndRow.
type Writer struct {
	table   *Table
	file    *parquet.GenericWriter[any]
	columns []*parquet.ColumnWriter
	values  [][]parquet.Value // values of the batch, by column
	column  int               // column of the next value

	rows          int64
	batch, group  int    // rows so far
	canonical     []byte // canonical rows of the batch; text values point into it
	digest        hash.Hash
	err           error // the first error, after which nothing is written
	scratch, list []byte
}

// NewWriter returns a Writer that writes a file of a table. Its bytes depend on the rows only.
func NewWriter(t *Table, to io.Writer) *Writer {
	options := []parquet.WriterOption{
		t.schema(), parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1), parquet.PageBufferSize(pageBytes),
		// The library's own name and version would change the files with each of its releases.
		parquet.CreatedBy("followpress", "1.0.0", "data"),
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; !c.bounded() {
			path := []string{c.Name}
			if c.Type == Texts {
				path = append(path, "list", "element")
			}
			options = append(options, parquet.SkipPageBounds(path...))
		}
	}
	w := &Writer{table: t, file: parquet.NewGenericWriter[any](to, options...), values: make([][]parquet.Value, len(t.Columns)), digest: sha256.New()}
	w.columns = w.file.ColumnWriters()
	return w
}

// add adds the next value of the row, with its definition level.
func (w *Writer) add(v parquet.Value, level int) {
	w.values[w.column] = append(w.values[w.column], v.Level(0, level, w.column))
	w.column++
}

// level returns the definition level of a value of the next column.
func (w *Writer) level() int {
	if w.table.Columns[w.column].Null {
		return 1
	}
	return 0
}

// Null adds a missing value.
func (w *Writer) Null() {
	w.canonical = append(w.canonical, "-,"...)
	w.add(parquet.Value{}, 0)
}

// AddText adds a UTF-8 text. It is a function because methods cannot be generic.
func AddText[T string | []byte](w *Writer, text T) {
	var kept []byte
	w.canonical, kept = appendCanonical(w.canonical, text)
	w.add(parquet.ByteArrayValue(kept), w.level())
}

// Texts adds a list of UTF-8 texts.
func (w *Writer) Texts(texts []string) {
	w.list = w.list[:0]
	for _, text := range texts {
		w.list, _ = appendCanonical(w.list, text)
	}
	w.canonical, _ = appendCanonical(w.canonical, w.list)
	values := &w.values[w.column]
	for i, text := range texts {
		*values = append(*values, parquet.ValueOf(text).Level(min(i, 1), 1, w.column))
	}
	if len(texts) == 0 {
		*values = append(*values, parquet.Value{}.Level(0, 0, w.column))
	}
	w.column++
}

// Bool adds a truth value.
func (w *Writer) Bool(b bool) {
	w.number(strconv.AppendBool(w.scratch[:0], b))
	w.add(parquet.BooleanValue(b), w.level())
}

// Int adds a number.
func (w *Writer) Int(n int32) {
	w.number(strconv.AppendInt(w.scratch[:0], int64(n), 10))
	w.add(parquet.Int32Value(n), w.level())
}

// Time adds a time in milliseconds since the Unix epoch.
func (w *Writer) Time(millis int64) {
	w.number(strconv.AppendInt(w.scratch[:0], millis, 10))
	w.add(parquet.Int64Value(millis), w.level())
}

func (w *Writer) number(text []byte) {
	w.scratch = text
	w.canonical, _ = appendCanonical(w.canonical, text)
}

// appendCanonical appends a value in canonical form, and returns the text within the result.
func appendCanonical[T string | []byte](b []byte, text T) (all, kept []byte) {
	b = append(strconv.AppendInt(b, int64(len(text)), 10), ':')
	b = append(b, text...)
	return append(b, ','), b[len(b)-len(text) : len(b) : len(b)]
}

// EndRow ends a row after its last value.
func (w *Writer) EndRow() {
	w.column = 0
	w.rows++
	if w.batch++; w.batch == batchRows || len(w.canonical) >= batchText {
		w.endBatch()
	}
	if w.group++; w.group == GroupRows {
		w.EndGroup()
	}
}

func (w *Writer) endBatch() {
	if w.batch == 0 { // parquet-go takes the address of the first value
		return
	}
	w.digest.Write(w.canonical)
	for i, values := range w.values {
		if w.err == nil {
			_, w.err = w.columns[i].WriteRowValues(values)
		}
		clear(values)
		w.values[i] = values[:0]
	}
	w.canonical, w.batch = w.canonical[:0], 0
}

// EndGroup ends a row group, which may be partly filled.
func (w *Writer) EndGroup() {
	w.endBatch()
	if w.err == nil && w.group > 0 {
		w.err = w.file.Flush()
	}
	w.group = 0
}

// Close writes the end of the file, and returns the number of rows and their digest.
func (w *Writer) Close() (rows int64, digest site.SHA256, err error) {
	w.EndGroup()
	err = errors.Join(w.err, w.file.Close())
	return w.rows, site.SHA256(w.digest.Sum(nil)), err
}
