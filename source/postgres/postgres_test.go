package postgres_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/internal/testenv/databases"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/postgres"
)

type quiet struct{}

func (quiet) Stage(string, int64) {}
func (quiet) Add(int64)           {}
func (quiet) End()                {}

// A result is the data read from a database.
type result struct {
	lists    []history.List
	graph    *source.Graph
	profiles []source.Profile
	report   *postgres.Report
	ops      []history.VisibleOp // nil if there is no such table
}

// read makes a snapshot of a database, and reads it.
func read(t *testing.T, dsn string) result {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "snapshot")
	w, err := snapshot.Create(dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := postgres.Open(t.Context(), postgres.Options{DSN: secret.Text(dsn), Progress: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	got := result{report: r.Report()}
	if got.graph, err = r.Write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for p, err := range r.Profiles() {
		if err != nil {
			t.Fatal(err)
		}
		got.profiles = append(got.profiles, p)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(snapshot.Meta{AsOf: got.graph.AsOf, OpsFrom: got.graph.OpsFrom}); err != nil {
		t.Fatal(err)
	}
	got.lists = readLists(t, dir)
	files := afero.NewBasePathFs(afero.NewOsFs(), dir)
	if err := snapshot.CheckTable(files, snapshot.TableOps); errors.Is(err, snapshot.ErrNoTable) {
		return got
	}
	got.ops = []history.VisibleOp{}
	err = snapshot.Reader[history.VisibleOp]{Snapshot: files, Workers: 1, Done: func(b snapshot.Block[history.VisibleOp]) error {
		return b.Each(func(r snapshot.Row[history.VisibleOp]) error { got.ops = append(got.ops, r.Value); return nil },
			func(e *snapshot.RowError) error { return e })
	}}.Ops(t.Context(), func(o *snapshot.Op) (history.VisibleOp, error) {
		return history.VisibleOp{Token: strings.Clone(o.TokenID), Time: o.Time, Chain: o.Chain, Block: o.Block, Log: int(o.LogIndex), Data: string(o.Op)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.report.Ops != uint64(len(got.ops)) {
		t.Errorf("the report has %d operations, want %d", got.report.Ops, len(got.ops))
	}
	return got
}

// opsOf returns the operations of lists, without the index of their logs: a history that lacks what an indexer has
// lost has others.
func opsOf(all []history.VisibleOp, wanted func(token string) bool) (ops []history.VisibleOp) {
	for _, o := range all {
		if o.Log = 0; wanted(o.Token) {
			ops = append(ops, o)
		}
	}
	return ops
}

func every(string) bool { return true }

func readLists(t *testing.T, dir string) (lists []history.List) {
	t.Helper()
	at := map[string]int{}
	rows(t, filepath.Join(dir, "lists.ndjson"), func(row struct {
		TokenID string `json:"token_id"`
		Owner   string `json:"owner"`
		User    string `json:"user"`
	}) {
		at[row.TokenID] = len(lists)
		l := history.List{Token: row.TokenID, Owner: address(t, row.Owner)}
		if row.User != "" {
			user := history.Address(address(t, row.User))
			l.User = &user
		}
		lists = append(lists, l)
	})
	rows(t, filepath.Join(dir, "records.ndjson"), func(row struct {
		TokenID string     `json:"token_id"`
		Version byte       `json:"version"`
		Type    string     `json:"record_type"`
		Data    string     `json:"data"`
		Tags    []string   `json:"tags"`
		Added   *time.Time `json:"added"`
	}) {
		data, err := hex.DecodeString(row.Data[2:])
		if err != nil {
			t.Fatal(err)
		}
		if row.Added == nil { // it is not known
			row.Added = &time.Time{}
		}
		l := &lists[at[row.TokenID]]
		l.Records = append(l.Records, history.Record{Version: row.Version, Type: row.Type, Data: string(data), Tags: row.Tags, Added: row.Added.UnixMilli()})
	})
	return lists
}

func address(t *testing.T, text string) site.Address {
	t.Helper()
	a, err := site.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func rows[R any](t *testing.T, file string, do func(R)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var row R
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		do(row)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// compareGraph compares what holds whatever happened to lists.
func compareGraph(t *testing.T, got result, want history.Snapshot) {
	t.Helper()
	for account, token := range want.Primary {
		if got.graph.Primary[account] != token {
			t.Errorf("primary list of %s: got %q, want %q", site.Address(account), got.graph.Primary[account], token)
		}
	}
	if got, want := len(got.graph.Primary), len(want.Primary); got != want {
		t.Errorf("primary lists: got %d, want %d", got, want)
	}
	if got, want := len(got.lists), len(want.Lists); got != want {
		t.Fatalf("lists: got %d, want %d", got, want)
	}
	for n, l := range want.Lists {
		if g := got.lists[n]; g.Token != l.Token || g.Owner != l.Owner {
			t.Errorf("list: got %s of %x, want %s of %x", g.Token, g.Owner, l.Token, l.Owner)
		}
	}
}

func compareHeld(t *testing.T, got result, want history.Snapshot) {
	t.Helper()
	if got, want := len(got.graph.Held), len(want.Held); got != want {
		t.Errorf("held accounts: got %d, want %d", got, want)
	}
	for account, n := range want.Held {
		if g, ok := got.graph.Held[account]; !ok || g != uint32(n) {
			t.Errorf("lists that follow %s: got %d, want %d", site.Address(account), g, n)
		}
	}
}

func sameUser(a, b history.List) bool {
	return a.User == b.User || a.User != nil && b.User != nil && *a.User == *b.User
}

func sameRecords(a, b []history.Record) bool {
	return slices.EqualFunc(a, b, func(a, b history.Record) bool {
		return a.Version == b.Version && a.Type == b.Type && a.Data == b.Data && a.Added == b.Added && slices.Equal(a.Tags, b.Tags)
	})
}

// TestV1IsWhatItAccepted compares snapshots of databases of v1 with the truth about the events that v1
// has not lost. They are the same in all: v1 keeps tags of removed records, but its events tell.
func TestV1IsWhatItAccepted(t *testing.T) {
	server := databases.Start(t)
	var byEvents, byTables uint64
	for seed := range uint64(12) {
		h := history.Random(seed, history.Options{Transactions: 300})
		dsn := server.Database(t)
		want := databases.FillV1(t, dsn, h).Truth()
		got := read(t, dsn)
		if got.report.Schema != "v1" {
			t.Fatalf("schema: got %s, want v1", got.report.Schema)
		}
		compareGraph(t, got, want)
		compareHeld(t, got, want)
		for n, l := range want.Lists {
			if !sameUser(got.lists[n], l) {
				t.Errorf("seed %d: user of list %s: got %x, want %x", seed, l.Token, got.lists[n].User, l.User)
			}
			if !sameRecords(got.lists[n].Records, l.Records) {
				t.Errorf("seed %d: list %s:\ngot  %+v\nwant %+v", seed, l.Token, got.lists[n].Records, l.Records)
			}
		}
		gotOps, wantOps := opsOf(got.ops, every), opsOf(want.Ops, every)
		if !slices.Equal(gotOps, wantOps) || got.graph.OpsFrom != nil {
			t.Errorf("seed %d: visible operations, from %v:\ngot  %+v\nwant %+v", seed, got.graph.OpsFrom, gotOps, wantOps)
		}
		if got, want := got.graph.ListOps, uint64(want.ListOps); got != want {
			t.Errorf("seed %d: operations: got %d, want %d", seed, got, want)
		}
		byEvents += got.report.Order.Events
		byTables += got.report.Order.Tables
		if t.Failed() {
			t.FailNow()
		}
	}
	if byEvents == 0 || byTables > 0 {
		t.Errorf("lists: got %d by events and %d by tables, want all by events", byEvents, byTables)
	}
	t.Logf("%d lists with records", byEvents)
}

// TestV2IsTheTruthWhereItCanBe compares snapshots of databases of v2 with the truth about the events
// that v2 has not lost, except for what databases.Doubts says.
func TestV2IsTheTruthWhereItCanBe(t *testing.T) {
	server := databases.Start(t)
	var records, users, lists, ops int
	var byEvents, byTables uint64
	for seed := range uint64(12) {
		h := history.Random(seed, history.Options{Transactions: 300})
		dsn := server.Database(t)
		seen, doubts := databases.FillV2(t, dsn, h, 1+int(seed%7)*5)
		want := seen.Truth()
		got := read(t, dsn)
		if got.report.Schema != "v2" {
			t.Fatalf("schema: got %s, want v2", got.report.Schema)
		}
		compareGraph(t, got, want)
		for n, l := range want.Lists {
			lists++
			if !doubts.Users[l.Token] {
				users++
				if !sameUser(got.lists[n], l) {
					t.Errorf("seed %d: user of list %s: got %x, want %x", seed, l.Token, got.lists[n].User, l.User)
				}
			}
			if !doubts.Records[l.Token] {
				records++
				if !sameRecords(got.lists[n].Records, l.Records) {
					t.Errorf("seed %d: list %s:\ngot  %+v\nwant %+v", seed, l.Token, got.lists[n].Records, l.Records)
				}
			}
		}
		sure := func(token string) bool { return !doubts.Records[token] }
		gotOps, wantOps := opsOf(got.ops, sure), opsOf(want.Ops, sure)
		if ops += len(wantOps); !slices.Equal(gotOps, wantOps) {
			t.Errorf("seed %d: visible operations:\ngot  %+v\nwant %+v", seed, gotOps, wantOps)
		}
		if from := got.graph.OpsFrom; from == nil || len(got.ops) > 0 && from.UnixMilli() > got.ops[0].Time {
			t.Errorf("seed %d: complete from %v, and there are %d operations", seed, from, len(got.ops))
		}
		byEvents += got.report.Order.Events
		byTables += got.report.Order.Tables
		if t.Failed() {
			t.FailNow()
		}
	}
	if records < lists/4 || ops < 10 || users < lists/4 {
		t.Errorf("of %d lists, got records of %d and users of %d compared, want a quarter", lists, records, users)
	}
	t.Logf("%d lists, %d compared in records, %d in users, with %d visible operations; %d by events, %d by tables", lists, records, users, ops, byEvents, byTables)
}
