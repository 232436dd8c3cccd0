package audit_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

// usual returns a part of the real network, with as many operations a list.
func usual(t testing.TB, lists int) *world {
	real := history.Real()
	n := history.Network{Lists: lists, Ops: lists * real.Ops / real.Lists, Blocks: 1_000_000}
	return newWorld(t, &history.History{Chains: history.Production(), Blocks: slices.Collect(history.Usual(1, n))})
}

// mostRequests is the budget of a sample of 1,000 lists, on all chains together.
const mostRequests = 60

// A sample of 1,000 lists takes few requests, regardless of the size of the network.
func TestBudget(t *testing.T) {
	w := usual(t, 2000)
	o := w.options()
	o.All, o.Sample, o.Seed = false, 1000, 1
	r := run(t, snapshotOf(t, w.Truth(), w.inputs(w.History)), o)
	requests := int64(0)
	for _, c := range r.Chains {
		requests += c.Requests
	}
	if r.Err() != nil || r.Right != 1000 || requests > mostRequests {
		t.Errorf("%d requests, want at most %d:\n%s", requests, mostRequests, r)
	}
}

// BenchmarkAudit audits a sample of 1,000 lists, and all of them, with nodes that take 20 ms for each answer.
//
//	go test -run '^$' -bench Audit -benchtime 1x ./source/audit
func BenchmarkAudit(b *testing.B) {
	w := usual(b, 11_000)
	truth, in := w.Truth(), w.inputs(w.History)
	w.set(meanrpc.Faults{Latency: 20 * time.Millisecond})
	for name, all := range map[string]bool{"sample": false, "all": true} {
		b.Run(name, func(b *testing.B) {
			s := snapshotOf(b, truth, in)
			runtime.GC()
			for b.Loop() {
				o := w.options()
				o.All, o.Seed = all, 1
				r := run(b, s, o)
				requests := int64(0)
				for _, c := range r.Chains {
					requests += c.Requests
				}
				if err := r.Err(); err != nil {
					b.Error(err)
				}
				b.ReportMetric(float64(requests), "requests")
				b.ReportMetric(float64(r.Compared.Operations), "operations")
				b.ReportMetric(r.Seconds, "s")
			}
		})
	}
}
