package replay_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source/replay"
)

// BenchmarkReplay replays a history of the real network's size and shape into a snapshot. Making
// its blocks is not measured, nor is decoding them.
func BenchmarkReplay(b *testing.B) {
	d := deploymentOf(&history.History{Chains: history.Production()})
	var adding, writing time.Duration
	runs, events := 0, 0
	for b.Loop() {
		runs++
		r := replay.New(d)
		for e := range eventsOf(d, history.Usual(1, history.Real())) {
			start := time.Now()
			if err := r.Add(e); err != nil {
				b.Fatal(err)
			}
			adding += time.Since(start)
			events++
		}
		start := time.Now()
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
		writing += time.Since(start)
	}
	b.ReportMetric(float64(events)/float64(runs), "events")
	b.ReportMetric(adding.Seconds()/float64(runs), "s/add")
	b.ReportMetric(writing.Seconds()/float64(runs), "s/write")
	b.ReportMetric((adding+writing).Seconds()/float64(runs), "s/replay")
	b.ReportMetric(0, "ns/op") // most of that is the history's
}
