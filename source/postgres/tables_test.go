package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/internal/testenv/databases"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	siteop "github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source/postgres"
)

var (
	base    = history.Production()[0]
	records = base.Records[0]
)

func account(n byte) history.Address { return history.Address{19: n} }

// op returns an operation on the record of an account.
func op(slot uint64, code byte, n byte, tag string) history.Log {
	a := account(n)
	b := append([]byte{1, code, 1, 1}, a[:]...)
	return history.Op(records, history.Number(slot), append(b, tag...))
}

// filled returns the DSN of a new database as the indexer of v1, or else of v2, makes it of a history.
func filled(t *testing.T, server *databases.Server, h *history.History, v1 bool) (dsn string) {
	t.Helper()
	dsn = server.Database(t)
	if v1 {
		databases.FillV1(t, dsn, h)
	} else {
		databases.FillV2(t, dsn, h, 1)
	}
	return dsn
}

// mint makes a list with a slot of the same number.
func mint(token uint64, owner byte) []history.Log {
	n := history.Number(token)
	return []history.Log{
		history.Transfer(*base.Registry, history.Address{}, account(owner), n),
		history.Location(*base.Registry, n, history.LocationBytes(history.Number(base.ID), records, n)),
	}
}

// chain returns a history of blocks on Base.
func chain(blocks ...[]history.Log) *history.History {
	h := &history.History{Chains: history.Production()}
	for n, logs := range blocks {
		h.Blocks = append(h.Blocks, history.Block{Chain: base.ID, Number: base.First + uint64(n), Time: 1_726_000_000 + int64(n), Logs: logs})
	}
	return h
}

