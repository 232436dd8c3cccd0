package replay_test

import (
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

// BenchmarkReplay replays events in the real network's shape into a snapshot.
func BenchmarkReplay(b *testing.B) {
	const lists, ops = 55_000, 1_200_000
	for b.Loop() {
		start := time.Now()
		r := replay.New(deployment())
		events := 0
		for e := range usual(lists, ops) {
			if err := r.Add(e); err != nil {
				b.Fatal(err)
			}
			events++
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/add")
		w, err := snapshot.Create(filepath.Join(b.TempDir(), "snapshot"), snapshot.WriteOptions{NoSync: true})
		if err != nil {
			b.Fatal(err)
		}
		g, err := r.Write(b.Context(), w)
		if err != nil {
			b.Fatal(err)
		}
		if err := w.Commit(snapshot.Meta{AsOf: time.Unix(0, 0), ListOps: &g.ListOps}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(events), "events")
	}
}

// usual are events of minted lists: each has a slot, a user and a primary list, and the number of
// operations falls with the number of the list. One operation in twenty tags.
func usual(lists, ops int) iter.Seq[source.Event] {
	return func(yield func(source.Event) bool) {
		random := rand.New(rand.NewPCG(1, 2))
		block := uint64(0)
		send := func(e source.Event) bool {
			block++
			e.Block, e.Time = block, int64(block)*2000
			return yield(e)
		}
		for n := range lists {
			a, token := numbered(n), wordOf(n)
			at := source.Place{Contract: records, Slot: token}
			from := source.Event{Kind: source.Transfer, Contract: registry, Subject: token, Value: a[:]}
			placed := source.Event{Kind: source.Location, Contract: registry, Subject: token, Value: location(at)}
			names := source.Event{Kind: source.AccountMetadata, Contract: accounts, Key: "primary-list", Value: token[:]}
			copy(names.Subject[12:], a[:])
			if !send(from) || !send(placed) || !send(names) || !send(slotMetadata(at, "user", a[:])) {
				return
			}
		}
		for range ops {
			at := source.Place{Contract: records, Slot: wordOf(heavy(random, lists))}
			a := numbered(heavy(random, lists))
			b := append([]byte{1, add, 1, 1}, a[:]...)
			switch random.IntN(20) {
			case 0:
				b[1] = tag
				b = append(b, "top8"...)
			case 1:
				b[1] = remove
			}
			if !send(operate(at, b)) {
				return
			}
		}
	}
}

// heavy is a number below n, small ones far more often.
func heavy(random *rand.Rand, n int) int {
	f := random.Float64()
	return int(f * f * f * float64(n))
}

func numbered(n int) (a site.Address) {
	binary.BigEndian.PutUint64(a[12:], uint64(n)+1)
	a[0] = 1
	return a
}

func wordOf(n int) (w source.Word) {
	binary.BigEndian.PutUint64(w[24:], uint64(n))
	return w
}
