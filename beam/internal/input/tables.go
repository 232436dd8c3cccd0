package input

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// Options selects what to read of a snapshot. Workers get it as JSON.
type Options struct {
	EFP         bool               // for the API efp: times of records, and recommended accounts
	SkipInvalid bool               // count and note invalid rows instead of failing
	Limits      site.ProfileLimits // longer texts of profiles are omitted
	History     site.Window        // time window of wanted operations, if the snapshot has the table ops; 0 for none
}

// Tables is a snapshot as seen by the launcher, before a pipeline is built.
type Tables struct {
	AsOf    string  // time of the snapshot, RFC 3339
	ListOps *uint64 // as stated by the snapshot, for the API efp; nil if unknown
	HasOps  bool    // whether the snapshot has the table ops, and operations are wanted
	// Inputs are the inputs of the site that the launcher knows: those in meta.json, and the
	// digests of tables that it read.
	Inputs site.Inputs

	source  Source
	options Options
	snap    afero.Fs
	files   map[snapshot.Table][]file
	opsFrom int64 // earliest time of wanted operations
}

// Open opens a snapshot and checks that all tables exist, like generate. ctx is used by all later
// requests.
func Open(ctx context.Context, source Source, o Options) (*Tables, error) {
	at, err := source.parse()
	if err != nil {
		return nil, err
	}
	if at.Folder != "" {
		source.Location = at.Folder // a worker may have another working directory
	}
	t := &Tables{source: source, options: o, files: map[snapshot.Table][]file{}}
	if t.snap, err = source.open(ctx); err != nil {
		return nil, err
	}
	if t.AsOf, err = snapshot.ReadAsOf(t.snap); err != nil {
		return nil, err
	}
	if t.Inputs, err = snapshot.ReadInputs(t.snap); err != nil {
		return nil, err
	}
	t.Inputs.Tables = map[string]site.SHA256{}
	for _, table := range snapshot.Tables() {
		if err := t.add(table); err != nil {
			return nil, err
		}
	}
	if !o.EFP {
		return t, nil
	}
	if t.ListOps, err = snapshot.ReadListOps(t.snap); err != nil {
		return nil, err
	}
	t.Inputs.ListOps = t.ListOps
	if err := t.add(snapshot.TableRecommended); err != nil && !errors.Is(err, snapshot.ErrNoTable) {
		return nil, err
	}
	if o.History == 0 {
		return t, nil
	}
	if t.opsFrom, err = render.WindowStart(t.AsOf, o.History); err != nil {
		return nil, err
	}
	switch err := t.add(snapshot.TableOps); {
	case errors.Is(err, snapshot.ErrNoTable):
		return t, nil
	case err != nil:
		return nil, err
	}
	t.HasOps = true
	t.Inputs.OpsFrom, err = snapshot.ReadOpsFrom(t.snap)
	return t, err
}

func (t *Tables) add(table snapshot.Table) (err error) {
	if err := snapshot.CheckTable(t.snap, table); err != nil {
		return err
	}
	t.files[table], err = filesOf(t.snap, table)
	return err
}

// unpackedBy estimates the ratio of rows to a compressed file: 6 in snapshots of synthetic graphs
// with zstd. A larger number is safe.
const unpackedBy = 8

// Bytes estimates the size of the rows of a table, as JSON.
func (t *Tables) Bytes(table snapshot.Table) (n int64) {
	for _, f := range t.files[table] {
		if strings.HasSuffix(f.Name, ".ndjson") {
			n += f.Size
		} else {
			n += unpackedBy * f.Size
		}
	}
	return n
}

// elements returns the files of a table, each for one worker.
func (t *Tables) elements(s beam.Scope, table snapshot.Table) beam.PCollection {
	var elements []string
	for _, f := range t.files[table] {
		element, err := json.Marshal(f)
		if err != nil {
			panic(err) // texts and numbers
		}
		elements = append(elements, string(element))
	}
	return beam.Reshuffle(s, beam.CreateList(s, elements))
}

// A Result describes a table that was read.
type Result struct {
	summary.TableReport
	Invalid    []*snapshot.RowError // all skipped rows, at most MaxInvalid
	OtherDates int                  // as in summary.Report; for events
}

// MaxInvalid bounds the invalid rows in a report; all are counted.
const MaxInvalid = 1000

// Events reads the events.
func (t *Tables) Events(ctx context.Context) (events []site.Event, r Result, err error) {
	known := map[uint64]bool{}
	r, err = readAll(ctx, t, snapshot.TableEvents, func(e site.Event, r *Result) error {
		if known[e.ID] {
			return fmt.Errorf("id: duplicate event %d", e.ID)
		}
		known[e.ID] = true
		events = append(events, e)
		r.OtherDates += e.OtherDates()
		return nil
	})
	return events, r, err
}

// EventIDs returns the IDs of events in the form of badges.
func EventIDs(events []site.Event) []string {
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = strconv.FormatUint(e.ID, 10)
	}
	return ids
}

// Recommended reads the recommended accounts without duplicates. The result is nil if the snapshot
// does not have the table, or the API is not efp.
func (t *Tables) Recommended(ctx context.Context) (accounts []snapshot.Recommended, _ *Result, err error) {
	if t.files[snapshot.TableRecommended] == nil {
		return nil, nil, nil
	}
	known := map[site.Address]bool{}
	r, err := readAll(ctx, t, snapshot.TableRecommended, func(a snapshot.Recommended, r *Result) error {
		if known[a.Address] {
			r.WithoutEffect[summary.RepeatedRow]++
			return nil
		}
		known[a.Address] = true
		accounts = append(accounts, a)
		return nil
	})
	return accounts, &r, err
}

// readAll reads a table on this machine.
func readAll[T any](
	ctx context.Context, t *Tables, table snapshot.Table, accept func(T, *Result) error,
) (Result, error) {
	r := Result{TableReport: summary.TableReport{WithoutEffect: map[string]int{}}}
	done := func(b snapshot.Block[T]) error {
		r.Rows += len(b.Rows) + len(b.Invalid)
		return b.Each(func(row snapshot.Row[T]) error { return accept(row.Value, &r) }, func(e *snapshot.RowError) error {
			if !t.options.SkipInvalid {
				return e
			}
			if r.Skipped++; r.Skipped <= MaxInvalid {
				r.Invalid = append(r.Invalid, e)
			}
			return nil
		})
	}
	var digest snapshot.Digest
	err := snapshot.Reader[T]{Snapshot: t.snap, Workers: 1, Done: done, Digest: &digest}.Table(ctx, table)
	t.Inputs.Tables[string(table)] = digest.Sum()
	return r, err
}

// FileNames returns the names of a table's files, in the order of wire.Position.File.
func (t *Tables) FileNames(table snapshot.Table) []string {
	var names []string
	for _, f := range t.files[table] {
		names = append(names, f.Name)
	}
	return names
}
