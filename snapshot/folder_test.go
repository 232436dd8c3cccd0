package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// TestOpenedFolderStaysTheSame replaces a snapshot by one with other files.
func TestOpenedFolderStaysTheSame(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	commit(t, dir, some(1), fast)
	folder, err := snapshot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	commit(t, dir, some(2), snapshot.WriteOptions{NoSync: true, Compression: "none"})
	for range 2 { // each table may be read again
		if got, err := lists(t, folder); err != nil || got != "1" {
			t.Errorf("after the replacement: got list %s and %v, want 1", got, err)
		}
		if _, err := snapshot.ReadAsOf(folder); err != nil {
			t.Error(err)
		}
	}
	if got, err := lists(t, files(dir)); err != nil || got != "2" {
		t.Errorf("the new snapshot: got list %s and %v, want 2", got, err)
	}
	if _, err := folder.Open("lists.ndjson"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of the new snapshot: got %v, want that it does not exist", err)
	}
}

// TestOpenWhileReplaced opens a folder that another goroutine replaces all the time.
func TestOpenWhileReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	commit(t, dir, some(0), fast)
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		endings := []string{"zstd", "none"}
		for n := 1; ; n++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			w, err := snapshot.Create(dir, snapshot.WriteOptions{NoSync: true, Compression: endings[n%len(endings)]})
			if err == nil {
				err = errors.Join(some(n).write(w), w.Commit(asOf), w.Close())
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 300 {
		folder, err := snapshot.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		list, err := lists(t, folder)
		var account []snapshot.Account
		for a, errAccount := range snapshot.Accounts(folder) {
			account, err = append(account, a), errors.Join(err, errAccount)
		}
		if err := errors.Join(err, folder.Close()); err != nil || len(account) != 1 || account[0].Primary != list {
			t.Fatalf("got list %s, accounts %v and %v, want both of one snapshot", list, account, err)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

// TestOpenWhatIsNoSnapshot checks that the errors are those of a folder that is not opened before.
func TestOpenWhatIsNoSnapshot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.Mkdir(filepath.Join(broken, "meta.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent"), file, broken} {
		folder, err := snapshot.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, got := snapshot.ReadAsOf(folder)
		_, want := snapshot.ReadAsOf(files(dir))
		if got == nil || got.Error() != want.Error() {
			t.Errorf("%s: got %v, want %v", dir, got, want)
		}
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	}
}

// some are rows that name the same list.
func some(n int) rows {
	id := fmt.Sprint(n)
	return rows{lists: []snapshot.List{{TokenID: id}}, accounts: []snapshot.Account{{Primary: id, ENS: &site.Profile{Name: "a.eth"}}}}
}

// lists returns the first list of a snapshot.
func lists(t *testing.T, from afero.Fs) (id string, err error) {
	err = snapshot.Reader[snapshot.List]{Snapshot: from, Workers: 1, Done: func(b snapshot.Block[snapshot.List]) error {
		id = b.Rows[0].Value.TokenID
		return nil
	}}.Table(t.Context(), snapshot.TableLists)
	return id, err
}

// partRows returns the rows of one part of the table lists.
func partRows(part, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"token_id":"%d","owner":"0x%040x"}`+"\n", 1_000_000*part+i, i)
	}
	return b.String()
}

// TestParts: the rows of a table in several files come in the order of the numbers, whatever the format
// of each file and the number of workers.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for part := 1; part <= 12; part++ {
		n := 3000 * (part % 3)
		body, name := partRows(part, n), fmt.Sprintf("lists-%02d.ndjson", part)
		switch part % 4 {
		case 1:
			encoder, err := zstd.NewWriter(nil)
			if err != nil {
				t.Fatal(err)
			}
			body, name = string(encoder.EncodeAll([]byte(body), nil)), name+".zst"
		case 2:
			var lists []parquetList
			for i := range n {
				lists = append(lists, parquetList{TokenID: fmt.Sprint(1_000_000*part + i), Owner: fmt.Sprintf("0x%040x", i)})
			}
			body, name = string(parquetOf(t, lists, 1000)), fmt.Sprintf("lists-%02d.parquet", part)
		}
		writeFile(t, dir, name, body)
		for i := range n {
			want = append(want, fmt.Sprint(1_000_000*part+i))
		}
	}
	writeFile(t, dir, "lists-.ndjson", "not a part")
	writeFile(t, dir, "lists-1x.ndjson", "not a part")
	folder, err := snapshot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for _, workers := range []int{1, 2, 20} {
		var got []string
		err := snapshot.Reader[snapshot.List]{Snapshot: folder, Workers: workers, Done: func(b snapshot.Block[snapshot.List]) error {
			for _, r := range b.Rows {
				got = append(got, r.Value.TokenID)
			}
			return nil
		}}.Table(t.Context(), snapshot.TableLists)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%d workers: got %d rows and the error %v, want %d in order", workers, len(got), err, len(want))
		}
	}
	filesAlone(t, folder, want)
	ctx, cancel := context.WithCancel(t.Context())
	stop := errors.New("stop")
	err = snapshot.Reader[snapshot.List]{Snapshot: folder, Workers: 2, Done: func(snapshot.Block[snapshot.List]) error {
		cancel()
		return stop
	}}.Table(ctx, snapshot.TableLists)
	if !errors.Is(err, stop) && !errors.Is(err, context.Canceled) { // whichever is noticed first
		t.Errorf("stopped at the first block: got %v", err)
	}
}

// filesAlone reads each file of the lists on its own.
func filesAlone(t *testing.T, folder afero.Fs, want []string) {
	t.Helper()
	names, err := snapshot.TableFiles(folder, snapshot.TableLists)
	if err != nil || len(names) != 12 {
		t.Fatalf("files: got %v and the error %v, want 12", names, err)
	}
	var got []string
	for _, name := range names {
		line := 0
		err := snapshot.Reader[snapshot.List]{Snapshot: folder, File: name, Workers: 2, Done: func(b snapshot.Block[snapshot.List]) error {
			for _, r := range b.Rows {
				if line++; b.File != name || r.Line != line {
					t.Fatalf("row %d of %s: got line %d of %s", line, name, r.Line, b.File)
				}
				got = append(got, r.Value.TokenID)
			}
			return nil
		}}.Table(t.Context(), snapshot.TableLists)
		if err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("file by file: got %d rows, want the %d of the table", len(got), len(want))
	}
	for _, name := range []string{"records-01.ndjson", "lists-.ndjson", "meta.json"} {
		err := snapshot.Reader[snapshot.List]{Snapshot: folder, File: name, Workers: 1, Done: func(snapshot.Block[snapshot.List]) error { return nil }}.Table(t.Context(), snapshot.TableLists)
		if want := name + " is not a file of the table lists"; fmt.Sprint(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestRecordsAndAccountsOfOneFile: a file has the same rows and the same invalid ones, alone or with the
// others.
func TestRecordsAndAccountsOfOneFile(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		writeFile(t, dir, fmt.Sprintf("records-%d.ndjson", i), fmt.Sprintf(`{"token_id":"%d","version":1,"record_type":"address","data":"0x%040x"}`+"\n[]\n", i, i))
		writeFile(t, dir, fmt.Sprintf("accounts-%d.ndjson", i), fmt.Sprintf("\n"+`{"address":"0x%040x"}`+"\n{}\n", i))
	}
	record := func(r *snapshot.Record) (string, error) { return strings.Clone(r.TokenID), nil }
	account := func(a *snapshot.Account) (string, error) { return a.Address.String(), nil }
	var whole, alone []string
	into := func(rows *[]string) func(snapshot.Block[string]) error {
		return func(b snapshot.Block[string]) error {
			for _, r := range b.Rows {
				*rows = append(*rows, fmt.Sprintf("%s:%d: %s", b.File, r.Line, r.Value))
			}
			for _, e := range b.Invalid {
				*rows = append(*rows, e.Error())
			}
			return nil
		}
	}
	err := errors.Join(
		snapshot.Reader[string]{Snapshot: files(dir), Workers: 2, Done: into(&whole)}.Records(t.Context(), record),
		snapshot.Reader[string]{Snapshot: files(dir), Workers: 2, Done: into(&whole)}.Accounts(t.Context(), account))
	for i := range 3 {
		err = errors.Join(err, snapshot.Reader[string]{Snapshot: files(dir), File: fmt.Sprintf("records-%d.ndjson", i), Workers: 2, Done: into(&alone)}.Records(t.Context(), record))
	}
	for i := range 3 {
		err = errors.Join(err, snapshot.Reader[string]{Snapshot: files(dir), File: fmt.Sprintf("accounts-%d.ndjson", i), Workers: 2, Done: into(&alone)}.Accounts(t.Context(), account))
	}
	if err != nil || len(whole) != 12 || !reflect.DeepEqual(alone, whole) {
		t.Errorf("got %q and the error %v, want %q", alone, err, whole)
	}
}

// TestRowErrorOfPart: the error of a row names its part, and the line in it.
func TestRowErrorOfPart(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "lists-00000.ndjson", partRows(0, 5))
	writeFile(t, dir, "lists-00001.ndjson", partRows(1, 2)+"[]\n")
	var rows []int
	var invalid []string
	err := snapshot.Reader[snapshot.List]{Snapshot: files(dir), Workers: 2, Done: func(b snapshot.Block[snapshot.List]) error {
		return b.Each(func(r snapshot.Row[snapshot.List]) error { rows = append(rows, r.Line); return nil },
			func(e *snapshot.RowError) error { invalid = append(invalid, e.Error()); return nil })
	}}.Table(t.Context(), snapshot.TableLists)
	if err != nil || fmt.Sprint(rows) != "[1 2 3 4 5 1 2]" || fmt.Sprint(invalid) != "[lists-00001.ndjson:3: not a JSON object]" {
		t.Errorf("got the lines %v, %v and the error %v", rows, invalid, err)
	}
}

// TestAmbiguousParts: a missing part, or ambiguous files, cause a single error.
func TestAmbiguousParts(t *testing.T) {
	for names, want := range map[string]string{
		"":                                      "table lists is not there: expected lists.ndjson, lists.ndjson.gz, lists.ndjson.zst or lists.parquet, or parts such as lists-00001.ndjson.zst",
		"lists.ndjson lists.parquet":            "table lists exists twice; keep one of lists.ndjson, lists.parquet",
		"lists.ndjson.gz lists-1.ndjson":        "table lists exists twice; keep one of lists.ndjson.gz, lists-1.ndjson",
		"lists-1.ndjson lists-1.parquet":        "table lists has part 1 twice; keep one of lists-1.ndjson, lists-1.parquet",
		"lists-01.ndjson lists-03.ndjson":       "table lists: part 02 is missing, between lists-01.ndjson and lists-03.ndjson",
		"lists-02.ndjson lists-03.ndjson":       "table lists begins with lists-02.ndjson: the parts before it are missing; they count from 0 or 1",
		"lists-1.ndjson lists-02.ndjson":        "table lists: the numbers of lists-02.ndjson and lists-1.ndjson differ in length; use leading zeros",
		"lists-9.ndjson lists-10.ndjson":        "table lists: the numbers of lists-10.ndjson and lists-9.ndjson differ in length; use leading zeros",
		"lists-99999999999999999999999.parquet": "table lists: the number of lists-99999999999999999999999.parquet is too large",
	} {
		dir := t.TempDir()
		for _, name := range strings.Fields(names) {
			writeFile(t, dir, name, "")
		}
		err := snapshot.CheckTable(files(dir), snapshot.TableLists)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", names, err, want)
		}
		if missing := names == ""; errors.Is(err, snapshot.ErrNoTable) != missing {
			t.Errorf("%s: got that the table is missing: %t, want %t", names, !missing, missing)
		}
	}
}

// TestPartsOfASnapshotAreReplaced: parts belong to a snapshot, so that another may replace them.
func TestPartsOfASnapshotAreReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "lists-1.parquet", "")
	writeFile(t, dir, "meta.json", "{}")
	commit(t, dir, some(1), fast)
	if got, err := lists(t, files(dir)); err != nil || got != "1" {
		t.Errorf("got list %s and %v, want 1", got, err)
	}
}
