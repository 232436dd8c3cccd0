package generator

import (
	"context"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// A RowError is an invalid row of a snapshot, or an invalid refreshed object.
type RowError = snapshot.RowError

// A reader reads the tables of a snapshot and reports on their rows.
type reader struct {
	snapshot    afero.Fs
	workers     int
	skipInvalid bool
	maxText     int       // limit of a profile's text in bytes; longer ones are left out
	refreshed   Refreshed // nil for none
	efp         bool      // whether the site has the API efp, which shows more of a snapshot
	report      *Report
	progress    Progress
}

// reject counts an invalid row, or returns its error unless invalid rows are skipped.
func (r *reader) reject(skipped *int, e *RowError) error {
	if !r.skipInvalid {
		return e
	}
	*skipped++
	if len(r.report.Invalid) < maxInvalidListed {
		r.report.Invalid = append(r.report.Invalid, e)
	}
	return nil
}

// readTable parses a table on all workers. It calls accept with each valid row, in the order of lines
// and never concurrently, and rejects the other rows.
func readTable[T any](
	ctx context.Context, r *reader, t snapshot.Table, parse func(line []byte) (T, error), accept func(snapshot.Row[T]) error,
) error {
	return snapshot.ReadTable(ctx, r.snapshot, t, r.workers, parse, acceptRows(r, t, accept))
}

// readRecords is readTable of the records.
func readRecords[T any](ctx context.Context, r *reader, convert func(*snapshot.Record) (T, error), accept func(snapshot.Row[T]) error) error {
	return snapshot.ReadRecords(ctx, r.snapshot, r.workers, r.efp, convert, acceptRows(r, snapshot.TableRecords, accept))
}

// acceptRows counts the rows of a block, accepts the valid ones, and rejects the others.
func acceptRows[T any](r *reader, t snapshot.Table, accept func(snapshot.Row[T]) error) func(snapshot.Block[T]) error {
	counts := r.report.table(t)
	return func(b snapshot.Block[T]) error {
		counts.file = b.File
		counts.Rows += len(b.Rows) + len(b.Invalid)
		r.progress.Add(int64(len(b.Rows)))
		return b.Each(accept, func(e *RowError) error { return r.reject(&counts.Skipped, e) })
	}
}

// The types below are rows in the form in which the loader uses them. Parsers run on many goroutines.
// References to other rows are checked later, by the loader.

type accountRow struct {
	address site.Address
	primary string // token ID; "" for none
	profile profile
	long    []site.LongText // left out of the profile
}

func parseAccountRow(line []byte, maxText int) (accountRow, error) {
	in, err := snapshot.ParseAccount(line)
	if err != nil {
		return accountRow{}, err
	}
	a := accountRow{address: in.Address, primary: in.Primary}
	if in.ENS != nil {
		ens, long := in.ENS.WithoutLongTexts(maxText)
		a.profile, a.long = encodeProfile(ens), long
	}
	return a, nil
}
