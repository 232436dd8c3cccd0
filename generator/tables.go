package generator

import (
	"context"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// A reader reads the tables of a snapshot and reports on their rows.
type reader struct {
	snapshot      afero.Fs
	workers       int
	skipInvalid   bool
	limits        site.ProfileLimits // what exceeds them is left out
	refreshed     Refreshed          // nil for none
	refreshedLeft func() int         // see Options
	badgesAsOf    time.Time          // of the badges; zero for as_of of the snapshot
	window        site.Window        // of operations; 0 for none
	efp           bool               // whether the site has the API efp, which shows more of a snapshot
	inputs        *site.Inputs       // to fill; nil if nobody wants to know
	digests       map[snapshot.Table]*snapshot.Digest
	report        *summary.Report
	file          map[snapshot.Table]string // that was read last, of each table
	progress      Progress
}

// reject counts an invalid row, or returns its error unless invalid rows are skipped.
func (r *reader) reject(skipped *int, e *snapshot.RowError) error {
	if !r.skipInvalid {
		return e
	}
	r.skip(skipped, e)
	return nil
}

// skip counts what is not read, and lists the first.
func (r *reader) skip(skipped *int, e *snapshot.RowError) {
	*skipped++
	if len(r.report.Invalid) < summary.MaxInvalid {
		r.report.Invalid = append(r.report.Invalid, e)
	}
}

// readTable parses a table on all workers. It calls accept with each valid row, in the order of lines
// and never concurrently, and rejects the other rows.
func readTable[T any](
	ctx context.Context, r *reader, t snapshot.Table, parse func(line []byte) (T, error), accept func(snapshot.Row[T]) error,
) error {
	return r.countBytes(t, readerOf(r, t, accept).Table(ctx, t, parse))
}

// readerOf reads a table as readTable does, and counts its rows. Without accept, Complete takes them.
func readerOf[T any](r *reader, t snapshot.Table, accept func(snapshot.Row[T]) error) snapshot.Reader[T] {
	counts := r.report.Table(t)
	return snapshot.Reader[T]{Snapshot: r.snapshot, Workers: r.workers, Untimed: !r.efp, Digest: r.digest(t), Done: func(b snapshot.Block[T]) error {
		r.file[t] = b.File
		counts.Rows += len(b.Rows) + len(b.Invalid)
		r.progress.AddBytes(int64(len(b.Rows)), 0)
		reject := func(e *snapshot.RowError) error { return r.reject(&counts.Skipped, e) }
		if accept == nil {
			return b.Take(reject)
		}
		return b.Each(accept, reject)
	}}
}

// digest is for the rows of a table; nil if nobody wants to know.
func (r *reader) digest(t snapshot.Table) *snapshot.Digest {
	if r.inputs == nil {
		return nil
	}
	if r.digests == nil {
		r.digests = map[snapshot.Table]*snapshot.Digest{}
	}
	d := new(snapshot.Digest)
	r.digests[t] = d
	return d
}

// readInputs reads what meta.json says of the snapshot.
func (r *reader) readInputs() error {
	if r.inputs == nil {
		return nil
	}
	told, err := snapshot.ReadInputs(r.snapshot)
	r.inputs.Chains, r.inputs.Profiles, r.inputs.Badges = told.Chains, told.Profiles, told.Badges
	if err == nil && r.efp {
		r.inputs.ListOps, err = snapshot.ReadListOps(r.snapshot)
	}
	if err == nil && r.window > 0 {
		r.inputs.OpsFrom, err = snapshot.ReadOpsFrom(r.snapshot)
	}
	return err
}

// sumTables adds the digests of the tables that were read to the inputs.
func (r *reader) sumTables() {
	for t, d := range r.digests {
		r.inputs.Tables[string(t)] = d.Sum()
	}
	if _, ok := r.digests[snapshot.TableOps]; !ok && r.inputs != nil {
		r.inputs.OpsFrom = "" // it is about that table
	}
}

// countBytes reports the bytes of a table that was read, or returns the error of reading it.
func (r *reader) countBytes(t snapshot.Table, err error) error {
	if err != nil {
		return err
	}
	bytes, err := snapshot.TableBytes(r.snapshot, t)
	r.progress.AddBytes(0, bytes)
	return err
}
