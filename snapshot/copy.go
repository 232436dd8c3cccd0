package snapshot

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
	"github.com/followpress/followpress/snapshot/internal/table"
)

// CopyTable copies a whole table from a file of rows, compressed if its name ends in .gz or .zst. Rows stay as they
// are, after the checks of the reader; an invalid row returns a *RowError. Nothing else may be written to the table.
func (w *Writer) CopyTable(table, file string) error {
	t, ok := w.tables[Table(table)]
	if !ok {
		return fmt.Errorf("table %q: use one of %v", table, rowjson.AllTables())
	}
	if t.copied != "" || t.rows > 0 {
		return fmt.Errorf("table %s has rows already: it cannot be copied from %s", table, file)
	}
	if t.err != nil {
		return t.err
	}
	// A file without rows creates an empty table.
	err := t.open()
	if err == nil {
		err = w.copyRows(Table(table), file)
	}
	t.copied = file
	if err != nil {
		t.err = fmt.Errorf("copy table %s: %w", table, err)
	}
	return t.err
}

func (w *Writer) copyRows(table Table, file string) error {
	t := w.tables[table]
	switch table {
	case TableLists:
		return copyTable(t, file, func(l List) error { return w.lists.add(l.TokenID) })
	case TableRecords:
		return copyTable(t, file, func(Record) error { return nil })
	case TableAccounts:
		return copyTable(t, file, func(a Account) error { return w.accounts.add(a.Address) })
	case TableEvents:
		return copyTable(t, file, func(e site.Event) error { return w.events.add(e.ID) })
	case TableBadges:
		return copyTable(t, file, func(Badge) error { return nil })
	case TableOps:
		return copyTable(t, file, func(o Op) error { return w.ops.Add(&o) })
	default:
		return copyTable(t, file, func(Recommended) error { return nil })
	}
}

type copiedRow[T any] struct {
	line  []byte
	value T
}

// copyTable copies the lines of a file that are rows of the type T and that accept does not reject.
func copyTable[T any](t *tableWriter, file string, accept func(T) error) error {
	rows, err := lines.Open(afero.NewOsFs(), file, openerOf(file))
	if err != nil {
		return err
	}
	reject := func(e *RowError) error {
		if t.err != nil {
			return t.err // the row is valid, but writing failed
		}
		return e
	}
	parse := rowjson.Parser[T](false)
	parseRow := func(line []byte) (copiedRow[T], error) {
		value, err := parse(line)
		return copiedRow[T]{line, value}, err
	}
	return table.Lines(context.Background(), rows, parseRow, func(b Block[copiedRow[T]]) error {
		return b.Each(func(r Row[copiedRow[T]]) error {
			if err := accept(r.Value.value); err != nil {
				return err
			}
			return t.end(append(t.buf, r.Value.line...))
		}, reject)
	})
}

// openerOf returns the decompressor for a file name.
func openerOf(file string) func(io.Reader) (io.ReadCloser, error) {
	formats := lines.Formats[:3]
	at := slices.IndexFunc(formats, func(f lines.Format) bool { return filepath.Ext(f.Ending) == filepath.Ext(file) })
	return formats[max(at, 0)].Unpack
}
