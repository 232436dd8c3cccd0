package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// pack writes a file, compressed by the ending of its name.
func pack(t testing.TB, name, text string) (path string) {
	t.Helper()
	var b bytes.Buffer
	w := io.WriteCloser(nil)
	switch filepath.Ext(name) {
	case ".gz":
		w = gzip.NewWriter(&b)
	case ".zst":
		encoder, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = encoder
	default:
		b.WriteString(text)
	}
	if w != nil {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCopyTable: a table from a file has the rows of the file, from and into any compression.
func TestCopyTable(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 1))
	for from, ending := range compressions {
		for to := range compressions {
			r := random(g)
			old, dir := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "snapshot")
			commit(t, old, r, snapshot.WriteOptions{Compression: from, NoSync: true})
			w := create(t, dir, snapshot.WriteOptions{Compression: to, NoSync: true})
			for _, table := range []string{"lists", "accounts", "events", "records", "badges", "recommended", "ops"} {
				file := filepath.Join(old, table+ending)
				if err := w.CopyTable(table, file); err != nil && (table != "recommended" && table != "ops" || len(r.recommended) > 0) {
					t.Fatal(err)
				}
			}
			if len(r.recommended) == 0 {
				continue
			}
			if err := w.Commit(asOf); err != nil {
				t.Fatal(err)
			}
			if got, err := read(t, dir); err != nil || !reflect.DeepEqual(got, r.asRead(t)) {
				t.Errorf("%s to %s: got other rows and the error %v", from, to, err)
			}
		}
	}
}

// TestCopyKeepsLines: rows stay as they are, including unknown members. Only blank lines and surrounding white space
// are dropped. A file without rows makes a table without rows.
func TestCopyKeepsLines(t *testing.T) {
	row := `{"note":"kept", "class":"A","address":"0xD8DA6b0000000000000000000000000000000045"}`
	for text, want := range map[string]string{"": "", "\n \n": "", row: row + "\n", "\r\n  " + row + "\r\n\n" + row: row + "\n" + row + "\n"} {
		dir := filepath.Join(t.TempDir(), "snapshot")
		w := create(t, dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
		if err := errors.Join(w.CopyTable("recommended", pack(t, "best.jsonl", text)), w.Commit(asOf)); err != nil {
			t.Fatal(err)
		}
		if got, ok := bytesOf(t, dir)["recommended.ndjson"]; !ok || got != want {
			t.Errorf("%q: got %q, %t, want %q", text, got, ok, want)
		}
	}
}

// TestCopyRefused: the error of an invalid row names file and line, and the snapshot cannot be committed.
func TestCopyRefused(t *testing.T) {
	owner := `"owner":"0xd8da6b0000000000000000000000000000000045"`
	list := func(id int) string { return fmt.Sprintf("{\"token_id\":\"%d\",%s}\n", id, owner) }
	many := strings.Builder{}
	for i := range 20_000 {
		many.WriteString(list(i))
	}
	for name, c := range map[string]struct{ table, file, text, want string }{
		"owner":      {"lists", "a.ndjson", list(1) + "\n" + `{"token_id":"2","owner":"vitalik.eth"}`, "a.ndjson:3: owner: \"vitalik.eth\" is not an address"},
		"twice":      {"lists", "a.ndjson.gz", list(1) + list(2) + list(1), "a.ndjson.gz:3: token_id: duplicate list 1"},
		"late":       {"lists", "a.zst", many.String() + list(7), "a.zst:20001: token_id: duplicate list"},
		"time":       {"records", "r", `{"token_id":"1","version":1,"record_type":"2","data":"0x","added":"today"}`, "r:1: added: \"today\" is not a time"},
		"event":      {"events", "e", `{"id":1}`, "e:1: fancy_id: missing"},
		"badge":      {"badges", "b", `{}`, "b:1: event_id"},
		"account":    {"accounts", "b", `{"address":"0x"}`, "b:1: address"},
		"class":      {"recommended", "b", `{"address":"0xd8da6b0000000000000000000000000000000045","class":1}`, "b:1: class"},
		"cut off":    {"recommended", "b.gz.zst", "", "b.gz.zst: "},
		"no table":   {"follows", "b", "", `table "follows": use one of [events lists accounts records badges recommended ops]`},
		"not packed": {"recommended", "b.gz", "{}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "snapshot")
			w := create(t, dir, fast)
			file := pack(t, c.file, c.text)
			if name == "cut off" || name == "not packed" {
				if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := w.CopyTable(c.table, file)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if name == "no table" {
				return
			}
			if err := w.Commit(asOf); err == nil {
				t.Error("Commit: got no error, want one")
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("got a snapshot, want none")
			}
		})
	}
	if err := create(t, filepath.Join(t.TempDir(), "s"), fast).CopyTable("lists", filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: got %v", err)
	}
}

// TestCopyOrWrite: a table has rows from a file or from the program, not from both.
func TestCopyOrWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	w := create(t, dir, fast)
	file := pack(t, "best.ndjson", "")
	if err := errors.Join(w.CopyTable("recommended", file), w.WriteBadge(snapshot.Badge{EventID: "1", TokenID: "1"})); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"a row after a copy": w.WriteRecommended(snapshot.Recommended{}),
		"a second copy":      w.CopyTable("recommended", file),
		"a copy after a row": w.CopyTable("badges", file),
	} {
		if err == nil {
			t.Errorf("%s: got no error, want one", what)
		}
	}
	if err := w.Commit(asOf); err != nil {
		t.Error(err)
	}
	if got, err := read(t, dir); err != nil || len(got.badges) != 1 {
		t.Errorf("got %d badges and the error %v, want 1 and none", len(got.badges), err)
	}
}