// show returns the records of a list in short: account:tag,tag.
func show(l history.List) string {
	var all []string
	for _, r := range l.Records {
		text := fmt.Sprint(r.Data[len(r.Data)-1])
		if len(r.Tags) > 0 {
			text += ":" + strings.Join(r.Tags, ",")
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestTablesCountWhereEventsLack(t *testing.T) {
	server := databases.Start(t)
	h := chain(mint(0, 1), mint(1, 2), mint(2, 3),
		[]history.Log{op(0, 1, 9, ""), op(1, 1, 9, "")},
		[]history.Log{op(0, 1, 7, ""), op(1, 1, 7, "")},
		[]history.Log{op(0, 1, 8, ""), op(0, 3, 7, "top8"), op(1, 1, 8, "")},
		[]history.Log{op(0, 2, 7, ""), op(1, 2, 9, "")},
		[]history.Log{op(0, 1, 7, ""), op(1, 1, 9, "")},
	)
	const lack = "DELETE FROM events WHERE event_name = 'ListOp' AND block_number = 20180003 AND event_args->>'slot' LIKE '%1'"
	for _, c := range []struct {
		name, change string
		v1           bool
		want         [2]string // records of the first two lists
		order        postgres.OrderReport
	}{
		{"v1", "", true, [2]string{"9 8 7", "7 8 9"}, postgres.OrderReport{Events: 2, Empty: 1}},
		{"v2", "", false, [2]string{"9 8 7", "7 8 9"}, postgres.OrderReport{Events: 2, Empty: 1}},
		{"v2, an event lacks", lack, false, [2]string{"9 8 7", "7 8 9"}, postgres.OrderReport{Events: 2, Empty: 1}},
		{"v2, a row lacks", "DELETE FROM efp_list_records WHERE record LIKE '%8' AND slot LIKE '%1'", false,
			[2]string{"9 8 7", "7 9"}, postgres.OrderReport{Events: 1, Tables: 1, Empty: 1}},
		{"v2, rows in another order", "DELETE FROM events WHERE event_args->>'slot' LIKE '%1' AND block_number < 20180006; " +
			"UPDATE efp_list_records SET created_at = now() WHERE record LIKE '%7'", false,
			[2]string{"9 8 7", "8 9 7"}, postgres.OrderReport{Events: 1, Tables: 1, Empty: 1}},
		// Tags of removed records stay in v1, which only events can tell.
		{"v1, no events", "TRUNCATE events", true, [2]string{"9 8 7:top8", "7 8 9"}, postgres.OrderReport{Tables: 2, Empty: 1}},
		{"v1, no table", "DROP TABLE events", true, [2]string{"9 8 7:top8", "7 8 9"}, postgres.OrderReport{Tables: 2, Empty: 1}},
		{"v2, no table", "DROP TABLE events", false, [2]string{"9 8 7", "7 8 9"}, postgres.OrderReport{Tables: 2, Empty: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := filled(t, server, h, c.v1)
			databases.Exec(t, dsn, c.change)
			got := read(t, dsn)
			if got := [2]string{show(got.lists[0]), show(got.lists[1])}; got != c.want {
				t.Errorf("records: got %q, want %q", got, c.want)
			}
			if got := got.report.Order; got != c.order {
				t.Errorf("order: got %+v, want %+v", got, c.order)
			}
			if warned := len(got.report.Warnings) > 0; warned != (c.order.Tables > 0) {
				t.Errorf("warnings: got %q, want some where tables count", got.report.Warnings)
			}
			if got, least := got.graph.ListOps, got.report.Records; got < least {
				t.Errorf("operations: got %d, want at least the %d records", got, least)
			}
		})
	}
}

func TestProfiles(t *testing.T) {
	server := databases.Start(t)
	const v1 = `INSERT INTO ens_metadata (name, address, avatar, display, records, updated_at) VALUES
  ('b.eth', '0x00000000000000000000000000000000000000bb', 'ipfs://x', 'B.eth', '{"url": "<&>", "a": "1"}', '2026-01-02T03:04:05.678Z'),
  ('a.eth', '0x00000000000000000000000000000000000000aa', NULL, NULL, '["not an object"]', '2026-01-02T03:04:05Z')`
	const v2 = `INSERT INTO ens_metadata (name, address, avatar, header, records, updated_at) VALUES
  ('b.eth', '0x00000000000000000000000000000000000000BB', 'old', '', '{}', '2020-01-02T03:04:05.678Z'),
  ('b.eth', '0x00000000000000000000000000000000000000bb', 'ipfs://x', '', '{"url": "<&>", "a": "1"}', '2026-01-02T03:04:05.678Z'),
  ('c.eth', 'not an address', NULL, NULL, NULL, '2026-01-02T03:04:05Z'),
  (NULL, '0x00000000000000000000000000000000000000cc', NULL, NULL, NULL, '2026-01-02T03:04:05Z'),
  ('a.eth', '0x00000000000000000000000000000000000000aa', NULL, NULL, '["not an object"]', '2026-01-02T03:04:05Z')`
	for _, c := range []struct{ name, schema, rows, display string }{
		{"v1", databases.SchemaV1, v1, "B.eth"},
		{"v1 of other times", databases.SchemaV1 + "ALTER TABLE ens_metadata DROP COLUMN header;", v1, "B.eth"},
		{"v2", databases.SchemaV2, v2, "b.eth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := server.Database(t)
			databases.Exec(t, dsn, c.schema+c.rows)
			got := read(t, dsn)
			if len(got.profiles) != 2 || got.report.Profiles != 2 {
				t.Fatalf("profiles: got %+v, want two", got.profiles)
			}
			a, b := got.profiles[0], got.profiles[1]
			if a.Address != (site.Address{19: 0xaa}) || a.ENS.Name != "a.eth" || a.ENS.Display != "a.eth" || string(a.ENS.Records) != "{}" {
				t.Errorf("first profile: got %+v", a)
			}
			if b.Address != (site.Address{19: 0xbb}) || b.ENS.Avatar != "ipfs://x" || b.ENS.Display != c.display ||
				b.ENS.Fresh != 1767323045678 || string(b.ENS.Records) != `{"a":"1","url":"<&>"}` {
				t.Errorf("second profile: got %+v", b)
			}
			want := map[string]uint64{"records of a profile that are no object": 1}
			if c.schema == databases.SchemaV2 {
				want["profile of something that is no address"] = 1
			}
			if got := got.report.Ignored; !maps.Equal(got, want) {
				t.Errorf("ignored: got %v, want %v", got, want)
			}
		})
	}
}

func TestTimeOfTheLastBlock(t *testing.T) {
	server := databases.Start(t)
	h := chain(mint(0, 1), []history.Log{op(0, 1, 9, "")})
	const state = `UPDATE indexer_state SET updated_at = '2026-01-02T03:04:05Z', last_block = 30000000;
INSERT INTO indexer_state VALUES (10, '0x4ca00413d850dcfa3516e14d21dae2772f2acb85', 7, '2026-01-02T01:00:00Z')
  ON CONFLICT (chain_id, contract_address) DO UPDATE SET updated_at = excluded.updated_at;
UPDATE indexer_state SET updated_at = '2026-01-02T02:00:00Z' WHERE chain_id = 1;`
	for _, c := range []struct {
		name, change, want string
		v1                 bool
		warning            string
	}{
		{"v2, the earliest of all chains", state, "2026-01-02T01:00:00Z", false, ""},
		{"v2, the time of the block", state + "UPDATE indexer_state SET last_block = 20180001 WHERE chain_id = 8453", "2024-09-10T20:26:41Z", false, ""},
		{"v2, numbers", state + "UPDATE indexer_state SET last_block = 20180001 WHERE chain_id = 8453; ALTER TABLE events ALTER block_timestamp TYPE bigint USING extract(epoch FROM block_timestamp)",
			"2024-09-10T20:26:41Z", false, ""},
		{"v2, no times", state + "ALTER TABLE events DROP COLUMN block_timestamp", "2026-01-02T01:00:00Z", false, ""},
		{"v2, behind", state + "UPDATE efp_system_state SET value = 'false' WHERE key = 'indexer_caught_up'", "2026-01-02T01:00:00Z", false, "caught up"},
		{"v1", "", "2024-09-10T20:26:41Z", true, ""},
		{"v1, no events", "DROP TABLE events; UPDATE efp_lists SET updated_at = '2026-01-02T03:04:05Z'", "2026-01-02T03:04:05Z", true, "no table events"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := filled(t, server, h, c.v1)
			databases.Exec(t, dsn, c.change)
			got := read(t, dsn)
			if got := got.graph.AsOf.Format(time.RFC3339); got != c.want {
				t.Errorf("time: got %s, want %s", got, c.want)
			}
			if warnings := strings.Join(got.report.Warnings, "; "); !strings.Contains(warnings, c.warning) || c.warning == "" && warnings != "" {
				t.Errorf("warnings: got %q, want %q", warnings, c.warning)
			}
		})
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	server := databases.Start(t)
	filled := func(change string) string {
		dsn := server.Database(t)
		databases.FillV2(t, dsn, chain(mint(0, 1), []history.Log{op(0, 1, 9, "")}), 1)
		databases.Exec(t, dsn, change)
		return dsn
	}
	empty := server.Database(t)
	other := server.Database(t)
	databases.Exec(t, other, databases.SchemaV2+"DROP TABLE indexer_state")
	databases.Exec(t, empty, "CREATE ROLE reader LOGIN")
	const readable = "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;"
	as := func(dsn, role string) string { return strings.Replace(dsn, "test@", role+"@", 1) }
	for _, c := range []struct{ name, dsn, want string }{
		{"no server", "postgres://test:secret@" + servers.FreeAddress(t) + "/test?sslmode=disable", "connection refused"},
		{"no URL", "postgres://test:secret@127.0.0.1:port/test", "port"},
		{"no database", server.DSN("absent"), "name of the database"},
		{"no user", as(empty, "nobody"), "check user and password"},
		{"empty", empty, "has no table efp_lists"},
		{"unknown schema", other, "unknown schema"},
		{"other slots", filled("UPDATE efp_list_records SET slot = '12'"), "slots of efp_list_records have 2 bytes"},
		{"no permission", as(filled(""), "reader"), "grant the role SELECT"},
		{"not enough permission", as(filled("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader; REVOKE ALL ON efp_account_metadata FROM reader"), "reader"),
			"permission denied for table efp_account_metadata"},
		{"row-level security", as(filled(readable+"ALTER TABLE efp_lists ENABLE ROW LEVEL SECURITY"), "reader"), "BYPASSRLS"},
		{"row-level security of some rows", as(filled(readable+"ALTER TABLE efp_list_records ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON efp_list_records USING (chain_id = 1)"), "reader"), "BYPASSRLS"},
		{"row-level security of events", as(filled(readable+"ALTER TABLE events ENABLE ROW LEVEL SECURITY"), "reader"), "BYPASSRLS"},
		{"a view of lists", filled("ALTER TABLE efp_lists RENAME TO lists; CREATE VIEW efp_lists AS SELECT * FROM lists WHERE false"), "efp_lists in the schema public is a view"},
		{"a stored view of records", filled("ALTER TABLE efp_list_records RENAME TO r; CREATE MATERIALIZED VIEW efp_list_records AS SELECT * FROM r WITH NO DATA"), "is a view"},
		{"two registries", filled("INSERT INTO efp_lists (token_id, owner, nft_contract_address) SELECT 7, owner, owner FROM efp_lists"), "two registries"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := try(t, t.Context(), c.dsn)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error: got %v, want one with %q and without the password", err, c.want)
			}
		})
	}
}

