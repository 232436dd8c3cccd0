package snapshot_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// benchRecords has records such as those of the network: addresses that look random, tags on one of
// sixteen, times that grow.
func benchRecords(n int) []snapshot.Record {
	g := rand.New(rand.NewPCG(1, 2))
	records := make([]snapshot.Record, n)
	for i := range records {
		hash := sha256.Sum256([]byte(strconv.Itoa(g.IntN(80_000))))
		records[i] = snapshot.Record{TokenID: strconv.Itoa(i / 20), Version: 1, Type: "address", Data: hash[:20], Added: 1_727_000_000_000 + int64(i)*61_000}
		if i%16 == 0 {
			records[i].Tags = []string{"top8"}
		}
	}
	return records
}

// BenchmarkWrite writes a snapshot of a hundred thousand records.
func BenchmarkWrite(b *testing.B) {
	records := benchRecords(100_000)
	for _, compression := range []string{"none", "zstd"} {
		b.Run(compression, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "snapshot")
			b.ReportAllocs()
			for b.Loop() {
				w, err := snapshot.Create(dir, snapshot.WriteOptions{Compression: compression, NoSync: true})
				if err != nil {
					b.Fatal(err)
				}
				for _, r := range records {
					if err := w.WriteRecord(r); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Commit(asOf); err != nil {
					b.Fatal(err)
				}
			}
			info, err := os.Stat(filepath.Join(dir, "records"+compressions[compression]))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(records))*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(info.Size())/float64(len(records)), "bytes/record")
		})
	}
}

// BenchmarkCopyTable copies a table of lists from one compression to another.
func BenchmarkCopyTable(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "from")
	w := create(b, dir, fast)
	for i := range 100_000 {
		if err := w.WriteList(snapshot.List{TokenID: fmt.Sprint(i), Owner: site.Address{byte(i), byte(i >> 8)}}); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Commit(asOf); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		w := create(b, filepath.Join(b.TempDir(), "to"), fast)
		if err := w.CopyTable("lists", filepath.Join(dir, "lists.ndjson.zst")); err != nil {
			b.Fatal(err)
		}
		if err := w.Commit(asOf); err != nil {
			b.Fatal(err)
		}
	}
}
