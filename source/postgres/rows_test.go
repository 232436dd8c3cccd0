package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/internal/testenv/databases"
	"github.com/followpress/followpress/source/postgres"
)

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
