package input

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

func init() {
	dofn.Register5x1(&readLists{})
	dofn.Register5x1(&readAccounts{})
	dofn.Register5x1(&readRecords{})
	dofn.Register5x1(&readBadges{})
	register.Emitter2[string, []byte]()
	register.Emitter2[string, int64]()
}

// Rows are the outputs of a reader: KV<string, []byte>, counts and notes; for refreshed data also
// its digest.
type Rows struct{ Rows, Counts, Notes, Digest beam.PCollection }

// Lists reads the lists: wire.ListRow by token ID.
func (t *Tables) Lists(s beam.Scope) Rows {
	return t.read(s, snapshot.TableLists, &readLists{t.reader()})
}

// Accounts reads the accounts: wire.AccountRow by address.
func (t *Tables) Accounts(s beam.Scope) Rows {
	return t.read(s, snapshot.TableAccounts, &readAccounts{t.reader()})
}

// Records reads the records: runs of rows of a list (wire.AppendRun) by token ID. Successive rows
// mostly belong to one list, so there are far fewer runs than rows.
func (t *Tables) Records(s beam.Scope) Rows {
	return t.read(s, snapshot.TableRecords, &readRecords{t.reader()})
}

// Badges reads the badges of events: wire.BadgeRow by owner.
func (t *Tables) Badges(s beam.Scope, events []site.Event) Rows {
	return t.read(s, snapshot.TableBadges, &readBadges{reader: t.reader(), Events: EventIDs(events)})
}

func (t *Tables) reader() reader { return reader{t.source, t.options} }

func (t *Tables) read(s beam.Scope, table snapshot.Table, doFn any) Rows {
	s = s.Scope("read " + string(table))
	rows, counts, notes := beam.ParDo3(s, doFn, t.elements(s, table))
	return Rows{Rows: rows, Counts: counts, Notes: notes}
}

// A reader is the common part of all table readers.
type reader struct {
	Source  Source
	Options Options
}

type (
	emitRow   = func(key string, row []byte)
	emitCount = func(name string, n int64)
)

// parsing is the number of goroutines that parse a file. The engine decides how many files are read
// at a time.
const parsing = 1

// read reads a file of a table by the function read, which passes all blocks on.
func (r *reader) read(
	ctx context.Context, c *tally, element string, read func(files afero.Fs, name string) error,
) error {
	if err := json.Unmarshal([]byte(element), &c.file); err != nil {
		return fmt.Errorf("decode the name of a file: %w", err)
	}
	files, err := r.Source.open(ctx)
	if err == nil {
		err = c.check(files)
	}
	if err == nil {
		err = read(files, c.Name)
	}
	return c.end(ctx, err)
}

// rows returns a function that handles a block of rows.
func rows[T any](c *tally, accept func(line int, row *T) error) func(snapshot.Block[T]) error {
	return func(b snapshot.Block[T]) error {
		c.counts[RowCount(c.table)] += int64(len(b.Rows) + len(b.Invalid))
		return b.Each(func(row snapshot.Row[T]) error { return accept(row.Line, &row.Value) }, c.reject)
	}
}

// fileReader reads a file of a table.
func fileReader[T any](files afero.Fs, name string, done func(snapshot.Block[T]) error) snapshot.Reader[T] {
	return snapshot.Reader[T]{Snapshot: files, File: name, Workers: parsing, Done: done}
}

type readLists struct{ reader }

func (r *readLists) ProcessElement(ctx context.Context, element string, emit emitRow, count emitCount, note emitRow) error {
	c := r.tally(snapshot.TableLists, count, note)
	return r.read(ctx, c, element, func(files afero.Fs, name string) error {
		return fileReader(files, name, rows(c, func(line int, l *snapshot.List) error {
			row := wire.ListRow{Position: c.at(line), Account: rules.AccountOf(l.Owner, l.User)}
			emit(l.TokenID, row.Append(nil))
			return nil
		})).Table(ctx, c.table)
	})
}

type readAccounts struct{ reader }

