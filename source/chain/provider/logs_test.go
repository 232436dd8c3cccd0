package provider

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// A range is read in as few requests as a provider allows, in order, and each block once.
func TestLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1, 200_000, 20)
		f.latency = 50 * time.Millisecond
		c := dialFakes(t, Options{}, f)
		logs, parts, err := collected(t.Context(), c, 5, 200_000)
		if err != nil {
			t.Fatal(err)
		}
		same(t, logs, f, 5, 200_000)
		if parts != 20 || f.requests != 21 {
			t.Errorf("%d parts by %d requests, want 20 by 21, with that for the chain's id", parts, f.requests)
		}
		if f.mostUnder != 8 {
			t.Errorf("%d requests at a time, want 8", f.mostUnder)
		}
		for _, l := range logs {
			if l.BlockTimestamp != 1000+2*l.BlockNumber {
				t.Fatalf("block %d is of %d", l.BlockNumber, l.BlockTimestamp)
			}
		}
	})
}

// Whatever the limits of a provider are, and wherever logs are dense, all logs come, with few
// requests that fail.
func TestLimits(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			f := newFake(seed, 30_000+r.Uint64N(30_000), 2)
			f.latency = time.Duration(r.IntN(50)) * time.Millisecond
			if r.IntN(2) == 0 {
				f.most = 1 + r.Uint64N(3000)
			}
			if r.IntN(2) == 0 { // a dense stretch
				at := r.Uint64N(f.head - 1000)
				f.logs = append(f.logs, randomLogs(r, at, at+1000, 2900)...)
				sortLogs(f.logs)
				f.mostLogs = 3 + r.IntN(1000)
			}
			f.single = r.IntN(3) == 0
			c := dialFakes(t, Options{Concurrency: 1 + r.IntN(10), MaxRange: 1 + r.Uint64N(40_000), Spread: r.IntN(2) == 0}, f)
			logs, parts, err := collected(t.Context(), c, 1, f.head)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			same(t, logs, f, 1, f.head)
			cost := c.Cost()[0]
			if int(cost.Halved) > 40+parts {
				t.Errorf("seed %d: %d parts, and %d requests that were too large", seed, parts, cost.Halved)
			}
		})
	}
}
