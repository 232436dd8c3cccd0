package generator_test

import (
	"fmt"
	"hash"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
)

// repeatedRows returns n rows made by row.
func repeatedRows(n int, row func(i int) string) []string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = row(i)
	}
	return rows
}

func recordRow(token, data, tags string) string {
	return fmt.Sprintf(`{"token_id":%q,"version":1,"record_type":"address","data":%q,"tags":[%s]}`, token, data, tags)
}

// hostileShapes are legal but unusual snapshots of n rows, or with a row of n parts.
var hostileShapes = map[string]struct {
	n    int
	make func(n int) snapshot
}{
	"one record repeated with distinct tags": {4000, func(n int) snapshot {
		return beforeRefreshes().adding("records", repeatedRows(n, func(i int) string { return recordRow("1", bob, fmt.Sprintf(`"tag %d"`, i)) })...)
	}},
	"a record with many tags repeated with one more": {4000, func(n int) snapshot {
		many := strings.Join(repeatedRows(n, func(i int) string { return fmt.Sprintf(`"tag %d"`, i) }), ",")
		return beforeRefreshes().adding("records", recordRow("1", carol, many)).
			adding("records", repeatedRows(n, func(i int) string { return recordRow("1", carol, fmt.Sprintf(`"more %d"`, i)) })...)
	}},
	"records with distinct tags": {4000, func(n int) snapshot {
		return beforeRefreshes().adding("records", repeatedRows(n, func(i int) string {
			return recordRow("1", fmt.Sprintf("0x%040x", i+1), fmt.Sprintf(`"tag %d"`, i))
		})...)
	}},
	"many lists repeat a record": {16_000, func(n int) snapshot {
		return beforeRefreshes().adding("records", repeatedRows(n, func(i int) string {
			return recordRow(itoa(1+i%3), bob, fmt.Sprintf(`"tag %d"`, i%(n/2)))
		})...)
	}},
	"a row with many tags": {100_000, func(n int) snapshot {
		return beforeRefreshes().adding("records", recordRow("1", carol, strings.Join(repeatedRows(n, func(i int) string { return fmt.Sprintf(`"%d"`, i) }), ",")))
	}},
	"records of distinct types": {8000, func(n int) snapshot {
		return beforeRefreshes().adding("records", repeatedRows(n, func(i int) string {
			return fmt.Sprintf(`{"token_id":"1","version":1,"record_type":"type %d","data":"0x"}`, i)
		})...)
	}},
	"one account repeated": {8000, func(n int) snapshot {
		return beforeRefreshes().adding("accounts", repeatedRows(n, func(int) string { return `{"address":"` + carol + `","ens":{"name":"carol.eth"}}` })...)
	}},
	"accounts of one name": {8000, func(n int) snapshot {
		return beforeRefreshes().adding("accounts", repeatedRows(n, func(i int) string {
			return fmt.Sprintf(`{"address":"0x%040x","ens":{"name":"carol.eth"}}`, i+1)
		})...)
	}},
	"one list repeated": {32_000, func(n int) snapshot {
		return beforeRefreshes().adding("lists", repeatedRows(n, func(int) string { return `{"token_id":"4","owner":"` + carol + `"}` })...)
	}},
	"one event repeated": {8000, func(n int) snapshot {
		return beforeRefreshes().adding("events", repeatedRows(n, func(int) string { return eventRow(3) })...)
	}},
	"one badge repeated": {16_000, func(n int) snapshot {
		return beforeRefreshes().adding("badges", repeatedRows(n, func(i int) string {
			return fmt.Sprintf(`{"event_id":"1","token_id":"%d","owner":"%s"}`, n-i, bob)
		})...)
	}},
	"one long line": {4 << 20, func(n int) snapshot {
		return beforeRefreshes().adding("accounts", `{"address":"`+carol+`","unknown":"`+strings.Repeat("x", n)+`"}`)
	}},
}

