package chain

import (
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// BenchmarkSync reads the whole network, as large as the real one, from nodes that answer after
// 50 ms, 8 requests at a time; then again, with nothing new.
func BenchmarkSync(b *testing.B) {
	o := Options{URLs: map[uint64][]string{}, Progress: noProgress{}}
	nodes := map[uint64]*meanrpc.Node{}
	for _, c := range history.Production() {
		nodes[c.ID] = meanrpc.Start(b, c.ID, history.Usual(1, history.Real()))
		nodes[c.ID].Set(meanrpc.Faults{Latency: 50 * time.Millisecond, MaxBlocks: 10_000})
		o.URLs[c.ID] = []string{nodes[c.ID].URL}
	}
	o.Provider = provider.Options{Concurrency: 8}
	for b.Loop() {
		s, err := Open(b.TempDir(), source.Production())
		if err != nil {
			b.Fatal(err)
		}
		r, err := s.Sync(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		requests, least, events := int64(0), uint64(0), uint64(0)
		for _, c := range r.Chains {
			requests += c.Cost[0].Requests
			least += (c.To-c.From)/10_000 + 1
			events += c.Stored
		}
		b.ReportMetric(r.Seconds, "s/first")
		b.ReportMetric(float64(requests)/float64(least), "requests/least")
		b.ReportMetric(float64(events), "events")
		if r, err = s.Sync(b.Context(), o); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(r.Seconds, "s/again")
		b.ReportMetric(float64(r.Chains[0].Cost[0].Requests), "requests/again")
		begun, n := time.Now(), uint64(0)
		for _, err := range s.Events() {
			if n++; err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(time.Since(begun).Seconds(), "s/read")
		if n != events {
			b.Fatalf("got %d events, want %d", n, events)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
