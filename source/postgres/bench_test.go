package postgres_test

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/internal/testenv/databases"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source/postgres"
)

// fill fills a v2 database with lists and, on average, the given number of records per list. Most
// lists have few records and some have thousands; one record in sixteen has a tag.
const fill = `
CREATE TABLE made AS
  SELECT i, '0x' || md5(i::text) || md5(i::text || 'slot') AS slot, '0x' || substr(md5(i::text || 'owner') || md5(i::text), 1, 40) AS owner,
    least(20000, floor(%[2]d * 0.26 / power(random(), 0.78)))::int AS size, (random() * 58000)::int AS first
  FROM generate_series(0, %[1]d - 1) AS i;
INSERT INTO efp_lists (token_id, owner, "user", nft_contract_address, list_storage_location, list_storage_location_chain_id,
    list_storage_location_contract_address, list_storage_location_slot)
  SELECT i, owner, owner, '0x0e688f5dca4a0a4729946acbc44c792341714e08',
    convert_to('0x0101' || lpad('2105', 64, '0') || '41aa48ef3c0446b46a5b1cc6337ff3d3716e2a33' || substr(slot, 3), 'UTF8'),
    8453, '0x41aa48ef3c0446b46a5b1cc6337ff3d3716e2a33', convert_to(slot, 'UTF8') FROM made;
CREATE TABLE ops AS
  SELECT n, slot, '0x0101' || substr(md5(((first + k * 7) %% 58000)::text) || md5(((first + k * 7) %% 58000)::text || 'a'), 1, 40) AS record, now() - interval '1 year' + n * interval '10 s' AS at
  FROM (SELECT row_number() OVER (ORDER BY md5(i::text || k::text)) AS n, made.*, k FROM made, generate_series(1, size) AS k) AS numbered ORDER BY n;
INSERT INTO efp_list_records SELECT 8453, '0x41aa48ef3c0446b46a5b1cc6337ff3d3716e2a33', convert_to(slot, 'UTF8'), convert_to(record, 'UTF8'), 1, 1,
    convert_to('0x' || substr(record, 7), 'UTF8'), at FROM ops ORDER BY n;
INSERT INTO efp_list_record_tags SELECT 8453, '0x41aa48ef3c0446b46a5b1cc6337ff3d3716e2a33', convert_to(slot, 'UTF8'), convert_to(record, 'UTF8'), 'top8', at FROM ops WHERE n %% 16 = 0 ORDER BY n;
INSERT INTO events (chain_id, block_number, transaction_index, log_index, contract_address, event_name, event_args, block_timestamp)
  SELECT 8453, 20200000 + n * 5, 0, 0, '0x41aa48ef3c0446b46a5b1cc6337ff3d3716e2a33', 'ListOp',
    jsonb_build_object('slot', slot, 'op', '0x0101' || substr(record, 3)), at FROM ops ORDER BY n;
INSERT INTO events (chain_id, block_number, transaction_index, log_index, contract_address, event_name, event_args, block_timestamp)
  SELECT 8453, 20200000 + n * 5, 0, 1, '0x41aa48ef3c0446b46a5b1cc6337ff3d3716e2a33', 'ListOp',
    jsonb_build_object('slot', slot, 'op', '0x0103' || substr(record, 3) || encode('top8', 'hex')), at FROM ops WHERE n %% 16 = 0 ORDER BY n;
INSERT INTO efp_account_metadata (contract_address, address, key, value)
  SELECT '0x5289fe5dabc021d02fddf23d4a4df96f4e0f17ef', owner, 'primary-list', '0x' || lpad(to_hex(i), 64, '0') FROM made;
INSERT INTO ens_metadata (address, name, avatar, records)
  SELECT owner, 'name' || i || '.eth', 'https://example.org/' || i, '{"description":"somebody","com.twitter":"name"}' FROM made;
INSERT INTO indexer_state VALUES (8453, '0x41aa48ef3c0446b46a5b1cc6337ff3d3716e2a33', 30000000, now());
DROP TABLE made, ops;
ANALYZE;
`

// BenchmarkWrite reads a database of the real network's size, or of LISTS lists with about RECORDS
// records each.
func BenchmarkWrite(b *testing.B) {
	s := databases.Start(b)
	dsn := s.Database(b)
	databases.Exec(b, dsn, databases.SchemaV2)
	databases.Exec(b, dsn, "SELECT setseed(0.5);"+fmt.Sprintf(fill, number(b, "LISTS", 55_000), number(b, "RECORDS", 18)))
	var records uint64
	for b.Loop() {
		w, err := snapshot.Create(b.TempDir()+"/snapshot", snapshot.WriteOptions{})
		if err != nil {
			b.Fatal(err)
		}
		r, err := postgres.Open(b.Context(), postgres.Options{DSN: secret.Text(dsn), Progress: quiet{}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Write(b.Context(), w); err != nil {
			b.Fatal(err)
		}
		report := r.Report()
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		b.Logf("%s", report)
		records += report.Records
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(peak(b), "MiB-peak")
}

func number(b *testing.B, name string, otherwise int) int {
	b.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// peak returns the most memory that the process had so far, in MiB.
func peak(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Maxrss) / 1024 // Linux counts KiB
}
