package snapshot_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/followpress/followpress/snapshot"
)

// TestLongRowsOfParquet: a block of long rows has few of them, because their pages stay in memory.
func TestLongRowsOfParquet(t *testing.T) {
	const n, size = 600, 64 << 10
	long := strings.Repeat("x", size)
	recommended := make([]parquetRecommended, n)
	records := make([]parquetRecord, n)
	for i := range n {
		recommended[i] = parquetRecommended{Address: someAddress, Class: &long}
		records[i] = parquetRecord{TokenID: "1", Type: text("address"), Data: []byte(someAddress), Tags: []string{long}}
	}
	dir := t.TempDir()
	writeFile(t, dir, "recommended.parquet", string(parquetOf(t, recommended, n, parquet.Compression(&parquet.Snappy))))
	writeFile(t, dir, "records.parquet", string(parquetOf(t, records, n, parquet.Compression(&parquet.Snappy))))
	most, all := 0, 0
	check := func(rows int) {
		most, all = max(most, rows), all+rows
	}
	err := snapshot.Reader[snapshot.Recommended]{Snapshot: files(dir), Workers: 1, Done: func(b snapshot.Block[snapshot.Recommended]) error { check(len(b.Rows)); return nil }}.Table(t.Context(), snapshot.TableRecommended, snapshot.ParseRecommended)
	if err != nil || all != n || most > 20<<20/size {
		t.Errorf("got %d rows, at most %d in a block, and the error %v; want %d rows, at most 20 MiB of them in a block", all, most, err, n)
	}
	most, all = 0, 0
	err = snapshot.Reader[snapshot.Record]{Snapshot: files(dir), Workers: 1, Done: func(b snapshot.Block[snapshot.Record]) error { check(len(b.Rows)); return nil }}.Table(t.Context(), snapshot.TableRecords, snapshot.ParseRecord)
	if err != nil || all != n || most > 20<<20/size {
		t.Errorf("tags: got %d rows, at most %d in a block, and the error %v; want %d rows, at most 20 MiB of them in a block", all, most, err, n)
	}
}

const someAddress = "0x00000000000000000000000000000000000000aa"

// TestTooLongRecordOfParquet: the size limit of a record is the same in Parquet and in JSON.
func TestTooLongRecordOfParquet(t *testing.T) {
	record := parquetRecord{TokenID: "1", Type: text("9"), Data: append([]byte("0x"), bytes.Repeat([]byte("ab"), 8<<20)...)}
	dir := t.TempDir()
	writeFile(t, dir, "records.parquet", string(parquetOf(t, []parquetRecord{record}, 1)))
	var got []string
	err := snapshot.Reader[int]{Snapshot: files(dir), Workers: 1, Untimed: true, Done: func(b snapshot.Block[int]) error {
		return b.Each(func(snapshot.Row[int]) error { return nil },
			func(e *snapshot.RowError) error { got = append(got, e.Error()); return nil })
	}}.Records(t.Context(), func(*snapshot.Record) (int, error) { return 0, nil })
	if err != nil || len(got) != 1 || got[0] != "records.parquet:1: a row of more than 16 MiB" {
		t.Errorf("got %q and the error %v, want that the row is too long", got, err)
	}
}

// TestShortLines: blank lines take no memory for rows.
func TestShortLines(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "lists.ndjson", strings.Repeat("\n", 200<<10))
	err := snapshot.Reader[snapshot.List]{Snapshot: files(dir), Workers: 1, Done: func(b snapshot.Block[snapshot.List]) error {
		if cap(b.Rows) > 20<<10 {
			t.Errorf("got memory for %d rows, want that of at most 20480", cap(b.Rows))
		}
		return nil
	}}.Table(t.Context(), snapshot.TableLists, snapshot.ParseList)
	if err != nil {
		t.Error(err)
	}
}

// TestDanglingPart: a dangling link as a part is an error, not a missing part.
func TestDanglingPart(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "lists-1.ndjson", partRows(1, 1))
	if err := os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "lists-2.ndjson")); err != nil {
		t.Fatal(err)
	}
	folder, err := snapshot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if _, err := lists(t, folder); err == nil || !strings.Contains(err.Error(), "lists-2.ndjson") {
		t.Errorf("got %v, want an error that names lists-2.ndjson", err)
	}
}