// TestMemoryFollowsSize: twice the rows take about twice the memory, whatever they contain.
func TestMemoryFollowsSize(t *testing.T) {
	o := small
	o.SkipInvalid, o.Workers = true, 1
	allocated := func(s snapshot) float64 {
		var before, after runtime.MemStats
		files := s.fs()
		runtime.ReadMemStats(&before)
		if _, _, err := generator.ToMemory(t.Context(), files, o); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	constant := allocated(beforeRefreshes())
	for name, shape := range hostileShapes {
		t.Run(name, func(t *testing.T) {
			once, twice := allocated(shape.make(shape.n))-constant, allocated(shape.make(2*shape.n))-constant
			t.Logf("%.1f and %.1f MB", once/1e6, twice/1e6)
			if ratio := twice / once; ratio > 2.7 {
				t.Errorf("%.1f MB for %d, and %.1f times that for twice as many: got more than in proportion", once/1e6, shape.n, ratio)
			}
		})
	}
}

// TestRepeatedRecordsEqualModel uses lists that repeat few records with many combinations of tags.
func TestRepeatedRecordsEqualModel(t *testing.T) {
	t.Parallel()
	tags := append(repeatedRows(30, func(i int) string { return fmt.Sprintf(`"tag %d"`, i) }), `""`, `"block"`, `"mute"`, `"top8"`, `"\u0074op8"`, `"é,\""`)
	data := []string{alice, bob, carol, strings.ToUpper(carol[2:])}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 10))
		s := beforeRefreshes().adding("records", repeatedRows(200, func(int) string {
			some := repeatedRows(r.IntN(4), func(int) string { return tags[r.IntN(len(tags))] })
			to := "0x" + strings.TrimPrefix(data[r.IntN(len(data))], "0x")
			return recordRow(itoa(1+r.IntN(3)), to, strings.Join(some, ","))
		})...)
		files, report, err := generator.ToMemory(t.Context(), s.fs(), small)
		if err != nil {
			t.Fatal(err)
		}
		if want := 201 - decode[struct{ Counts struct{ Records int } }](t, readTree(t, files)["_site"]).Counts.Records; report.Repeated != want {
			t.Errorf("seed %d: got %d repeated rows, want %d", seed, report.Repeated, want)
		}
		if err := readTree(t, files).WithoutIndex().Compare(newReference(t, s, small.Config).specObjects()); err != nil {
			t.Errorf("seed %d: got another site than the reference, want the same: %v", seed, err)
		}
	}
}

// TestFormsThatMergingMakes: a byte may be enough for the combinations of type and tags in a
// snapshot, but not after repeated records were merged.
func TestFormsThatMergingMakes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{100, 250, 400} {
		once := repeatedRows(n, func(i int) string {
			return recordRow(itoa(1+i%3), fmt.Sprintf("0x%040x", i+1), fmt.Sprintf(`"tag %d"`, i))
		})
		again := repeatedRows(n, func(i int) string {
			return recordRow(itoa(1+i%3), fmt.Sprintf("0x%040x", i+1), fmt.Sprintf(`"tag %d"`, (i+1)%n))
		})
		s := beforeRefreshes().adding("records", append(once, again...)...)
		if err := inMemory(t, s, small).WithoutIndex().Compare(newReference(t, s, small.Config).specObjects()); err != nil {
			t.Errorf("%d tags: got another site than the reference, want the same: %v", n, err)
		}
	}
}