// try reads a database into a snapshot that nobody wants.
func try(t *testing.T, ctx context.Context, dsn string) error { //nolint:revive // t comes first
	t.Helper()
	r, err := postgres.Open(ctx, postgres.Options{DSN: secret.Text(dsn), Progress: quiet{}})
	if err != nil {
		return err
	}
	err = write(t, ctx, r)
	if err := r.Close(); err != nil {
		t.Log(err)
	}
	return err
}

func write(t *testing.T, ctx context.Context, r *postgres.Reader) error { //nolint:revive // t comes first
	t.Helper()
	w, err := snapshot.Create(t.TempDir()+"/snapshot", snapshot.WriteOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, err = r.Write(ctx, w)
	return err
}

// connect opens a connection for changes during a run.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestOneMomentCounts: rows written while a run reads are ignored, and block nobody.
func TestOneMomentCounts(t *testing.T) {
	server := databases.Start(t)
	dsn := server.Database(t)
	databases.FillV2(t, dsn, chain(mint(0, 1), []history.Log{op(0, 1, 9, "")}), 1)
	r, err := postgres.Open(t.Context(), postgres.Options{DSN: secret.Text(dsn), Progress: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	databases.Exec(t, dsn, "SET lock_timeout = '1s'; DELETE FROM efp_list_records; DELETE FROM efp_lists; DELETE FROM events")
	if err := write(t, t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got := r.Report(); got.Lists != 1 || got.Records != 1 || got.Order.Events != 1 {
		t.Errorf("got %s, want the list and the record that were there at the start", got)
	}
	// The transaction has ended: tables can be replaced while the reader is open.
	databases.Exec(t, dsn, "SET lock_timeout = '1s'; DROP TABLE efp_lists, efp_list_records, ens_metadata, events")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestARunThatIsInterruptedStopsItsQuery(t *testing.T) {
	server := databases.Start(t)
	dsn := server.Database(t)
	databases.FillV2(t, dsn, chain(mint(0, 1), []history.Log{op(0, 1, 9, "")}), 1)
	ctx, cancel := context.WithCancel(t.Context())
	c, locking := connect(t, dsn), connect(t, dsn)
	if _, err := locking.Exec(ctx, "BEGIN; LOCK efp_lists"); err != nil {
		t.Fatal(err)
	}
	running := func() (n int) {
		err := c.QueryRow(context.Background(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'followpress' AND state = 'active' AND wait_event_type = 'Lock'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ended := make(chan error)
	go func() { ended <- try(t, ctx, dsn) }()
	for running() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("got no error, want one")
	}
	for begun := time.Now(); running() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the query still runs")
		}
	}
}

// TestPgBouncer reads through a PgBouncer that gives each transaction any of its connections, while
// others use them too.
func TestPgBouncer(t *testing.T) {
	server := databases.Start(t)
	dsn := server.Database(t)
	h := history.Random(7, history.Options{Transactions: 300})
	databases.FillV2(t, dsn, h, 3)
	bounced := strings.Replace(dsn, server.Address, server.Bouncer(t), 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		for ctx.Err() == nil {
			for range 3 {
				c, err := pgx.Connect(context.Background(), bounced+"&default_query_exec_mode=simple_protocol")
				if err == nil {
					_, err = c.Exec(context.Background(), "SET work_mem = '64kB'; SET bytea_output = 'escape'; SELECT 1")
				}
				if err == nil {
					err = c.Close(context.Background())
				}
				if err != nil {
					ended <- err
					return
				}
			}
		}
		ended <- nil
	}()
	want := read(t, dsn)
	for range 5 {
		got := read(t, bounced)
		same := slices.EqualFunc(got.lists, want.lists, func(a, b history.List) bool {
			return a.Token == b.Token && sameUser(a, b) && sameRecords(a.Records, b.Records)
		})
		if !same {
			t.Error("got another snapshot through PgBouncer")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAReplicaThatHasToGoOn reads a replica, which cancels transactions that need rows cleaned up
// by the primary.
func TestAReplicaThatHasToGoOn(t *testing.T) {
	server := databases.Start(t)
	dsn := server.Database(t)
	databases.FillV2(t, dsn, chain(mint(0, 1), []history.Log{op(0, 1, 9, "")}), 1)
	replica := server.Replica(t, "max_standby_streaming_delay=100ms")
	r, err := postgres.Open(t.Context(), postgres.Options{DSN: secret.Text(strings.Replace(dsn, server.Address, replica.Address, 1)), Progress: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	databases.Exec(t, dsn, "DELETE FROM efp_list_records")
	databases.Exec(t, dsn, "VACUUM efp_list_records")
	time.Sleep(time.Second) // the conflict comes when the replica has waited
	err = write(t, t.Context(), r)
	if err == nil || !strings.Contains(err.Error(), "hot_standby_feedback") {
		t.Errorf("error: got %v, want one that names hot_standby_feedback", err)
	}
	if err := r.Close(); err != nil {
		t.Log(err)
	}
}

// TestChains: a database tells the blocks of its chains only if it has no events after them.
func TestChains(t *testing.T) {
	server := databases.Start(t)
	h := chain(mint(0, 1), []history.Log{op(0, 1, 9, "")})
	const state = "UPDATE indexer_state SET last_block = 20180005 WHERE chain_id = 8453; DELETE FROM indexer_state WHERE chain_id <> 8453;"
	told := func(block uint64, hash string) []site.ChainInput {
		return []site.ChainInput{{ChainID: 8453, Block: block, Hash: hash}}
	}
	hash := "0x" + strings.Repeat("0a", 32)
	hashed := state + "UPDATE events SET block_hash = '0x" + strings.Repeat("0A", 32) + "';"
	for name, c := range map[string]struct {
		change string
		v1     bool
		want   []site.ChainInput
	}{
		"v1":                                  {"", true, nil},
		"v2":                                  {state, false, told(20180005, "")},
		"v2, several chains":                  {state + "INSERT INTO indexer_state VALUES (1, '0x', 7)", false, []site.ChainInput{{ChainID: 1, Block: 7}, told(20180005, "")[0]}},
		"v2, the hash of an earlier block":    {hashed, false, told(20180005, "")},
		"v2, the hash of the last block":      {hashed + "UPDATE indexer_state SET last_block = 20180001", false, told(20180001, hash)},
		"v2, a hash that is none":             {state + "UPDATE events SET block_hash = '0x1'; UPDATE indexer_state SET last_block = 20180001", false, told(20180001, "")},
		"v2, contracts at different blocks":   {state + "INSERT INTO indexer_state VALUES (8453, '0x', 20180004)", false, told(20180004, "")},
		"v2, an event after the block":        {state + "UPDATE indexer_state SET last_block = 20180000", false, nil},
		"v2, a chain without a state":         {state + "UPDATE events SET chain_id = 10", false, nil},
		"v2, no state":                        {"TRUNCATE indexer_state", false, nil},
		"v2, no chain has that number":        {state + "INSERT INTO indexer_state VALUES (-1, '0x', 7)", false, nil},
		"v2, no table of events":              {state + "DROP TABLE events", false, told(20180005, "")},
		"v2, more chains than can be told of": {state + "INSERT INTO indexer_state SELECT n, '0x', 1 FROM generate_series(1, 64) n", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := filled(t, server, h, c.v1)
			databases.Exec(t, dsn, c.change)
			if got := read(t, dsn).graph.Chains; !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

const impossible = "time that is infinite, or not from 1970 to 9999"

// A row that no API can show is ignored and counted; the others are read.
func TestRowsThatAreIgnored(t *testing.T) {
	server := databases.Start(t)
	h := chain(mint(0, 1), mint(1, 2), []history.Log{op(0, 1, 9, ""), op(1, 1, 9, "")}, []history.Log{op(0, 1, 7, ""), op(1, 1, 8, "")})
	for _, c := range []struct {
		name, change string
		v1           bool
		want         []string // records of the lists that are read
		reason       string
		count        uint64
	}{
		{"v2, a strange owner", "UPDATE efp_lists SET owner = 'somebody' WHERE token_id = 0", false, []string{"9 8"}, "list without a valid owner", 1},
		{"v2, a short owner", "UPDATE efp_lists SET owner = '0x12' WHERE token_id = 1", false, []string{"9 7"}, "list without a valid owner", 1},
		{"v2, a negative token", "UPDATE efp_lists SET token_id = -1 WHERE token_id = 0", false, []string{"9 8"}, "list without a valid token ID", 1},
		{"v2, a strange contract", "INSERT INTO efp_list_records SELECT chain_id, 'nowhere', slot, record FROM efp_list_records", false, []string{"9 7", "9 8"}, "row whose chain or contract is none", 4},
		{"v2, a strange chain", "INSERT INTO efp_list_records SELECT -1, contract_address, slot, record FROM efp_list_records", false, []string{"9 7", "9 8"}, "row whose chain or contract is none", 4},
		{"v2, another case", "UPDATE efp_list_records SET contract_address = '0x' || upper(right(contract_address, 40)), slot = ('0x' || upper(right(encode(slot, 'escape'), 64)))::bytea WHERE record LIKE '%8' OR slot LIKE '%0'; " +
			"UPDATE efp_lists SET nft_contract_address = '0x' || upper(right(nft_contract_address, 40)) WHERE token_id = 0", false, []string{"9 7", "9 8"}, "", 0},
		{"v2, a strange account", "INSERT INTO efp_account_metadata (contract_address, address, key, value) VALUES ('0x', 'me', 'primary-list', '0x')", false,
			[]string{"9 7", "9 8"}, "primary list of an invalid address", 1},
		{"v2, infinite records", "UPDATE efp_list_records SET created_at = 'infinity' WHERE record LIKE '%9'; UPDATE efp_list_records SET created_at = '-infinity' WHERE record LIKE '%8'", false,
			[]string{"9 7", "9 8"}, impossible, 3},
		{"v2, infinite events", "UPDATE events SET created_at = '-infinity', block_timestamp = 'infinity' WHERE event_name = 'ListOp'", false, []string{"9 7", "9 8"}, impossible, 4},
		{"v2, distant records without events", "DELETE FROM events; UPDATE efp_list_records SET created_at = '20000-01-01'", false, nil, impossible, 4},
		{"v1, ancient records without events", "DELETE FROM events; UPDATE efp_list_records SET created_at = '4000-01-01 BC'", true, nil, impossible, 4},
		{"v1, infinite accounts", "INSERT INTO efp_account_metadata (chain_id, contract_address, address, key, value, updated_at) SELECT 1, owner, owner, 'primary-list', '0x', 'infinity' FROM efp_lists", true,
			[]string{"9 7", "9 8"}, impossible, 2},
		{"v1, an infinite profile", "INSERT INTO ens_metadata (address, name, updated_at) SELECT owner, 'a.eth', 'infinity' FROM efp_lists LIMIT 1", true, []string{"9 7", "9 8"}, impossible, 1},
		{"v2, a long location", "UPDATE efp_lists SET list_storage_location = convert_to(repeat('x', 20 << 20), 'UTF8') WHERE token_id = 0", false, []string{"", "9 8"}, "overlong location", 1},
		{"v1, a long record", "INSERT INTO efp_list_records SELECT chain_id, contract_address, slot, convert_to(repeat('x', 20 << 20), 'UTF8'), 1, 1, record_data FROM efp_list_records LIMIT 1", true, []string{"9 7", "9 8"}, "record, tag or operation that is absent, or longer than 16 KiB", 1},
		{"v2, long operations", `INSERT INTO events (chain_id, block_number, transaction_index, log_index, contract_address, event_name, event_args)
SELECT chain_id, 99, 0, n, contract_address, 'ListOp', event_args || jsonb_build_object('op', repeat('x', 20 << 20), 'more', repeat('x', 1 << 20))
FROM events, generate_series(1, 3) AS n WHERE event_name = 'ListOp' AND block_number = 20180003 AND log_index = 0`, false,
			[]string{"9 7", "9 8"}, "record, tag or operation that is absent, or longer than 16 KiB", 3},
		{"v2, a long slot", `INSERT INTO events (chain_id, block_number, transaction_index, log_index, contract_address, event_name, event_args)
SELECT chain_id, 99, 0, 0, contract_address, 'ListOp', event_args || jsonb_build_object('slot', repeat('x', 20 << 20)) FROM events WHERE event_name = 'ListOp' LIMIT 1`, false, []string{"9 7", "9 8"}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := filled(t, server, h, c.v1)
			databases.Exec(t, dsn, "ALTER TABLE efp_list_records DROP CONSTRAINT efp_list_records_pkey;"+c.change) // its index takes no long record
			got := read(t, dsn)
			var shown []string
			for _, l := range got.lists {
				shown = append(shown, show(l))
			}
			if c.want != nil && strings.Join(shown, ";") != strings.Join(c.want, ";") {
				t.Errorf("records: got %q, want %q", shown, c.want)
			}
			if n := got.report.Ignored[c.reason]; n != c.count {
				t.Errorf("ignored: got %v, want %d of %q", got.report.Ignored, c.count, c.reason)
			}
		})
	}
}

// onOP returns a list whose slot is on OP Mainnet.
func onOP(token uint64, owner byte) (mint []history.Log, add func(n byte) history.Log) {
	optimism := history.Production()[1]
	n := history.Number(token)
	return []history.Log{
			history.Transfer(*base.Registry, history.Address{}, account(owner), n),
			history.Location(*base.Registry, n, history.LocationBytes(history.Number(optimism.ID), optimism.Records[0], n)),
		}, func(who byte) history.Log {
			a := account(who)
			return history.Op(optimism.Records[0], n, append([]byte{1, 1, 1, 1}, a[:]...))
		}
}

// The run reports tables that lack the records of a chain, or of a list, although its events are
// there.
func TestMissingRecordsAreTold(t *testing.T) {
	server := databases.Start(t)
	minted, add := onOP(1, 2)
	h := chain(mint(0, 1), minted, []history.Log{op(0, 1, 9, "")})
	optimism := history.Production()[1]
	h.Blocks = append(h.Blocks, history.Block{Chain: optimism.ID, Number: optimism.First, Time: 1_725_000_000, Logs: []history.Log{add(9), add(8), add(7)}})
	for _, v1 := range []bool{true, false} {
		for _, c := range []struct {
			name, change, warning string
			order                 postgres.OrderReport
		}{
			{"all there", "", "", postgres.OrderReport{Events: 2}},
			{"a chain", "DELETE FROM efp_list_records WHERE chain_id = 10", "all records of chain 10, but its events give 3 records of 1 lists", postgres.OrderReport{Events: 1, Missing: 1}},
			{"every chain", "TRUNCATE efp_list_records", "all records of chain 8453, but its events give 1 records of 1 lists", postgres.OrderReport{Missing: 2}},
			{"a chain without events", "DELETE FROM efp_list_records WHERE chain_id = 10; DELETE FROM events WHERE chain_id = 10", "", postgres.OrderReport{Events: 1, Empty: 1}},
			{"a part", "DELETE FROM efp_list_records WHERE chain_id = 10 AND ctid = (SELECT max(ctid) FROM efp_list_records WHERE chain_id = 10)", "(2; events 3)", postgres.OrderReport{Events: 1, Tables: 1}},
		} {
			t.Run(c.name, func(t *testing.T) {
				dsn := filled(t, server, h, v1)
				databases.Exec(t, dsn, c.change)
				got := read(t, dsn)
				if warnings := strings.Join(got.report.Warnings, "; "); !strings.Contains(warnings, c.warning) || c.warning == "" && warnings != "" {
					t.Errorf("warnings: got %q, want %q", warnings, c.warning)
				}
				if got.report.Order != c.order {
					t.Errorf("order: got %+v, want %+v", got.report.Order, c.order)
				}
				// The chain that was read least far counts, in v1 too.
				if want := time.Unix(1_725_000_000, 0).UTC(); v1 && c.name == "all there" && !got.graph.AsOf.Equal(want) {
					t.Errorf("as of %v, want %v", got.graph.AsOf, want)
				}
			})
		}
	}
}

// The run warns of a database that does not state its blocks, or that has a view in place of a
// table.
func TestDoubtfulDatabases(t *testing.T) {
	server := databases.Start(t)
	h := chain(mint(0, 1), []history.Log{op(0, 1, 9, "")})
	for _, c := range []struct{ name, change, warning string }{
		{"no state", "TRUNCATE indexer_state", "indexer_state names no blocks"},
		{"no state and no events", "TRUNCATE indexer_state; DROP TABLE events", "indexer_state names no blocks"},
		{"an infinite state", "UPDATE indexer_state SET updated_at = 'infinity', last_block = 1", "indexer_state names no blocks"},
		{"a view of events", "ALTER TABLE events RENAME TO e; CREATE VIEW events AS SELECT * FROM e", "events is a view"},
		{"a view of profiles", "ALTER TABLE ens_metadata RENAME TO e; CREATE VIEW ens_metadata AS SELECT * FROM e", "ens_metadata is a view"},
		{"a view of v1", "CREATE VIEW efp_list_metadata AS SELECT 1 AS chain_id", "efp_list_metadata is a view"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := filled(t, server, h, false)
			databases.Exec(t, dsn, c.change)
			got := read(t, dsn)
			if warnings := strings.Join(got.report.Warnings, "; "); !strings.Contains(warnings, c.warning) {
				t.Errorf("warnings: got %q, want %q", warnings, c.warning)
			}
			if len(got.lists) != 1 || show(got.lists[0]) != "9" {
				t.Errorf("lists: got %+v", got.lists)
			}
			if c.name == "no state" && got.graph.AsOf.Unix() != 1_726_000_001 {
				t.Errorf("as of %v, want the last event", got.graph.AsOf)
			}
		})
	}
}

// The server's limits of time, which are for queries of a web service, end no run; the role's that
// bypasses row-level security reads all rows.
func TestLimitsOfTheServer(t *testing.T) {
	server := databases.Start(t)
	dsn := server.Database(t)
	databases.FillV2(t, dsn, chain(mint(0, 1), []history.Log{op(0, 1, 9, "")}), 1)
	databases.Exec(t, dsn, `CREATE ROLE hurried LOGIN BYPASSRLS; GRANT SELECT ON ALL TABLES IN SCHEMA public TO hurried;
ALTER TABLE efp_lists ENABLE ROW LEVEL SECURITY;
ALTER ROLE hurried SET statement_timeout = '1s'; ALTER ROLE hurried SET idle_in_transaction_session_timeout = '1s'`)
	locking := connect(t, dsn)
	if _, err := locking.Exec(t.Context(), "BEGIN; LOCK efp_account_metadata"); err != nil {
		t.Fatal(err)
	}
	r, err := postgres.Open(t.Context(), postgres.Options{DSN: secret.Text(strings.Replace(dsn, "test@", "hurried@", 1)), Progress: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(1200 * time.Millisecond) // idle in the transaction
	unlocked := make(chan error)
	go func() {
		time.Sleep(1200 * time.Millisecond) // while a statement waits
		_, err := locking.Exec(t.Context(), "ROLLBACK")
		unlocked <- err
	}()
	err = write(t, t.Context(), r)
	if unlocking := <-unlocked; err != nil || unlocking != nil {
		t.Errorf("got %v, %v", err, unlocking)
	}
	if got := r.Report(); got.Lists != 1 || got.Records != 1 {
		t.Errorf("got %s", got)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOpsOfPartialEvents: if events begin later than records, as in v2, the earlier records are
// inferred from the tables, so that removals and tags of old records are visible.
func TestOpsOfPartialEvents(t *testing.T) {
	server := databases.Start(t)
	const add, remove, tag, untag = 1, 2, 3, 4
	h := chain(mint(0, 1), mint(1, 2),
		[]history.Log{op(0, add, 7, ""), op(0, add, 8, ""), op(0, tag, 8, "old"), op(0, add, 9, ""), op(1, add, 7, "")}, // not in the events
		[]history.Log{
			op(0, remove, 7, ""), op(0, untag, 8, "old"), op(0, tag, 8, "new"), op(0, add, 5, ""), op(0, add, 5, ""), op(0, tag, 6, "aside"),
			op(1, remove, 3, ""), op(1, add, 4, ""), op(1, remove, 4, ""),
		})
	show := func(ops []history.VisibleOp) string {
		var lines []string
		for _, o := range ops {
			parsed, ignored := siteop.Parse([]byte(o.Data))
			if ignored != "" {
				t.Fatal(ignored)
			}
			text := fmt.Sprintf("%s %s %d", o.Token, parsed.Code, parsed.Data()[19])
			if parsed.Tag != nil {
				text += "#" + string(parsed.Tag)
			}
			lines = append(lines, text)
		}
		return strings.Join(lines, "; ")
	}
	const late = "0 unfollow 7; 0 untag 8#old; 0 tag 8#new; 0 follow 5; "
	for _, c := range []struct {
		name, change, want string
	}{
		{"all events", "", "0 follow 7; 0 follow 8; 0 tag 8#old; 0 follow 9; 1 follow 7; " + late + "1 follow 4; 1 unfollow 4"},
		// Nobody can tell whether list 1 held account 3.
		{"late events", fmt.Sprintf("DELETE FROM events WHERE block_number <= %d", h.Blocks[2].Number), late + "1 unfollow 3; 1 follow 4; 1 unfollow 4"},
		{"no events", "DELETE FROM events", ""},
		{"no table of events", "DROP TABLE events", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := filled(t, server, h, false)
			databases.Exec(t, dsn, c.change)
			got := read(t, dsn)
			text := show(got.ops)
			if got.ops == nil {
				text = "none"
			}
			if text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
			switch from := got.graph.OpsFrom; {
			case (from == nil) != (got.ops == nil):
				t.Errorf("complete from %v, want that if there are events", from)
			case len(got.ops) > 0 && from.UnixMilli() > got.ops[0].Time:
				t.Errorf("complete from %v, after the first operation", from)
			case len(got.ops) == 0 && from != nil && !from.Equal(got.graph.AsOf):
				t.Errorf("complete from %v, want from the end", from)
			}
		})
	}
}

// TestMalformedDSN: an error describes the fault, and contains no part of a password (pa55, w0rd).
func TestMalformedDSN(t *testing.T) {
	for dsn, want := range map[string]string{
		"u:pa55@w0rd@127.0.0.1/db":                     "neither a URL",
		"mysql://u:pa55w0rd@127.0.0.1/db":              "neither a URL",
		"host=127.0.0.1 password=pa55 w0rd":            "neither a URL",
		"host=127.0.0.1 password='pa55 w0rd":           "neither a URL",
		"host=127.0.0.1 port=x password = pa55w0rd":    "invalid port",
		`host=127.0.0.1 port=x password='pa55\'w0rd'`:  "invalid port",
		"postgres://u:pa55@w0rd@127.0.0.1:x/db":        "invalid port",
		"postgres://u:pa55/w0rd@127.0.0.1:1/db":        "invalid port",
		"postgres://u:pa55%w0rd@127.0.0.1:1/db":        "percent",
		"postgres://u:pa55 w0rd@127.0.0.1:1/db":        "spaces",
		"postgres://u:pa55w0rd@127.0.0.1/db?sslmode=x": "sslmode",
		"postgres://u:pa55w0rd@127.0.0.1:1/db":         "check the host and the port of the DSN", // nobody listens there
	} {
		_, err := postgres.Open(t.Context(), postgres.Options{DSN: secret.Text(dsn), Progress: quiet{}})
		if err == nil {
			t.Errorf("%s: got no error", dsn)
		} else if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "pa55") || strings.Contains(text, "w0rd") {
			t.Errorf("%s: got %v, want %q and nothing of the password", dsn, err, want)
		}
	}
}
