package snapshot_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// benchDir returns a snapshot to read: the folder SNAPSHOT, or one of 400,000 records and accounts.
func benchDir(b *testing.B, compression string) string {
	b.Helper()
	if dir := os.Getenv("SNAPSHOT"); dir != "" {
		return dir
	}
	dir := filepath.Join(b.TempDir(), "snapshot")
	w := create(b, dir, snapshot.WriteOptions{NoSync: true, Compression: compression})
	for i, r := range benchRecords(400_000) {
		err := w.WriteRecord(r)
		if err == nil && i%4 == 0 {
			err = w.WriteAccount(benchAccount(i))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Commit(asOf); err != nil {
		b.Fatal(err)
	}
	return dir
}

func benchAccount(i int) snapshot.Account {
	a := snapshot.Account{Address: site.Address{byte(i), byte(i >> 8), byte(i >> 16)}, Primary: "12"}
	a.ENS = &site.Profile{
		Name: "quartzbeacon603.eth", Avatar: "https://img.example/b5a189f7.png", Display: "quartzbeacon603.eth", Fresh: 1728381454400,
		Records: []byte(`{"avatar":"https://img.example/93ef6d42.png","com.twitter":"ivorya027","description":"Likes \"dusk\" & <kelp>\n— from wolf","name":"Reef"}`),
		Chains:  []byte(`{"eth":"0x420a29c4234e7236be10cfa39760d52b850eb1c1"}`), Resolver: "0x231b0ee14048e9dccd1d247744d114a4eb5e8e63",
	}
	return a
}

// BenchmarkReadRecords reads records into numbers of lists and accounts, as generate does.
func BenchmarkReadRecords(b *testing.B) {
	for _, compression := range []string{"none", "gzip", "zstd"} {
		b.Run(compression, func(b *testing.B) {
			dir := benchDir(b, compression)
			b.ReportAllocs()
			rows := 0
			for b.Loop() {
				rows += readRecords(b, dir)
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func readRecords(b *testing.B, dir string) (rows int) {
	b.Helper()
	accounts := map[site.Address]uint32{}
	type record struct{ list, account uint32 }
	err := snapshot.Reader[record]{Snapshot: files(dir), Workers: 2, Untimed: true, Done: func(block snapshot.Block[record]) error {
		rows += len(block.Rows)
		return nil
	}}.Records(b.Context(), func(r *snapshot.Record) (record, error) {
		address, _ := r.Address()
		return record{uint32(len(r.TokenID)), accounts[address]}, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return rows
}

// BenchmarkReadAccounts reads accounts and encodes their profiles.
func BenchmarkReadAccounts(b *testing.B) {
	dir := benchDir(b, "zstd")
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		err := snapshot.Reader[[]byte]{Snapshot: files(dir), Workers: 2, Done: func(block snapshot.Block[[]byte]) error {
			rows += len(block.Rows)
			return nil
		}}.Accounts(b.Context(), func(a *snapshot.Account) ([]byte, error) {
			if a.ENS == nil {
				return nil, nil
			}
			ens, _ := a.ENS.Append(nil)
			return ens, nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "accounts/s")
}
