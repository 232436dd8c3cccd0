package load

import (
	"context"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// Options configures reading a snapshot. Report and Progress are required.
type Options struct {
	Snapshot    afero.Fs
	Config      site.Config     // decides how much of a snapshot is read; longer texts than its limits are omitted
	Workers     int             // goroutines
	SkipInvalid bool            // report invalid rows and continue; otherwise the first one is returned as the error
	Refreshed   Refreshed       // nil for none
	BadgesAsOf  time.Time       // time of the badges; zero for the snapshot's as_of
	Inputs      *site.Inputs    // to fill; nil if not wanted
	Report      *summary.Report // to fill
	Progress    Progress
}

// timed reports whether the graph stores when records were added.
func (o *Options) timed() bool { return o.Config.EFP() || o.Config.Data }

func (o *Options) readsOps() bool { return o.Config.HistoryWindow > 0 || o.Config.Data }

// Refreshed reads the data that refreshes have fetched from upstreams and stored.
type Refreshed interface {
	// Each calls found with each object, in the order of keys and never concurrently. Keys are
	// without site.RefreshPrefix. The body of an object that nobody trusted has signed is nil. Each
	// stops at the first error of found and returns it.
	Each(ctx context.Context, found func(key site.Key, body []byte) error) error
}

// Progress reports how far a run has come. Its methods are called from many goroutines.
type Progress interface {
	// Stage begins a part of the run. total is the sum of n over all calls of AddBytes in this
	// stage, or 0 if unknown.
	Stage(name string, total int64)
	// AddBytes reports n more finished items and their bytes: stored bytes of files read, or bytes
	// of objects rendered.
	AddBytes(n, bytes int64)
}

// A reader reads the tables of a snapshot and reports on their rows.
type reader struct {
	Options
	digests map[snapshot.Table]*snapshot.Digest
	file    map[snapshot.Table]string // last file read, by table
}

// reject counts an invalid row, or returns its error unless invalid rows are skipped.
func (r *reader) reject(skipped *int, e *snapshot.RowError) error {
	if !r.SkipInvalid {
		return e
	}
	r.skip(skipped, e)
	return nil
}

// skip counts a skipped row, and lists the first ones.
func (r *reader) skip(skipped *int, e *snapshot.RowError) {
	*skipped++
	if len(r.Report.Invalid) < summary.MaxInvalid {
		r.Report.Invalid = append(r.Report.Invalid, e)
	}
}

// readTable parses a table on all workers. It calls accept with each valid row, in the order of
// lines and never concurrently, and rejects the other rows.
func readTable[T any](
	ctx context.Context, r *reader, t snapshot.Table, accept func(snapshot.Row[T]) error,
) error {
	return r.countBytes(t, readerOf(r, t, accept).Table(ctx, t))
}

// readerOf returns a reader of a table that counts its rows. Without accept, use Complete for the
// rows.
func readerOf[T any](r *reader, t snapshot.Table, accept func(snapshot.Row[T]) error) snapshot.Reader[T] {
	counts := r.Report.Table(t)
	return snapshot.Reader[T]{Snapshot: r.Snapshot, Workers: r.Workers, Untimed: !r.timed(), Digest: r.digest(t), Done: func(b snapshot.Block[T]) error {
		r.file[t] = b.File
		counts.Rows += len(b.Rows) + len(b.Invalid)
		r.Progress.AddBytes(int64(len(b.Rows)), 0)
		reject := func(e *snapshot.RowError) error { return r.reject(&counts.Skipped, e) }
		if accept == nil {
			return b.Take(reject)
		}
		return b.Each(accept, reject)
	}}
}

// digest returns the digest for the rows of a table; nil if not wanted.
func (r *reader) digest(t snapshot.Table) *snapshot.Digest {
	if r.Inputs == nil {
		return nil
	}
	if r.digests == nil {
		r.digests = map[snapshot.Table]*snapshot.Digest{}
	}
	d := new(snapshot.Digest)
	r.digests[t] = d
	return d
}

// readInputs reads the inputs that meta.json names.
func (r *reader) readInputs() error {
	if r.Inputs == nil {
		return nil
	}
	told, err := snapshot.ReadInputs(r.Snapshot)
	r.Inputs.Chains, r.Inputs.Profiles, r.Inputs.Badges = told.Chains, told.Profiles, told.Badges
	if err == nil && r.Config.EFP() {
		r.Inputs.ListOps, err = snapshot.ReadListOps(r.Snapshot)
	}
	if err == nil && r.readsOps() {
		r.Inputs.OpsFrom, err = snapshot.ReadOpsFrom(r.Snapshot)
	}
	return err
}

// sumTables adds the digests of the tables to the inputs.
func (r *reader) sumTables() {
	for t, d := range r.digests {
		r.Inputs.Tables[string(t)] = d.Sum()
	}
	if _, ok := r.digests[snapshot.TableOps]; !ok && r.Inputs != nil {
		r.Inputs.OpsFrom = "" // ops were not read
	}
}

// countBytes reports the bytes of a table, or returns err, the error of reading it.
func (r *reader) countBytes(t snapshot.Table, err error) error {
	if err != nil {
		return err
	}
	bytes, err := snapshot.TableBytes(r.Snapshot, t)
	r.Progress.AddBytes(0, bytes)
	return err
}
