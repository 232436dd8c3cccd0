package dataset

import (
	"cmp"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// A Table is the schema of files. docs/site.md shows the tables to readers.
type Table struct {
	Name, Title string
	Columns     []Column
}

// A Column is a column of a table.
type Column struct {
	Name    string
	Type    Type
	Null    bool   // whether values are optional
	Unit    string // "" for none
	Meaning string // description for people
}

// A Type is the type of a column's values.
type Type int

// Types of columns.
const (
	Text     Type = iota // few distinct texts
	Sorted               // texts in rising order
	LongText             // mostly distinct texts
	Texts                // lists of texts
	Bool
	Int       // 32 bits, few distinct values
	Rank      // 32 bits, mostly distinct values
	RowNumber // 32 bits, in rising order or close to it
	Time      // milliseconds since the Unix epoch, UTC
)

// node returns the Parquet type of the column.
func (c *Column) node() parquet.Node {
	var n parquet.Node
	switch dictionary := func() parquet.Node { return parquet.Encoded(parquet.String(), &parquet.RLEDictionary) }; c.Type {
	case Text:
		n = dictionary()
	case Sorted, LongText:
		n = parquet.String()
	case Texts:
		n = parquet.List(dictionary())
	case Bool:
		n = parquet.Leaf(parquet.BooleanType)
	case Int:
		n = parquet.Encoded(parquet.Int(32), &parquet.RLEDictionary)
	case Rank:
		n = parquet.Int(32)
	case RowNumber:
		n = parquet.Encoded(parquet.Int(32), &parquet.DeltaBinaryPacked)
	case Time:
		n = parquet.TimestampAdjusted(parquet.Millisecond, false)
	}
	if c.Null {
		n = parquet.Optional(n)
	}
	return n
}

// bounded reports whether the file states the minimum and maximum of the column, which let engines
// skip row groups. Long texts have none, because the file would contain them twice.
func (c *Column) bounded() bool { return c.Type != LongText && c.Type != Texts }

// columns is a parquet.Group in the order of a table.
type columns struct {
	parquet.Group
	table *Table
}

func (t *Table) schema() *parquet.Schema {
	group := parquet.Group{}
	for i := range t.Columns {
		group[t.Columns[i].Name] = t.Columns[i].node()
	}
	return parquet.NewSchema(t.Name, columns{group, t})
}

func (c columns) Fields() []parquet.Field {
	fields := c.Group.Fields()
	place := func(f parquet.Field) int {
		return slices.IndexFunc(c.table.Columns, func(c Column) bool { return c.Name == f.Name() })
	}
	slices.SortFunc(fields, func(a, b parquet.Field) int { return cmp.Compare(place(a), place(b)) })
	return fields
}
