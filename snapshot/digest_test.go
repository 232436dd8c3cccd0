package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/odd"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// tableDigest returns the digest of a table.
func tableDigest(t testing.TB, snap afero.Fs, table snapshot.Table, untimed bool) (site.SHA256, error) {
	var d snapshot.Digest
	err := d.AddTable(t.Context(), snap, table, untimed)
	return d.Sum(), err
}

// naiveDigest returns the digest of lines as a Writer writes them.
func naiveDigest(lines string) site.SHA256 {
	var sums []byte
	for line := range strings.Lines(lines) {
		sum := sha256.Sum256([]byte(strings.TrimSuffix(line, "\n")))
		sums = append(sums, sum[:]...)
	}
	return sha256.Sum256(sums)
}

// digests returns the digests of all tables of a snapshot.
func digests(t testing.TB, snap afero.Fs) map[snapshot.Table]site.SHA256 {
	t.Helper()
	all := map[snapshot.Table]site.SHA256{}
	for _, table := range []snapshot.Table{
		snapshot.TableEvents, snapshot.TableLists, snapshot.TableAccounts, snapshot.TableRecords, snapshot.TableBadges, snapshot.TableRecommended, snapshot.TableOps,
	} {
		sum, err := tableDigest(t, snap, table, false)
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		all[table] = sum
	}
	return all
}

// TestDigest: the digest of a table depends only on its canonical rows, not on the order of members, escapes, white
// space, compression, number of files or format.
func TestDigest(t *testing.T) {
	for seed := range uint64(servers.Rounds(4, 12)) {
		texts := odd.Snapshot(seed, odd.Shape{
			Accounts: 40, Lists: 30, Records: 3000, Events: 5, Badges: 40, Hostile: seed%2 == 0, Timed: true, Recommended: 9,
		})
		texts["ops.ndjson"] = oddOps(seed)
		whole, cut := t.TempDir(), t.TempDir()
		for name, text := range texts {
			writeFile(t, whole, name, text)
		}
		for name, text := range odd.Cut(seed, texts) {
			writeFile(t, cut, name, text)
		}
		rows, err := read(t, whole)
		if err != nil {
			t.Fatal(err)
		}
		written, columns := filepath.Join(t.TempDir(), "written"), t.TempDir()
		commit(t, written, rows, snapshot.WriteOptions{Compression: "none", NoSync: true})
		asParquet(t, columns, rows, 500)
		want := map[snapshot.Table]site.SHA256{}
		for table := range digests(t, files(written)) {
			lines, err := os.ReadFile(filepath.Join(written, string(table)+".ndjson"))
			if err != nil {
				t.Fatal(err)
			}
			want[table] = naiveDigest(string(lines))
		}
		for what, dir := range map[string]string{"as it is": whole, "in other files": cut, "written": written, "as Parquet": columns} {
			for table, got := range digests(t, files(dir)) {
				if got != want[table] {
					t.Errorf("seed %d: %s %s: got %s, want %s", seed, table, what, got, want[table])
				}
			}
		}
		for i := range rows.records {
			rows.records[i].Added = snapshot.NoTime
		}
		untimed := filepath.Join(t.TempDir(), "untimed")
		commit(t, untimed, rows, fast)
		got, err := tableDigest(t, files(whole), snapshot.TableRecords, true)
		if want := digests(t, files(untimed))[snapshot.TableRecords]; err != nil || got != want {
			t.Errorf("seed %d: records without times: got %s and the error %v, want %s", seed, got, err, want)
		}
	}
}

// oddOps are rows of ops, with members in some order.
func oddOps(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 3))
	var b strings.Builder
	for i := range 50 {
		members := []string{
			fmt.Sprintf(`"token_id":"%d"`, r.IntN(9)), fmt.Sprintf(`"time":"2026-01-31T%02d:00:00.%d+01:00"`, i/3, i%3*4), `"chain_id": 10`,
			fmt.Sprintf(`"block":%d`, i), `"log_index":0`, fmt.Sprintf(`"op":"0x01010101%040X"`, i),
		}
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		b.WriteString("{" + strings.Join(members, " ,") + "}\n")
	}
	return b.String()
}

