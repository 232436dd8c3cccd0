package postgres_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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

// TestProfilesThatNoRowCanHold has profiles as anybody can make them, with a resolver that answers what it
// likes. They must not stop the snapshot.
func TestProfilesThatNoRowCanHold(t *testing.T) {
	server := databases.Start(t)
	for _, c := range []struct{ name, set, names string }{
		{"long avatar", `avatar = repeat('x', 17 << 20)`, "a.eth b.eth "},
		{"long escapes", `avatar = repeat(E'\x01', 3 << 20)`, "a.eth b.eth "},
		{"many escapes", `avatar = repeat(E'\x01', 512 << 10), header = repeat(E'\x01', 512 << 10), display = repeat(E'\x01', 512 << 10), records = json_build_object('a', repeat('x', (512 << 10) - 10))`, "a.eth b.eth "},
		{"long name", `name = repeat('x', 17 << 20)`, "b.eth "},
		{"long records", `records = json_build_object('a', repeat('x', 17 << 20))`, "a.eth b.eth "},
		{"lone surrogate", `records = '{"a":"\ud800"}'`, "a.eth b.eth "},
		{"deep records", `records = ('{"a":' || repeat('[', 3000) || repeat(']', 3000) || '}')::json`, "a.eth b.eth "},
		{"records twice", `records = '{"a":"1","a":"2"}'`, "a.eth b.eth "},
		{"a number", `records = '{"a":1e999999}'`, "a.eth b.eth "},
		{"no object", `records = '[]'`, "a.eth b.eth "},
		{"one newline", `avatar = E'a\nb\u2028'`, "a.eth b.eth "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := server.Database(t)
			databases.FillV1(t, dsn, chain(mint(0, 1)))
			databases.Exec(t, dsn, fmt.Sprintf(`ALTER TABLE ens_metadata DROP CONSTRAINT ens_metadata_name_key;
INSERT INTO ens_metadata (address, name) VALUES ('0x%x', 'a.eth'), ('0x%x', 'b.eth');
UPDATE ens_metadata SET %s WHERE name = 'a.eth'`, account(1), account(2), c.set))
			dir := filepath.Join(t.TempDir(), "snapshot")
			if err := whole(t.Context(), dsn, dir); err != nil {
				t.Fatalf("got %.300v, want a snapshot", err)
			}
			names := ""
			for a, err := range snapshot.Accounts(openFolder(t, dir)) {
				if err != nil {
					t.Fatalf("read again: %v", err)
				}
				names += a.ENS.Name + " "
			}
			if want := c.names; names != want {
				t.Errorf("profiles: got %.100q, want %q", names, want)
			}
		})
	}
}

// spy makes the function public.spy of some arguments, which says that it has run by raising an error.
func spy(arguments, returns string) string {
	return "CREATE FUNCTION public.spy(" + arguments + ") RETURNS " + returns + ` IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'a function of public has run'; END $$;
`
}

// sleeper is a spy that can be made to sleep, for what calls it when it is made.
const sleeper = `CREATE FUNCTION public.spy(n integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN IF EXISTS (SELECT FROM pg_class WHERE relname = 'alarm') THEN RAISE EXCEPTION 'a function of public has run'; END IF; RETURN n; END $$;
`

const alarm = `; CREATE TABLE public.alarm ()`

