package input

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

func init() {
	dofn.Register4x1(&readDigests{})
}

// workersOfDigest is the number of goroutines that read a table for its digest. Its rows have an
// order, so one worker reads all of it.
const workersOfDigest = 4

// Digests reads each large table again, on one worker, for its digest: site.SHA256 by name. It
// leaves invalid rows to the other readers, or skips them. The second output has, for Ops, the row
// after which each file of that table must begin.
func (t *Tables) Digests(s beam.Scope) (digests, opsAfter beam.PCollection) {
	s = s.Scope("digests")
	tables := []snapshot.Table{snapshot.TableLists, snapshot.TableAccounts, snapshot.TableRecords, snapshot.TableBadges}
	if t.HasOps {
		tables = append(tables, snapshot.TableOps)
	}
	var elements []string
	for _, table := range tables {
		element, err := json.Marshal(wholeTable{table, t.files[table]})
		if err != nil {
			panic(err) // texts and numbers
		}
		elements = append(elements, string(element))
	}
	return beam.ParDo2(s, &readDigests{t.reader()}, beam.Reshuffle(s, beam.CreateList(s, elements)))
}

// A wholeTable has all files of a table, for one worker.
type wholeTable struct {
	Table snapshot.Table
	Files []file
}

type readDigests struct{ reader }

func (r *readDigests) ProcessElement(ctx context.Context, element string, digest, opsAfter emitRow) error {
	var whole wholeTable
	if err := json.Unmarshal([]byte(element), &whole); err != nil {
		return fmt.Errorf("decode the files of a table: %w", err)
	}
	sum, err := r.digest(ctx, whole, opsAfter)
	if err != nil && ctx.Err() != nil {
		return err // another worker has failed and reports the reason
	} else if err != nil {
		return Fault(err)
	}
	digest(string(whole.Table), sum[:])
	return nil
}

func (r *readDigests) digest(ctx context.Context, whole wholeTable, opsAfter emitRow) (site.SHA256, error) {
	files, err := r.Source.open(ctx)
	if err != nil {
		return site.SHA256{}, err
	}
	for _, f := range whole.Files {
		if err := f.check(files); err != nil {
			return site.SHA256{}, err
		}
	}
	switch whole.Table {
	case snapshot.TableLists:
		key := func(l *snapshot.List) string { return l.TokenID }
		return digestOf(r, func(rows snapshot.Reader[snapshot.List]) error {
			return rows.Table(ctx, whole.Table)
		}, files, key)
	case snapshot.TableAccounts:
		key := func(a *site.Address) site.Address { return *a }
		convert := func(a *snapshot.Account) (site.Address, error) { return a.Address, nil }
		return digestOf(r, func(rows snapshot.Reader[site.Address]) error { return rows.Accounts(ctx, convert) }, files, key)
	case snapshot.TableRecords:
		convert := func(*snapshot.Record) (none struct{}, err error) { return none, nil }
		return digestOf[struct{}, string](r, func(rows snapshot.Reader[struct{}]) error { return rows.Records(ctx, convert) }, files, nil)
	case snapshot.TableOps:
		return r.digestOps(ctx, files, whole.Files, opsAfter)
	default:
		return digestOf[snapshot.Badge, string](r, func(rows snapshot.Reader[snapshot.Badge]) error {
			return rows.Table(ctx, whole.Table)
		}, files, nil)
	}
}

// digestOf reads a table, in which each key may occur once, unless key is nil.
func digestOf[T any, K comparable](
	r *readDigests, read func(snapshot.Reader[T]) error, files afero.Fs, key func(*T) K,
) (site.SHA256, error) {
	var digest snapshot.Digest
	seen := map[K]struct{}{}
	accept := func(row snapshot.Row[T]) error {
		if key == nil || !r.Options.SkipInvalid { // otherwise a second row stops the run
			return nil
		}
		k := key(&row.Value)
		if _, ok := seen[k]; ok {
			return errSecond
		}
		seen[k] = struct{}{}
		return nil
	}
	err := read(snapshot.Reader[T]{
		Snapshot: files, Workers: workersOfDigest, Untimed: !r.Options.EFP, Digest: &digest,
		Done: func(b snapshot.Block[T]) error { return b.Each(accept, r.reject) },
	})
	return digest.Sum(), err
}

// reject handles an invalid row.
func (r *readDigests) reject(e *snapshot.RowError) error {
	if r.Options.SkipInvalid {
		return nil
	}
	return e
}

var errSecond = errors.New("duplicate key")