// TestDigestDiffers: changed, reordered, added, removed, and concatenated rows change the digest.
func TestDigestDiffers(t *testing.T) {
	seen := map[site.SHA256]string{}
	for _, rows := range [][]string{{}, {""}, {"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"ab"}, {"a", "b", ""}, {"a\nb"}} {
		var d snapshot.Digest
		for _, row := range rows {
			d.Add([]byte(row))
		}
		if other, ok := seen[d.Sum()]; ok {
			t.Errorf("%q has the digest of %s", rows, other)
		}
		seen[d.Sum()] = fmt.Sprintf("%q", rows)
		if got, want := d.Sum(), d.Sum(); got != want {
			t.Errorf("%q: got %s, and then %s", rows, got, want)
		}
	}
}

// TestDigestOfTakenRows: rows that are invalid or rejected by the caller do not count.
func TestDigestOfTakenRows(t *testing.T) {
	dir, good := t.TempDir(), t.TempDir()
	list := func(n int) string { return fmt.Sprintf(`{"token_id":"%d","owner":"0x%040x"}`+"\n", n, n) }
	op := func(n int) string {
		return fmt.Sprintf(`{"token_id":"1","time":"2026-01-31T00:00:00Z","chain_id":1,"block":%d,"log_index":0,"op":"0x01010101%040x"}`+"\n", n, n)
	}
	var all, some, allOps, someOps bytes.Buffer
	for i := range 20_000 {
		all.WriteString(list(i))
		allOps.WriteString(op(i))
		switch i % 7 {
		case 3:
			all.WriteString("{}\n[]\n")
			allOps.WriteString("{}\n" + op(i-1)) // out of order
		case 4, 5:
			continue
		}
		some.WriteString(list(i))
		someOps.WriteString(op(i))
	}
	writeFile(t, dir, "lists.ndjson", all.String())
	writeFile(t, dir, "ops.ndjson", allOps.String())
	writeFile(t, good, "lists.ndjson", some.String())
	writeFile(t, good, "ops.ndjson", someOps.String())
	refused := errors.New("refused")
	var lists, ops snapshot.Digest
	none := func(*snapshot.RowError) error { return nil }
	err := errors.Join(
		snapshot.Reader[snapshot.List]{Snapshot: files(dir), Digest: &lists, Done: func(b snapshot.Block[snapshot.List]) error {
			return b.Each(func(r snapshot.Row[snapshot.List]) error {
				if n := r.Value.Owner[18:]; (int(n[0])<<8|int(n[1]))%7 == 4 || (int(n[0])<<8|int(n[1]))%7 == 5 {
					return refused
				}
				return nil
			}, none)
		}}.Table(t.Context(), snapshot.TableLists),
		snapshot.Reader[uint64]{Snapshot: files(dir), Digest: &ops, Done: func(b snapshot.Block[uint64]) error {
			return b.Each(func(r snapshot.Row[uint64]) error {
				if r.Value%7 == 5 {
					return refused
				}
				return nil
			}, none)
		}}.Ops(t.Context(), func(o *snapshot.Op) (uint64, error) {
			if o.Block%7 == 4 {
				return 0, refused
			}
			return o.Block, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	for table, got := range map[snapshot.Table]site.SHA256{snapshot.TableLists: lists.Sum(), snapshot.TableOps: ops.Sum()} {
		want, err := tableDigest(t, files(good), table, false)
		if err != nil || got != want {
			t.Errorf("%s: got %s, want %s, and no error: %v", table, got, want, err)
		}
		var invalid *snapshot.RowError
		if _, err := tableDigest(t, files(dir), table, false); !errors.As(err, &invalid) {
			t.Errorf("%s with invalid rows: got %v, want the first of them", table, err)
		}
	}
	if _, err := tableDigest(t, files(dir), snapshot.TableBadges, false); !errors.Is(err, snapshot.ErrNoTable) {
		t.Errorf("a table that is missing: got %v", err)
	}
}