// longAvatars returns a snapshot of lists that all follow the same accounts, each with an avatar of
// size bytes.
func longAvatars(lists, accounts, size int) snapshot {
	s := emptySnapshot().adding("accounts", repeatedRows(accounts, func(i int) string {
		return fmt.Sprintf(`{"address":"0x%040x","ens":{"avatar":"data:,%s"}}`, i+1, strings.Repeat("x", size-6))
	})...)
	s = s.adding("accounts", repeatedRows(lists, func(i int) string { return fmt.Sprintf(`{"address":"0xa%039x","primary_list":"%d"}`, i, i) })...)
	s = s.adding("lists", repeatedRows(lists, func(i int) string { return fmt.Sprintf(`{"token_id":"%d","owner":"0xa%039x"}`, i, i) })...)
	return s.adding("records", repeatedRows(lists*accounts, func(i int) string {
		return recordRow(itoa(i/accounts), fmt.Sprintf("0x%040x", i%accounts+1), "")
	})...)
}

// A heapWatcher measures the heap at each write, without garbage: the amount of garbage depends on
// the machine's load.
type heapWatcher struct {
	sum     hash.Hash32 // checksum of the written bytes
	written int64
	peak    uint64 // bytes in use
}

func (w *heapWatcher) Write(b []byte) (int, error) {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc > w.peak {
		runtime.GC()
		runtime.ReadMemStats(&m)
		w.peak = max(w.peak, m.HeapAlloc)
	}
	w.written += int64(len(b))
	return w.sum.Write(b)
}

// writeTar renders into a tar file and returns the growth of the heap in MiB.
func writeTar(t *testing.T, g generator.Graph, workers int) (w *heapWatcher, peak uint64) {
	t.Helper()
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w = &heapWatcher{sum: crc32.NewIEEE()}
	if err := g.WriteTar(t.Context(), workers, w); err != nil {
		t.Fatal(err)
	}
	return w, (w.peak - before.HeapAlloc) >> 20
}

// TestRenderingHasABound: rendered objects that wait to be written take at most 8 MiB per worker,
// in buffers of up to three times that while they grow, plus the largest object, however large
// neighboring lists are. The limits leave as much again, since workers go on while the watcher
// measures; without a bound more than half of the site may be in memory.
func TestRenderingHasABound(t *testing.T) {
	for name, test := range map[string]struct {
		snapshot snapshot
		workers  int
		most     uint64 // MiB
	}{
		"pages of 600 KiB":           {longAvatars(130, 12, 60<<10), 2, 112},
		"shards of 8 MiB, 4 workers": {longAvatars(60, 130, 60<<10), 4, 112},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := generator.Load(t.Context(), test.snapshot.fs(), 2)
			if err != nil {
				t.Fatal(err)
			}
			w, peak := writeTar(t, g, test.workers)
			t.Logf("%d MiB on the heap for %d MiB", peak, w.written>>20)
			if peak > test.most {
				t.Errorf("heap for rendering %d MiB: got %d MiB more, want at most %d", w.written>>20, peak, test.most)
			}
			if w.written>>20 < 2*int64(test.most) {
				t.Errorf("size of the site: got %d MiB, want more", w.written>>20)
			}
		})
	}
}

// TestPiecesKeepTheOrder: chunks written in pieces give the same file whatever worker renders them.
func TestPiecesKeepTheOrder(t *testing.T) {
	g, err := generator.Load(t.Context(), longAvatars(200, 12, 20<<10).fs(), 2)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := writeTar(t, g, 1)
	for _, workers := range []int{2, 5} {
		if got, _ := writeTar(t, g, workers); got.sum.Sum32() != want.sum.Sum32() || got.written != want.written {
			t.Errorf("%d workers: got %d bytes (%08x), want %d (%08x) as of one", workers, got.written, got.sum.Sum32(), want.written, want.sum.Sum32())
		}
	}
}

// BenchmarkToMemory makes a whole site in memory.
func BenchmarkToMemory(b *testing.B) {
	files := syntheticSnapshot(b, graph.Options{Accounts: 15_000, Lists: 12_000, Records: 100_000, Seed: 1}).fs()
	for b.Loop() {
		_, report, err := generator.ToMemory(b.Context(), files, generator.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(report.Counts.Bytes)
		b.ReportMetric(float64(report.Counts.Objects), "objects/op")
	}
}
