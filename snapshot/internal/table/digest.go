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

// DigestOf reads a whole table and returns its digest. An invalid row returns a *RowError; only ops is checked for
// repeated rows. If untimed, it ignores the times of records, as for a site with the API spec. The error wraps
// ErrNoTable if the table is missing.
func DigestOf(ctx context.Context, snapshot afero.Fs, t rowjson.Table, untimed bool) (site.SHA256, error) {
	var d Digest
	var err error
	switch t {
	case rowjson.TableEvents:
		err = digestTable(ctx, snapshot, t, &d, site.DecodeEvent)
	case rowjson.TableLists:
		err = digestTable(ctx, snapshot, t, &d, rowjson.ParseList)
	case rowjson.TableBadges:
		err = digestTable(ctx, snapshot, t, &d, rowjson.ParseBadge)
	case rowjson.TableRecommended:
		err = digestTable(ctx, snapshot, t, &d, rowjson.ParseRecommended)
	case rowjson.TableAccounts:
		err = digestReader[struct{}](snapshot, &d).Accounts(ctx, func(*rowjson.Account) (none struct{}, err error) { return none, nil })
	case rowjson.TableRecords:
		r := digestReader[struct{}](snapshot, &d)
		r.Untimed = untimed
		err = r.Records(ctx, func(*rowjson.Record) (none struct{}, err error) { return none, nil })
	case rowjson.TableOps:
		err = digestReader[struct{}](snapshot, &d).Ops(ctx, func(*rowjson.Op) (none struct{}, err error) { return none, nil })
	default:
		err = fmt.Errorf("table %q: use one of %v", t, rowjson.AllTables())
	}
	if err != nil {
		return site.SHA256{}, err
	}
	return d.Sum(), nil
}

func digestTable[T any](ctx context.Context, snapshot afero.Fs, t rowjson.Table, d *Digest, parse func([]byte) (T, error)) error {
	return digestReader[T](snapshot, d).Table(ctx, t, parse)
}

// digestReader returns a Reader that only computes the digest.
func digestReader[T any](snapshot afero.Fs, d *Digest) Reader[T] {
	return Reader[T]{Snapshot: snapshot, Digest: d, Done: func(b Block[T]) error {
		return b.Each(func(Row[T]) error { return nil }, func(e *rowjson.RowError) error { return e })
	}}
}
