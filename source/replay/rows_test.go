package replay_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	siteop "github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/snapshot/memory"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

// tablesOf returns the tables of a Replay as files: lists and records, written by Write.
func tablesOf(t *testing.T, r *replay.Replay) (lists, records, ops string, primary map[site.Address]string) {
	t.Helper()
	w := snapshot.InMemory()
	g, err := r.Write(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	read := func(table snapshot.Table, pieces ...memory.Piece) string {
		files, err := snapshot.NewMemory(snapshot.Meta{AsOf: time.Unix(1, 0)}, map[snapshot.Table][]memory.Piece{table: pieces})
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
	return rows(snapshot.TableLists), rows(snapshot.TableRecords), rows(snapshot.TableOps), g.Primary
}

// opsSince returns the rows of a table ops since a time.
func opsSince(t *testing.T, table string, since int64) (rows string) {
	t.Helper()
	for line := range strings.Lines(table) {
		o, err := snapshot.Reader[snapshot.Op]{}.Parse([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if o.Time >= since {
			rows += line
		}
	}
	return rows
}

// tablesOfRows returns the same of Rows.
func tablesOfRows(t *testing.T, x *replay.Rows, since int64, accounts map[site.Address]string) (lists, records, ops string, primary map[site.Address]string) {
	t.Helper()
	recent, err := x.Ops(since)
	if err != nil {
		t.Fatal(err)
	}
	files, err := snapshot.NewMemory(snapshot.Meta{AsOf: time.Unix(1, 0)}, map[snapshot.Table][]memory.Piece{
		snapshot.TableLists: {x.Lists().Piece()}, snapshot.TableRecords: x.Records(), snapshot.TableOps: recent,
	})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, name := range []string{"lists.ndjson", "records.ndjson", "ops.ndjson"} {
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
	return texts[0], texts[1], texts[2], primary
}

// Rows are those of a fresh Replay of the same events, whatever was added, undone and replaced before.
func TestRowsOfRandomHistories(t *testing.T) {
	for seed := range uint64(servers.Rounds(40, 400)) {
		checkRows(t, seed)
	}
}

// That is so too if lists share more than they may.
func TestRowsBeyondTheLimitsOfSharing(t *testing.T) {
	defer replay.LimitSharing(1, 3000)()
	for seed := range uint64(servers.Rounds(40, 400)) {
		checkRows(t, 1000+seed)
	}
}

func checkRows(t *testing.T, seed uint64) {
	t.Helper()
	{
		random := rand.New(rand.NewPCG(seed, 5))
		h := history.Random(seed, history.Options{Transactions: 10 + random.IntN(120)})
		d := deploymentOf(h)
		events := collect(eventsOf(d, slices.Values(h.Blocks)))
		r := replay.New(d)
		rows := r.Rows()
		rows.KeepOpsIn(1 + int(seed%7))
		at, base := 0, 0 // number of events added, and at the mark
		marked := false
		add := func(n int) {
			for _, e := range events[at:min(at+n, len(events))] {
				if err := r.Add(e); err != nil {
					t.Fatal(err)
				}
				at++
			}
		}
		was := [3]string{}
		if _, err := rows.Update(t.Context(), replay.NoOps); err != nil { // the first one changes nothing
			t.Fatal(err)
		}
		since := windowBegins(random, events)
		before := since // start of the window at the last update
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
			if random.IntN(3) == 0 {
				since = windowBegins(random, events)
			}
			change, err := rows.Update(t.Context(), since)
			if err != nil {
				t.Fatal(err)
			}
			fresh := replay.New(d)
			for _, e := range events[:at] {
				if err := fresh.Add(e); err != nil {
					t.Fatal(err)
				}
			}
			lists, records, allOps, primary := tablesOf(t, fresh)
			ops := opsSince(t, allOps, since)
			all := map[site.Address]string{}
			for _, e := range events {
				if e.Kind == source.AccountMetadata {
					all[site.Address(e.Subject[12:])] = ""
				}
			}
			gotLists, gotRecords, gotOps, gotPrimary := tablesOfRows(t, rows, since, all)
			if gotOps != ops {
				t.Fatalf("seed %d, %d of %d events, since %d: got operations\n%swant\n%s", seed, at, len(events), since, gotOps, ops)
			}
			if gotLists != lists || gotRecords != records || !maps.Equal(gotPrimary, primary) || rows.ListOps() != fresh.Report().ListOps {
				t.Fatalf("seed %d, %d of %d events: got\n%s%s%v\nwant\n%s%s%v", seed, at, len(events), gotLists, gotRecords, gotPrimary, lists, records, primary)
			}
			now := [3]string{lists, records, allOps}
			if was[2] = opsSince(t, was[2], since); !change.Any && opsSince(t, was[2], since) != ops {
				t.Fatalf("seed %d: the change is empty, but the operations differ", seed)
			}
			now[2] = ops
			if !change.Any && now != was {
				t.Fatalf("seed %d: the change is empty, but the rows differ", seed)
			}
			// Compare only operations in both windows: rows added by an earlier start of the window
			// are not changes.
			was[2], now[2] = opsSince(t, was[2], max(before, since)), opsSince(t, now[2], max(before, since))
			checkChange(t, fmt.Sprintf("seed %d", seed), change, was, now)
			checkAbout(t, fmt.Sprintf("seed %d", seed), change, was[2], now[2])
			before = since
			was = [3]string{lists, records, allOps}
		}
	}
}

// As the window moves on, rows of ops are forgotten, and nothing of them stays.
func TestRowsOfOpsAreForgotten(t *testing.T) {
	h := history.Random(3, history.Options{Transactions: 200})
	d := deploymentOf(h)
	r := replay.New(d)
	rows := r.Rows()
	rows.KeepOpsIn(3)
	last := int64(0)
	for _, e := range collect(eventsOf(d, slices.Values(h.Blocks))) {
		if err := r.Add(e); err != nil {
			t.Fatal(err)
		}
		last = max(last, e.Time)
	}
	for _, test := range []struct {
		since int64
		some  bool
	}{{math.MinInt64, true}, {last + 2*time.Hour.Milliseconds(), false}, {0, true}, {replay.NoOps, false}} {
		if _, err := rows.Update(t.Context(), test.since); err != nil {
			t.Fatal(err)
		}
		if kept, lists := rows.OpsKept(); (kept > 0) != test.some || (lists > 0) != test.some {
			t.Errorf("since %d: got %d rows of %d lists, want some: %v", test.since, kept, lists, test.some)
		}
	}
}

// windowBegins returns a time about the beginning, the middle or the end of events, or none.
func windowBegins(random *rand.Rand, events []source.Event) int64 {
	switch random.IntN(8) {
	case 0:
		return replay.NoOps
	case 1:
		return math.MinInt64
	}
	e := events[random.IntN(len(events))]
	return e.Time + random.Int64N(3) - 1
}

// checkAbout checks that a change names the accounts of operations that only one of two tables has.
func checkAbout(t *testing.T, what string, c replay.Change, was, is string) {
	t.Helper()
	count := map[string]int{}
	for line := range strings.Lines(was) {
		count[line]++
	}
	for line := range strings.Lines(is) {
		count[line]--
	}
	for line, n := range count {
		if n == 0 {
			continue
		}
		o, err := snapshot.Reader[snapshot.Op]{}.Parse([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		parsed, reason := siteop.Parse(o.Op)
		if reason != "" {
			t.Fatal(reason)
		}
		if about, ok := parsed.Address(); ok && !slices.Contains(c.Accounts, about) {
			t.Fatalf("%s: got changed accounts %v, want %s too, whom this is about: %s", what, c.Accounts, about, line)
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

// checkChange compares the lists of a change with the lists whose rows differ.
func checkChange(t *testing.T, what string, c replay.Change, was, is [3]string) {
	t.Helper()
	byList := func(texts [3]string) map[string]string {
		of := map[string]string{}
		for _, text := range texts {
			for line := range strings.Lines(text) {
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
			t.Fatalf("%s: got changed lists %v, want %s too\nBEFORE\n%s\nAFTER\n%s", what, c.Lists, id, before[id], after[id])
		}
	}
	for _, id := range c.Lists { // one that has moved between slots with equal rows is among them
		if before[id] == "" && after[id] == "" {
			t.Fatalf("%s: got changed list %s, which is not there", what, id)
		}
	}
}
