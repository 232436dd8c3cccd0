package table

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// A Digest is the digest of a table's rows: the SHA-256 of the concatenated SHA-256s of all rows in
// canonical form, in order. The canonical form is the line that a Writer writes, without the line
// feed. The digest does not depend on the division into files. The zero value is the digest of no
// rows.
//
// Rows are hashed separately to use several cores, and to reorder rows by moving digests.
type Digest struct {
	rows hash.Hash // over the digests of rows; nil before the first
}

// Add adds the next row.
func (d *Digest) Add(row []byte) {
	sum := sha256.Sum256(row)
	d.add(sum[:])
}

// AddAccount adds the row of an account as WriteAccount writes it.
func (d *Digest) AddAccount(a rowjson.Account) error {
	row, err := rowjson.AppendAccount(nil, a)
	return d.addRow(row, err)
}

// AddEvent adds the row of an event as WriteEvent writes it.
func (d *Digest) AddEvent(e site.Event) error {
	row, err := rowjson.AppendEvent(nil, e)
	return d.addRow(row, err)
}

// AddBadge adds the row of a badge as WriteBadge writes it.
func (d *Digest) AddBadge(badge rowjson.Badge) error {
	row, err := rowjson.AppendBadge(nil, badge)
	return d.addRow(row, err)
}

func (d *Digest) addRow(row []byte, err error) error {
	if err == nil {
		d.Add(row)
	}
	return err
}

// add adds the digests of rows.
func (d *Digest) add(sums []byte) {
	if d.rows == nil {
		d.rows = sha256.New()
	}
	d.rows.Write(sums)
}

// Sum returns the digest of the rows so far.
func (d *Digest) Sum() (sum site.SHA256) {
	if d.rows == nil {
		return sha256.Sum256(nil)
	}
	d.rows.Sum(sum[:0])
	return sum
}

// AddTable adds the rows of a table. Workers hash them, and keep no row. Options and errors are those of Canonical.
func (d *Digest) AddTable(ctx context.Context, snapshot afero.Fs, t rowjson.Table, untimed bool) error {
	r := Reader[struct{}]{Snapshot: snapshot, Untimed: untimed, Digest: d, Done: func(b Block[struct{}]) error {
		return b.Each(func(Row[struct{}]) error { return nil }, func(e *rowjson.RowError) error { return e })
	}}
	return readAny(ctx, r, t, func(any) (none struct{}, err error) { return none, nil })
}

// Canonical calls found with each row of a table in canonical form, without the line feed, in the order of the table.
// The row is valid until found returns. If untimed, records have no times. An invalid row returns a *RowError; only
// ops is checked for repeated rows. The error wraps ErrNoTable if the table is missing.
func Canonical(ctx context.Context, snapshot afero.Fs, t rowjson.Table, untimed bool, found func(row []byte) error) error {
	r := Reader[[]byte]{Snapshot: snapshot, Untimed: untimed, Done: func(b Block[[]byte]) error {
		return b.Each(func(r Row[[]byte]) error { return found(r.Value) }, func(e *rowjson.RowError) error { return e })
	}}
	return readAny(ctx, r, t, func(row any) ([]byte, error) { return rowjson.Canonical(make([]byte, 0, usualRow), row) })
}

// usualRow is the size in bytes that few rows exceed.
const usualRow = 256

// readAny reads any table. convert receives pointers to its rows.
func readAny[T any](ctx context.Context, r Reader[T], t rowjson.Table, convert func(row any) (T, error)) error {
	switch t {
	case rowjson.TableEvents:
		return readTable(ctx, r, t, decoded(site.DecodeEvent), rowOf[site.Event](convert))
	case rowjson.TableLists:
		return readTable(ctx, r, t, decoded(rowjson.ParseList), rowOf[rowjson.List](convert))
	case rowjson.TableBadges:
		return readTable(ctx, r, t, decoded(rowjson.ParseBadge), rowOf[rowjson.Badge](convert))
	case rowjson.TableRecommended:
		return readTable(ctx, r, t, decoded(rowjson.ParseRecommended), rowOf[rowjson.Recommended](convert))
	case rowjson.TableAccounts:
		return r.Accounts(ctx, rowOf[rowjson.Account](convert))
	case rowjson.TableRecords:
		return r.Records(ctx, rowOf[rowjson.Record](convert))
	case rowjson.TableOps:
		return r.Ops(ctx, rowOf[rowjson.Op](convert))
	}
	return fmt.Errorf("table %q: use one of %v", t, rowjson.AllTables())
}

func rowOf[R, T any](convert func(row any) (T, error)) func(*R) (T, error) {
	return func(row *R) (T, error) { return convert(row) }
}