// TestTablesSideBySide: each table may have its own goroutine.
func TestTablesSideBySide(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	w := create(t, dir, fast)
	var group sync.WaitGroup
	for _, write := range []func(i int) error{
		func(i int) error { return w.WriteEvent(site.Event{ID: uint64(i)}) },
		func(i int) error { return w.WriteList(snapshot.List{TokenID: fmt.Sprint(i)}) },
		func(i int) error {
			return w.WriteAccount(snapshot.Account{Address: site.Address{byte(i), byte(i >> 8)}})
		},
		func(i int) error { return w.WriteRecord(snapshot.Record{TokenID: "1", Type: "2"}) },
		func(i int) error { return w.WriteBadge(snapshot.Badge{EventID: "1", TokenID: "2"}) },
		func(i int) error { return w.WriteRecommended(snapshot.Recommended{}) },
		func(i int) error {
			return w.WriteOp(snapshot.Op{TokenID: "1", Block: uint64(i), Op: follow(site.Address{})})
		},
	} {
		group.Go(func() {
			for i := range 2000 {
				if err := write(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := w.Commit(asOf); err != nil {
		t.Fatal(err)
	}
	r, err := read(t, dir)
	if err != nil || len(r.events)+len(r.lists)+len(r.accounts)+len(r.records)+len(r.badges)+len(r.recommended)+len(r.ops) != 7*2000 {
		t.Errorf("got other rows and the error %v", err)
	}
}

// TestAccounts: the profiles of an earlier snapshot, row by row.
func TestAccounts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	named := func(n byte) snapshot.Account {
		return snapshot.Account{Address: site.Address{n}, Primary: "1", ENS: &site.Profile{Name: fmt.Sprint(n, strings.Repeat("x", 5000))}}
	}
	var r rows
	for n := range byte(200) {
		r.accounts = append(r.accounts, named(199-n))
		if n%2 == 0 {
			r.accounts[n].ENS = nil
		}
	}
	commit(t, dir, r, fast)
	var got rows
	for a, err := range snapshot.Accounts(files(dir)) {
		if err != nil {
			t.Fatal(err)
		}
		got.accounts = append(got.accounts, a)
	}
	var want rows
	for n, a := range r.asRead(t).accounts {
		if n%2 == 1 {
			want.accounts = append(want.accounts, a)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %d accounts, want the %d with a profile", len(got.accounts), len(want.accounts))
	}
	for a, err := range snapshot.Accounts(files(dir)) {
		if err != nil || a.ENS == nil {
			t.Errorf("got %v and the error %v", a, err)
		}
		break // may end at any time
	}

	if err := os.Remove(filepath.Join(dir, "accounts.ndjson.zst")); err != nil {
		t.Fatal(err)
	}
	wantOneError(t, dir, "table accounts is not there")
	broken := "\n{\"address\":\"0xd8da6b0000000000000000000000000000000045\",\"ens\":7}\n{}"
	if err := os.WriteFile(filepath.Join(dir, "accounts.ndjson"), []byte(broken), 0o644); err != nil {
		t.Fatal(err)
	}
	wantOneError(t, dir, "accounts.ndjson:2: ens")
	wantOneError(t, t.TempDir(), "is this the folder of a snapshot?")
}

func wantOneError(t *testing.T, dir, want string) {
	t.Helper()
	var errs []error
	for _, err := range snapshot.Accounts(files(dir)) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || errs[0] == nil || !strings.Contains(errs[0].Error(), want) {
		t.Errorf("got %v, want the error %q", errs, want)
	}
}