// TestFunctionsOfPublic reads databases in which somebody has added functions that a query may
// call. None may run, since their author need not have the rights of the reader, here a superuser.
func TestFunctionsOfPublic(t *testing.T) {
	server := databases.Start(t)
	h := chain(mint(0, 1), []history.Log{op(0, 1, 9, "")})
	better := ""
	for _, f := range []string{"left(varchar, int)", "lower(varchar)", "octet_length(varchar)"} {
		better += "CREATE FUNCTION public." + f + ` RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a function of public has run'; END $$;
`
	}
	for _, c := range []struct{ name, change, refused string }{
		{"functions that fit better", better, ""},
		{"operators that fit better", spy("varchar, varchar", "boolean") + "CREATE OPERATOR public.= (FUNCTION = public.spy, LEFTARG = varchar, RIGHTARG = varchar)", ""},
		{"an operator of two types", spy("jsonb, text", "text") + "CREATE OPERATOR public.->> (FUNCTION = public.spy, LEFTARG = jsonb, RIGHTARG = text)", ""},
		{"a domain with a condition", spy("varchar", "boolean") + `CREATE DOMAIN public.owner AS varchar(42);
ALTER TABLE efp_lists ALTER owner TYPE public.owner; ALTER DOMAIN public.owner ADD CHECK (public.spy(VALUE)) NOT VALID`, ""},
		{"a domain that is cast", "CREATE DOMAIN public.owner AS varchar(42);" + spy("public.owner", "text") +
			"CREATE CAST (public.owner AS text) WITH FUNCTION public.spy(public.owner) AS IMPLICIT; ALTER TABLE efp_lists ALTER owner TYPE public.owner", ""},
		{"a type that is cast", "CREATE TYPE public.owner AS ENUM ('0x0000000000000000000000000000000000000001');" + spy("public.owner", "text") +
			"CREATE CAST (public.owner AS text) WITH FUNCTION public.spy(public.owner) AS IMPLICIT; ALTER TABLE efp_lists ALTER owner TYPE public.owner USING owner::text::public.owner",
			"column owner of table efp_lists is of the type public.owner"},
		{"a type of slots that is cast", "CREATE TYPE public.slot AS (b bytea);" + spy("public.slot", "bytea") +
			"CREATE CAST (public.slot AS bytea) WITH FUNCTION public.spy(public.slot) AS IMPLICIT; ALTER TABLE efp_list_records ALTER slot TYPE public.slot USING row(slot)::public.slot",
			"column slot of table efp_list_records is of the type public.slot"},
		{"another type", "ALTER TABLE efp_account_metadata ALTER value TYPE xml USING value::xml", "column value of table efp_account_metadata is of the type xml"},
		{"a view of lists", spy("", "varchar") + "ALTER TABLE efp_lists RENAME TO l; CREATE VIEW efp_lists AS SELECT *, public.spy() FROM l", "efp_lists in the schema public is a view"},
		{"a view of the state", spy("", "bigint") + "ALTER TABLE indexer_state RENAME TO s; CREATE VIEW indexer_state AS SELECT public.spy() AS chain_id", "unknown schema"},
		{"a view of events", spy("", "text") + "DROP TABLE events; CREATE VIEW events AS SELECT public.spy() AS event_name", ""},
		{"a view of profiles", spy("", "text") + "DROP TABLE ens_metadata; CREATE VIEW ens_metadata AS SELECT public.spy() AS name", ""},
		{"a policy", spy("varchar", "boolean") + "ALTER TABLE efp_lists ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON efp_lists USING (public.spy(owner))", ""},
		{"a generated column", sleeper + "ALTER TABLE efp_lists ADD made integer GENERATED ALWAYS AS (public.spy(nft_chain_id::integer)) STORED" + alarm, ""},
		{"an owner that is generated", "ALTER TABLE efp_lists RENAME owner TO o; ALTER TABLE efp_lists ADD owner varchar(42) GENERATED ALWAYS AS (lower(o)) STORED", ""},
		{"an index of a constant", sleeper + "CREATE INDEX ON efp_lists ((public.spy(1)))" + alarm, "table efp_lists has an index, a statistic or a partition key that calls public.spy(integer)"},
		{"an index of a part", sleeper + "CREATE INDEX ON efp_account_metadata (key) WHERE public.spy(1) = 1" + alarm, "table efp_account_metadata has an index"},
		{"an index by an operator", sleeper + "CREATE OPERATOR public.@ (FUNCTION = public.spy, RIGHTARG = integer); CREATE INDEX ON efp_list_records ((operator(public.@) 1))" + alarm,
			"table efp_list_records has an index"},
		{"statistics of a constant", sleeper + "CREATE STATISTICS s ON (public.spy(1) + chain_id), slot FROM efp_list_records" + alarm, "table efp_list_records has an index, a statistic"},
		{"a child with an index", sleeper + "CREATE TABLE child () INHERITS (efp_lists); CREATE INDEX ON child ((public.spy(1)))" + alarm, "table efp_lists has an index"},
		{"a condition of a child", sleeper + "CREATE TABLE child (CHECK (public.spy(1) = 1)) INHERITS (efp_lists)" + alarm, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := filled(t, server, h, false)
			databases.Exec(t, dsn, c.change)
			err := whole(t.Context(), dsn, filepath.Join(t.TempDir(), "snapshot"))
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("got %v, want %q", err, c.refused)
			}
			if err != nil && strings.Contains(err.Error(), "has run") {
				t.Error("a function of public has run")
			}
		})
	}
}

// TestMissingColumns drops each column that a query may need: the error names the schema with that
// column.
func TestMissingColumns(t *testing.T) {
	server := databases.Start(t)
	h := chain(mint(0, 1), []history.Log{op(0, 1, 9, "")})
	for _, v1 := range []bool{true, false} {
		dsn, schema, optional, missed := filled(t, server, h, v1), "v2", 0, 0
		if v1 {
			schema = "v1"
		}
		connection := connect(t, dsn)
		rows, err := connection.Query(t.Context(), `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2`)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Name string }])
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range columns {
			databases.Exec(t, dsn, fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %q TO gone", c.Table, c.Name))
			err := try(t, t.Context(), dsn)
			databases.Exec(t, dsn, fmt.Sprintf("ALTER TABLE %s RENAME COLUMN gone TO %q", c.Table, c.Name))
			switch want := fmt.Sprintf("table %s has no column %s, which %s of the indexer has", c.Table, c.Name, schema); {
			case err == nil:
				optional++
			case strings.Contains(err.Error(), want):
				missed++
			default:
				t.Errorf("%s without %s.%s: got %v, want %q", schema, c.Table, c.Name, err, want)
			}
		}
		if optional < 20 || missed < 30 {
			t.Errorf("%s: %d columns may be absent and %d may not: the test tests nothing", schema, optional, missed)
		}
	}
}

// whole makes a snapshot as the command does.
func whole(ctx context.Context, dsn, dir string) (err error) {
	w, err := snapshot.Create(dir, snapshot.WriteOptions{NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	r, err := postgres.Open(ctx, postgres.Options{DSN: secret.Text(dsn), Progress: quiet{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	g, err := r.Write(ctx, w)
	if err == nil {
		err = source.WriteAccounts(w, g, r.Profiles())
	}
	if err == nil {
		err = w.Commit(snapshot.Meta{AsOf: g.AsOf})
	}
	return err
}

func openFolder(t *testing.T, dir string) *snapshot.Folder {
	t.Helper()
	folder, err := snapshot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	return folder
}
