package replay_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

// tablesOf are the tables of a Replay as files: lists and records, written by Write.
func tablesOf(t *testing.T, r *replay.Replay) (lists, records string, primary map[site.Address]string) {
	t.Helper()
	w := snapshot.InMemory()
	g, err := r.Write(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	read := func(table snapshot.Table, pieces ...snapshot.Piece) string {
		files, err := snapshot.NewMemory(snapshot.Meta{AsOf: time.Unix(1, 0)}, map[snapshot.Table][]snapshot.Piece{table: pieces})
		if err != nil {
			t.Fatal(err)
		}
		text, err := afero.ReadFile(files, string(table)+".ndjson")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	rows := func(table snapshot.Table) string {
		all, _, err := w.Rows(table)
		if err != nil {
			t.Fatal(err)
		}
		return read(table, all.Piece())
	}
	return rows(snapshot.TableLists), rows(snapshot.TableRecords), g.Primary
}

// tablesOfRows are the same of Rows.
func tablesOfRows(t *testing.T, x *replay.Rows, accounts map[site.Address]string) (lists, records string, primary map[site.Address]string) {
	t.Helper()
	files, err := snapshot.NewMemory(snapshot.Meta{AsOf: time.Unix(1, 0)}, map[snapshot.Table][]snapshot.Piece{
		snapshot.TableLists: {x.Lists().Piece()}, snapshot.TableRecords: x.Records(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, name := range []string{"lists.ndjson", "records.ndjson"} {
		text, err := afero.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	primary = map[site.Address]string{}
	for a := range accounts {
		if id := x.Primary(a); id != "" {
			primary[a] = id
		}
	}
	return texts[0], texts[1], primary
}

// Rows are those of a fresh Replay of the same events, whatever was added, undone and replaced before.
func TestRowsOfRandomHistories(t *testing.T) {
	for seed := range uint64(servers.Rounds(40, 400)) {
		random := rand.New(rand.NewPCG(seed, 5))
		h := history.Random(seed, history.Options{Transactions: 10 + random.IntN(120)})
		d := deploymentOf(h)
		events := collect(eventsOf(d, slices.Values(h.Blocks)))
		r := replay.New(d)
		rows := r.Rows()
		at, base := 0, 0 // events that were added, and those that the mark has
		marked := false
		add := func(n int) {
			for _, e := range events[at:min(at+n, len(events))] {
				if err := r.Add(e); err != nil {
					t.Fatal(err)
				}
				at++
			}
		}
		was := [2]string{}
		for range 30 {
			switch random.IntN(7) {
			case 0:
				r.Mark()
				marked, base = true, at
			case 1:
				if marked {
					r.Undo()
					at = base
				}
			case 2:
				if random.IntN(4) > 0 {
					break
				}
				r, marked = replay.New(d), false
				rows.Replace(r)
				upto := at
				at = 0
				add(random.IntN(upto + 1))
			default:
				add(random.IntN(1 + len(events)/8))
			}
			if random.IntN(3) == 0 {
				continue // several changes may come between two updates
			}
			change, err := rows.Update(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			fresh := replay.New(d)
			for _, e := range events[:at] {
				if err := fresh.Add(e); err != nil {
					t.Fatal(err)
				}
			}
			lists, records, primary := tablesOf(t, fresh)
			all := map[site.Address]string{}
			for _, e := range events {
				if e.Kind == source.AccountMetadata {
					all[site.Address(e.Subject[12:])] = ""
				}
			}
			gotLists, gotRecords, gotPrimary := tablesOfRows(t, rows, all)
			if gotLists != lists || gotRecords != records || !maps.Equal(gotPrimary, primary) || rows.ListOps() != fresh.Report().ListOps {
				t.Fatalf("seed %d, %d of %d events: got\n%s%s%v\nwant\n%s%s%v", seed, at, len(events), gotLists, gotRecords, gotPrimary, lists, records, primary)
			}
			now := [2]string{lists, records}
			if !change.Any && now != was {
				t.Fatalf("seed %d: the change is empty, but the rows are others", seed)
			}
			checkChange(t, fmt.Sprintf("seed %d", seed), change, was, now)
			was = now
		}
	}
}

func collect(events func(func(source.Event) bool)) (all []source.Event) {
	for e := range events {
		e.Value = slices.Clone(e.Value)
		all = append(all, e)
	}
	return all
}

// checkChange compares the lists of a change with those whose rows differ.
func checkChange(t *testing.T, what string, c replay.Change, was, is [2]string) {
	t.Helper()
	byList := func(texts [2]string) map[string]string {
		of := map[string]string{}
		for _, text := range texts {
			for line := range splitLines(text) {
				var id string
				if _, err := fmt.Sscanf(line, `{"token_id":%q,`, &id); err != nil {
					t.Fatalf("%s: %s: %v", what, line, err)
				}
				of[id] += line
			}
		}
		return of
	}
	before, after := byList(was), byList(is)
	var want []string
	for id := range after {
		if before[id] != after[id] {
			want = append(want, id)
		}
	}
	for id := range before {
		if _, ok := after[id]; !ok {
			want = append(want, id)
		}
	}
	for _, id := range want {
		if !slices.Contains(c.Lists, id) {
			t.Fatalf("%s: got changed lists %v, want %s too", what, c.Lists, id)
		}
	}
	for _, id := range c.Lists { // one that has moved between slots with equal rows is among them
		if before[id] == "" && after[id] == "" {
			t.Fatalf("%s: got changed list %s, which is not there", what, id)
		}
	}
}

func splitLines(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			end := 0
			for text[end] != '\n' {
				end++
			}
			if !yield(text[:end+1]) {
				return
			}
			text = text[end+1:]
		}
	}
}

// BenchmarkRows keeps the rows of a network of the real size: what the first ones cost, and those of a
// round with one operation, in time and memory.
func BenchmarkRows(b *testing.B) {
	h := &history.History{Chains: history.Production()}
	d := deploymentOf(h)
	r := replay.New(d)
	var last source.Event
	for e := range eventsOf(d, history.Usual(1, history.Real())) {
		if err := r.Add(e); err != nil {
			b.Fatal(err)
		}
		if e.Kind == source.Op && e.Contract.Chain == h.Chains[0].ID {
			last = e
			last.Value = slices.Clone(e.Value)
		}
	}
	used := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	before, begun := used(), time.Now()
	rows := r.Rows()
	if _, err := rows.Update(b.Context()); err != nil {
		b.Fatal(err)
	}
	first := time.Since(begun)
	r.Mark()
	after := used()
	next := func() {
		last.Block++
		last.Value[len(last.Value)-1]++
		if err := r.Add(last); err != nil {
			b.Fatal(err)
		}
		if c, err := rows.Update(b.Context()); err != nil || len(c.Lists) == 0 {
			b.Fatal(c, err)
		}
		files, err := snapshot.NewMemory(snapshot.Meta{AsOf: time.Unix(1, 0)}, map[snapshot.Table][]snapshot.Piece{
			snapshot.TableLists: {rows.Lists().Piece()}, snapshot.TableRecords: rows.Records(),
		})
		if err != nil {
			b.Fatal(err, files)
		}
	}
	last.Block += 1_000_000
	for b.Loop() {
		next()
	}
	b.ReportMetric(first.Seconds(), "s/first")
	b.ReportMetric(before, "MiB/replay")
	b.ReportMetric(after-before, "MiB/rows")
	runtime.KeepAlive(rows)
}
