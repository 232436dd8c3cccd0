package snapshot_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

var compressions = map[string]string{"none": ".ndjson", "zstd": ".ndjson.zst"}

var asOf = snapshot.Meta{AsOf: time.UnixMilli(1_790_000_000_250)}

// fast does not sync, which would wait for the files of all other tests.
var fast = snapshot.WriteOptions{NoSync: true}

// rows are the rows of all tables.
type rows struct {
	events      []site.Event
	lists       []snapshot.List
	accounts    []snapshot.Account
	records     []snapshot.Record
	badges      []snapshot.Badge
	recommended []snapshot.Recommended
	ops         []snapshot.Op
}

func create(t testing.TB, dir string, o snapshot.WriteOptions) *snapshot.Writer {
	t.Helper()
	w, err := snapshot.Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (r rows) write(w *snapshot.Writer) error {
	return errors.Join(
		each(r.events, w.WriteEvent), each(r.lists, w.WriteList), each(r.accounts, w.WriteAccount),
		each(r.records, w.WriteRecord), each(r.badges, w.WriteBadge), each(r.recommended, w.WriteRecommended), each(r.ops, w.WriteOp))
}

func each[T any](rows []T, write func(T) error) error {
	for _, row := range rows {
		if err := write(row); err != nil {
			return err
		}
	}
	return nil
}

// commit writes a snapshot.
func commit(t testing.TB, dir string, r rows, o snapshot.WriteOptions) {
	t.Helper()
	w := create(t, dir, o)
	if err := errors.Join(r.write(w), w.Commit(asOf)); err != nil {
		t.Fatal(err)
	}
}

func files(dir string) afero.Fs { return afero.NewBasePathFs(afero.NewOsFs(), dir) }

// read reads a snapshot. Its error is the first one of any table.
func read(t testing.TB, dir string) (r rows, err error) {
	t.Helper()
	_, err = snapshot.ReadAsOf(files(dir))
	err = errors.Join(err,
		readTable(t, dir, snapshot.TableEvents, &r.events), readTable(t, dir, snapshot.TableLists, &r.lists),
		readTable(t, dir, snapshot.TableAccounts, &r.accounts),
		readTable(t, dir, snapshot.TableRecords, &r.records),
		readTable(t, dir, snapshot.TableBadges, &r.badges))
	if missing := readTable(t, dir, snapshot.TableRecommended, &r.recommended); !errors.Is(missing, snapshot.ErrNoTable) {
		err = errors.Join(err, missing)
	}
	var missing error
	if r.ops, missing = readOps(t, files(dir), ""); !errors.Is(missing, snapshot.ErrNoTable) {
		err = errors.Join(err, missing)
	}
	return r, err
}

// readOps reads the table ops, or a file of it.
func readOps(t testing.TB, snap afero.Fs, file string) (ops []snapshot.Op, err error) {
	t.Helper()
	err = snapshot.Reader[snapshot.Op]{Snapshot: snap, File: file, Workers: 2, Done: func(b snapshot.Block[snapshot.Op]) error {
		return b.Each(
			func(r snapshot.Row[snapshot.Op]) error { ops = append(ops, r.Value); return nil },
			func(e *snapshot.RowError) error { return e })
	}}.Ops(t.Context(), func(o *snapshot.Op) (snapshot.Op, error) {
		c := *o
		c.TokenID, c.Op = strings.Clone(o.TokenID), bytes.Clone(o.Op)
		return c, nil
	})
	return ops, err
}

func readTable[T any](t testing.TB, dir string, table snapshot.Table, into *[]T) error {
	return snapshot.Reader[T]{Snapshot: files(dir), Workers: 2, Done: func(b snapshot.Block[T]) error {
		return b.Each(
			func(r snapshot.Row[T]) error { *into = append(*into, r.Value); return nil },
			func(e *snapshot.RowError) error { return e })
	}}.Table(t.Context(), table)
}

// bytesOf returns the content of all files of a folder, by name.
func bytesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		body, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(body)
	}
	return all
}

// alone fails the test if anything but the snapshot is in its parent folder.
func alone(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != filepath.Base(dir) {
			t.Errorf("next to the snapshot: got %s, want nothing", entry.Name())
		}
	}
}
