package snapshot_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
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
	err := snapshot.Reader[snapshot.Recommended]{Snapshot: files(dir), Workers: 1, Done: func(b snapshot.Block[snapshot.Recommended]) error { check(len(b.Rows)); return nil }}.Table(t.Context(), snapshot.TableRecommended)
	if err != nil || all != n || most > 20<<20/size {
		t.Errorf("got %d rows, at most %d in a block, and the error %v; want %d rows, at most 20 MiB of them in a block", all, most, err, n)
	}
	most, all = 0, 0
	err = snapshot.Reader[snapshot.Record]{Snapshot: files(dir), Workers: 1, Untimed: true, Done: func(b snapshot.Block[snapshot.Record]) error { check(len(b.Rows)); return nil }}.Table(t.Context(), snapshot.TableRecords)
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
	}}.Table(t.Context(), snapshot.TableLists)
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

// linesOf reads the table lists, and returns the lines of its rows, the invalid lines, and the
// error.
func linesOf(t *testing.T, name, body string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, name, body)
	var lines []string
	err := snapshot.Reader[snapshot.List]{Snapshot: files(dir), Workers: 1, Done: func(b snapshot.Block[snapshot.List]) error {
		return b.Each(func(r snapshot.Row[snapshot.List]) error { lines = append(lines, fmt.Sprint(r.Line)); return nil },
			func(e *snapshot.RowError) error { lines = append(lines, e.Error()); return nil })
	}}.Table(t.Context(), snapshot.TableLists)
	return strings.Join(lines, ", "), err
}

// Around a row there may be the white space of JSON, and before the first one of a file a byte order mark; nothing else.
func TestSpaceAroundRows(t *testing.T) {
	const mark = "\ufeff"
	row := func(n int) string { return strings.TrimSuffix(partRows(n, 1), "\n") }
	for name, c := range map[string]struct{ body, want string }{
		"white space":                  {" \t" + row(1) + " \r\n\n\r\n" + row(2), "1, 4"},
		"a byte order mark":            {mark + row(1) + "\n" + row(2), "1, 2"},
		"a byte order mark, alone":     {mark, ""},
		"two byte order marks":         {mark + mark + row(1), "lists.ndjson:1: not a JSON object"},
		"a byte order mark further on": {row(1) + "\n" + mark + row(2), "1, lists.ndjson:2: not a JSON object"},
		"UTF-16":                       {"\xff\xfe{\x00}\x00", "lists.ndjson:1: not valid UTF-8"},
		"a space that is no space":     {"\u00a0" + row(1), "lists.ndjson:1: not a JSON object"},
		"a line of no spaces":          {"\u00a0\n" + row(1), "lists.ndjson:1: not a JSON object, 2"},
		"a form feed":                  {"\f" + row(1), "lists.ndjson:1: not a JSON object"},
	} {
		if got, err := linesOf(t, "lists.ndjson", c.body); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
	for _, after := range []string{"\u00a0", "\v", "x"} {
		if got, err := linesOf(t, "lists.ndjson", row(1)+after); err != nil || !strings.HasPrefix(got, "lists.ndjson:1: ") {
			t.Errorf("%q after a row: got %q, %v, want an error", after, got, err)
		}
	}
}

// A gzip file may have several members.
func TestGzipMembers(t *testing.T) {
	member := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	one, two := member(partRows(1, 2)), member(partRows(3, 1))
	for name, c := range map[string]struct {
		body, want string
		good       bool
	}{
		"two members":     {one + two, "1, 2, 3", true},
		"an empty member": {one + member("") + two, "1, 2, 3", true},
		"something else":  {one + "x", "", false},
		"cut off":         {one + two[:len(two)-3], "", false},
	} {
		if got, err := linesOf(t, "lists.ndjson.gz", c.body); (err == nil) != c.good || c.good && got != c.want {
			t.Errorf("%s: got %q, %v, want %q, good: %v", name, got, err, c.want, c.good)
		}
	}
}

// A Reader without Workers reads, too.
func TestReaderWithoutWorkers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lists.ndjson"), []byte(`{"token_id":"7","owner":"0x0000000000000000000000000000000000000007"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := 0
	r := snapshot.Reader[snapshot.List]{Snapshot: files(dir), Done: func(b snapshot.Block[snapshot.List]) error {
		rows += len(b.Rows)
		return nil
	}}
	if err := r.Table(t.Context(), snapshot.TableLists); err != nil || rows != 1 {
		t.Errorf("got %d rows and %v, want 1", rows, err)
	}
}
