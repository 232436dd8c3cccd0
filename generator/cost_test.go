package generator_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/followpress/followpress/generator"
)

// repeatedRows is n rows made by row.
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

// hostileShapes are snapshots of n rows, or of a row of n parts, that are legal and
// that nobody expects.
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
	"many lists repeat a record": {4000, func(n int) snapshot {
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
	"one list repeated": {8000, func(n int) snapshot {
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

// TestMemoryFollowsSize: twice the rows cost about twice the memory, whatever is in them.
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

// TestRepeatedRecordsEqualModel: lists that repeat few records with many combinations of tags.
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
		if want := 201 - decode[struct{ Counts struct{ Records int } }](t, readTree(t, files, "/")["_site"]).Counts.Records; report.Repeated != want {
			t.Errorf("seed %d: %d repeated rows, want %d", seed, report.Repeated, want)
		}
		if err := readTree(t, files, "/").withoutIndex().compare(newModel(t, s).objects(t, small.Config)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
