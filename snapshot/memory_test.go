package snapshot_test

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/snapshot/memory"
)

var memoryTime = time.Unix(1_700_000_000, 0)

// TestMemory: a snapshot in memory has the files that a Writer makes of the same rows, however they
// are read.
func TestMemory(t *testing.T) {
	lists := []snapshot.List{{TokenID: "0", Owner: site.Address{1}}, {TokenID: "7", Owner: site.Address{2}, User: &site.Address{3}}}
	records := []snapshot.Record{
		{Version: 1, Type: "address", Data: make([]byte, 20), Tags: []string{"\"", "é"}, Added: 1000},
		{Version: 2, Type: "9", Data: []byte{1}, Added: snapshot.NoTime},
	}
	dir := filepath.Join(t.TempDir(), "snapshot")
	w, err := snapshot.Create(dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	tables := map[snapshot.Table][]memory.Piece{}
	rows, err := memory.ListRows(lists)
	if err != nil {
		t.Fatal(err)
	}
	tables[snapshot.TableLists] = []memory.Piece{rows.Piece()}
	if rows, err = memory.RecordRows(records); err != nil {
		t.Fatal(err)
	}
	for _, l := range lists {
		if err := w.WriteList(l); err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			r.TokenID = l.TokenID
			if err := w.WriteRecord(r); err != nil {
				t.Fatal(err)
			}
		}
		p, err := rows.Of(l.TokenID)
		if err != nil {
			t.Fatal(err)
		}
		tables[snapshot.TableRecords] = append(tables[snapshot.TableRecords], p, memory.Piece{})
	}
	ops := uint64(9)
	meta := snapshot.Meta{AsOf: memoryTime, ListOps: &ops, Chains: []site.ChainInput{{ChainID: 1, Hash: "0x"}}, Badges: &site.ServiceInput{}}
	if err := w.Commit(meta); err != nil {
		t.Fatal(err)
	}
	files, err := snapshot.NewMemory(meta, tables)
	if err != nil {
		t.Fatal(err)
	}
	written := afero.NewBasePathFs(afero.NewOsFs(), dir)
	want, err := afero.ReadDir(written, ".")
	if err != nil {
		t.Fatal(err)
	}
	if got := files.(interface{ Names() []string }).Names(); len(got) != len(want) {
		t.Fatalf("got %v, want the files %v", got, want)
	}
	contents := map[string][]byte{}
	for _, info := range want {
		if contents[info.Name()], err = afero.ReadFile(written, info.Name()); err != nil {
			t.Fatal(err)
		}
		file, err := files.Open(info.Name())
		if err != nil {
			t.Fatal(err)
		}
		// Files cannot be read at an offset, so the other methods of afero's are hidden.
		if err := iotest.TestReader(struct{ io.Reader }{file}, contents[info.Name()]); err != nil {
			t.Errorf("%s: %v", info.Name(), err)
		}
		if size, err := snapshot.TableBytes(files, snapshot.TableRecords); err != nil || size != int64(len(contents["records.ndjson"])) && len(contents["records.ndjson"]) > 0 {
			t.Errorf("got %d bytes, %v", size, err)
		}
	}
	if _, err := files.Open("recommended.ndjson"); !strings.Contains(fmt.Sprint(err), fs.ErrNotExist.Error()) {
		t.Errorf("a table that is not there: got %v", err)
	}
	if err := afero.WriteFile(files, "lists.ndjson", nil, 0o644); err == nil {
		t.Error("the files can be written to")
	}
}

// TestWithPrimary: rows of profiles and primary lists together are those of WriteAccount.
func TestWithPrimary(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 3))
		profiles, all := snapshot.InMemory(), snapshot.InMemory()
		var naming [256][]snapshot.Account
		var addresses []site.Address
		for range random.IntN(60) {
			addresses = append(addresses, site.Address{byte(random.IntN(3)), byte(random.IntN(200))})
		}
		slices.SortFunc(addresses, site.Address.Compare)
		for _, address := range slices.Compact(addresses) {
			account := snapshot.Account{Address: address}
			if random.IntN(2) == 0 {
				account.ENS = &site.Profile{Name: fmt.Sprintf("x%d.eth", random.IntN(9)), Display: "{\"address\":\"\n", Avatar: "é"}
				if err := profiles.WriteAccount(account); err != nil {
					t.Fatal(err)
				}
			}
			if account.ENS == nil || random.IntN(2) == 0 {
				account.Primary = fmt.Sprint(random.IntN(1000))
				naming[address[0]] = append(naming[address[0]], snapshot.Account{Address: address, Primary: account.Primary})
			}
			if err := all.WriteAccount(account); err != nil {
				t.Fatal(err)
			}
		}
		rowsOf := func(w *snapshot.Writer) memory.Rows {
			rows, _, err := w.Rows(snapshot.TableAccounts)
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		parts, err := rowsOf(profiles).ByAddress()
		if err != nil {
			t.Fatal(err)
		}
		var pieces []memory.Piece
		for i, part := range parts {
			rows, err := part.WithPrimary(naming[i])
			if err != nil {
				t.Fatal(err)
			}
			pieces = append(pieces, rows.Piece())
		}
		text := func(pieces ...memory.Piece) string {
			files, err := snapshot.NewMemory(snapshot.Meta{AsOf: memoryTime}, map[snapshot.Table][]memory.Piece{snapshot.TableAccounts: pieces})
			if err != nil {
				t.Fatal(err)
			}
			b, err := afero.ReadFile(files, "accounts.ndjson")
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		if got, want := text(pieces...), text(rowsOf(all).Piece()); got != want {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, want)
		}
	}
}

// TestAddresses: the accounts that only one of two lists contains are found, at any position.
func TestAddresses(t *testing.T) {
	rows := func(of ...byte) memory.Rows {
		var records []snapshot.Record
		for _, b := range of {
			data := make([]byte, 20)
			data[0] = b
			records = append(records, snapshot.Record{Version: 1, Type: "address", Data: data, Tags: []string{`","data":"0x`}, Added: 1})
		}
		r, err := memory.RecordRows(records)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, test := range []struct{ one, other, want []byte }{
		{nil, nil, nil},
		{[]byte{1, 2, 3}, []byte{1, 2, 3}, nil},
		{[]byte{1, 2, 3}, nil, []byte{1, 2, 3}},
		{[]byte{1, 2, 3}, []byte{1, 3}, []byte{2}},
		{[]byte{1, 2, 3}, []byte{1, 2, 3, 4}, []byte{4}},
		{[]byte{1, 2, 3}, []byte{2, 3, 1}, nil}, // an order is not a difference about an account
		{[]byte{5, 2, 6}, []byte{7, 2, 8}, []byte{5, 6, 7, 8}},
		{[]byte{1, 1}, []byte{1}, []byte{1}},
	} {
		var got []byte
		for _, a := range memory.Addresses(rows(test.one...), rows(test.other...)) {
			got = append(got, a[0])
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v and %v: got %v, want %v", test.one, test.other, got, test.want)
		}
	}
	if other, err := memory.RecordRows([]snapshot.Record{{Version: 1, Type: "2", Data: make([]byte, 20), Added: 1}}); err != nil || len(memory.Addresses(other, memory.Rows{})) > 0 {
		t.Errorf("a record of another type: got %v, %v, want no address", memory.Addresses(other, memory.Rows{}), err)
	}
}