func (r *readAccounts) ProcessElement(ctx context.Context, element string, emit emitRow, count emitCount, note emitRow) error {
	type account struct {
		address site.Address
		primary string
		profile wire.Profile
		long    []site.LongText
		noTexts int
	}
	convert := func(in *snapshot.Account) (account, error) { //nolint:unparam // as Accounts asks
		a := account{address: in.Address, primary: strings.Clone(in.Primary)}
		if in.ENS != nil {
			ens, long := in.ENS.Within(r.Options.Limits)
			a.profile, a.long, a.noTexts = wire.Profile(render.EncodeProfile(ens)), long, ens.NoTexts
		}
		return a, nil
	}
	c := r.tally(snapshot.TableAccounts, count, note)
	return r.read(ctx, c, element, func(files afero.Fs, name string) error {
		return fileReader(files, name, rows(c, func(line int, a *account) error {
			c.leftOut(line, a.long)
			c.noTexts(a.noTexts)
			row := wire.AccountRow{Position: c.at(line), Primary: a.primary, Profile: a.profile}
			emit(wire.AddressKey(a.address), row.Append(nil))
			return nil
		})).Accounts(ctx, convert)
	})
}

type readRecords struct{ reader }

func (r *readRecords) ProcessElement(ctx context.Context, element string, emit emitRow, count emitCount, note emitRow) error {
	arenas := sync.Pool{New: func() any { return new(arena) }}
	convert := func(in *snapshot.Record) (encodedRecord, error) {
		a := arenas.Get().(*arena)
		defer arenas.Put(a)
		return a.encode(in), nil
	}
	c := r.tally(snapshot.TableRecords, count, note)
	return r.read(ctx, c, element, func(files afero.Fs, name string) error {
		runs := runs{file: c.Number, emit: emit}
		add := rows(c, runs.add)
		rows := fileReader(files, name, func(b snapshot.Block[encodedRecord]) error {
			defer runs.end()
			return add(b)
		})
		rows.Untimed = !r.Options.EFP
		return rows.Records(ctx, convert)
	})
}

// An encodedRecord is a row of records.
type encodedRecord struct {
	token string
	body  []byte // wire.AppendRecord
}

// An arena stores many encoded records in one block of memory, which lives as long as its records.
type arena struct {
	memory []byte
	token  string // token ID of the last record: successive ones mostly belong to one list
}

const (
	arenaBytes = 64 << 10
	arenaSpare = 256 // longer than most records
)

func (a *arena) encode(r *snapshot.Record) encodedRecord {
	if a.token != r.TokenID {
		a.token = strings.Clone(r.TokenID)
	}
	if cap(a.memory)-len(a.memory) < arenaSpare {
		a.memory = make([]byte, 0, arenaBytes)
	}
	begin := len(a.memory)
	a.memory = wire.AppendRecord(a.memory, r)
	return encodedRecord{a.token, a.memory[begin:len(a.memory):len(a.memory)]}
}

// Limits of a run.
const (
	maxRunRows  = 4096
	maxRunBytes = 1 << 20 // plus one row
)

// runs combines successive records of a list into runs.
type runs struct {
	file  uint32
	emit  emitRow
	token string
	body  []byte
	n     int // rows
}

func (r *runs) add(line int, row *encodedRecord) error {
	if r.n == maxRunRows || len(r.body) > maxRunBytes || r.n > 0 && r.token != row.token {
		r.end()
	}
	if r.n == 0 {
		r.token, r.body = row.token, wire.AppendRun(r.body[:0], r.file)
	}
	r.body = append(binary.AppendUvarint(r.body, uint64(line)), row.body...)
	r.n++
	return nil
}

// end emits the current run, if any.
func (r *runs) end() {
	if r.n > 0 {
		r.emit(r.token, bytes.Clone(r.body))
	}
	r.n = 0
}

type readBadges struct {
	reader
	Events []string // IDs
}

func (r *readBadges) ProcessElement(ctx context.Context, element string, emit emitRow, count emitCount, note emitRow) error {
	events := make(map[string]uint32, len(r.Events))
	for i, id := range r.Events {
		events[id] = uint32(i)
	}
	c := r.tally(snapshot.TableBadges, count, note)
	return r.read(ctx, c, element, func(files afero.Fs, name string) error {
		return fileReader(files, name, rows(c, func(_ int, b *snapshot.Badge) error {
			if event, ok := events[b.EventID]; ok {
				emit(wire.AddressKey(b.Owner), wire.BadgeRow{Event: event, TokenID: b.TokenID}.Append(nil))
			} else {
				c.counts[WithoutEffect(c.table, summary.UnknownEvent)]++
			}
			return nil
		})).Table(ctx, c.table)
	})
}
