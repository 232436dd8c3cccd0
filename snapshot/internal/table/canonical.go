package table

import (
	"context"
	"fmt"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// Canonical calls found with each row of a table in canonical form, without the line feed, in the order of the table.
// The row is valid until found returns. If untimed, records have no times. An invalid row returns a *RowError; only
// ops is checked for repeated rows. The error wraps ErrNoTable if the table is missing.
func Canonical(ctx context.Context, snapshot afero.Fs, t rowjson.Table, untimed bool, found func(row []byte) error) error {
	switch t {
	case rowjson.TableEvents:
		return canonicalTable(ctx, snapshot, t, site.DecodeEvent, found)
	case rowjson.TableLists:
		return canonicalTable(ctx, snapshot, t, rowjson.ParseList, found)
	case rowjson.TableBadges:
		return canonicalTable(ctx, snapshot, t, rowjson.ParseBadge, found)
	case rowjson.TableRecommended:
		return canonicalTable(ctx, snapshot, t, rowjson.ParseRecommended, found)
	case rowjson.TableAccounts:
		return canonicalReader(snapshot, untimed, found).Accounts(ctx, canonical)
	case rowjson.TableRecords:
		return canonicalReader(snapshot, untimed, found).Records(ctx, canonical)
	case rowjson.TableOps:
		return canonicalReader(snapshot, untimed, found).Ops(ctx, canonical)
	}
	return fmt.Errorf("table %q: use one of %v", t, rowjson.AllTables())
}

func canonical[R any](row *R) ([]byte, error) { return rowjson.Canonical(nil, row) }

func canonicalTable[R any](ctx context.Context, snapshot afero.Fs, t rowjson.Table, parse func([]byte) (R, error), found func([]byte) error) error {
	return canonicalReader(snapshot, false, found).Table(ctx, t, func(line []byte) ([]byte, error) {
		row, err := parse(line)
		if err != nil {
			return nil, err
		}
		return canonical(&row)
	})
}

func canonicalReader(snapshot afero.Fs, untimed bool, found func([]byte) error) Reader[[]byte] {
	return Reader[[]byte]{Snapshot: snapshot, Untimed: untimed, Done: func(b Block[[]byte]) error {
		return b.Each(func(r Row[[]byte]) error { return found(r.Value) }, func(e *rowjson.RowError) error { return e })
	}}
}
