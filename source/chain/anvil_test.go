package chain

import (
	"fmt"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	real "github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// Histories that real nodes play make the snapshots that they should: as they grow, and after a
// reorganisation.
func TestHistoriesOnAnvil(t *testing.T) {
	servers.Wanted(t)
	for seed := range uint64(servers.Rounds(1, 12)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { onAnvil(t, seed) })
	}
}

func onAnvil(t *testing.T, seed uint64) {
	h := history.Random(seed, history.Options{Transactions: 300, Gap: 8})
	o := Options{URLs: map[uint64][]string{}, NoSync: true, Progress: noProgress{}, every: time.Nanosecond}
	o.Provider.MaxRange, o.Provider.Finality = 7, finalities[seed%3]
	anvils, ends := map[uint64]*real.Anvil{}, map[uint64]uint64{}
	for _, c := range h.Chains {
		n := real.StartAnvil(t, h.Chains, c.ID, 1+c.ID%2)
		anvils[c.ID], o.URLs[c.ID] = n, []string{n.URL}
		end, _ := h.Last(c.ID)
		if ends[c.ID] = end.Number; end.Number < c.First+17 {
			t.Fatalf("chain %d has too few blocks", c.ID)
		}
		n.Play(h.Upto(c.ID, (c.First+end.Number)/2).Blocks...)
	}
	s := open(t, t.TempDir(), h)
	mustBeRight := func(what string) *Report {
		t.Helper()
		r := mustSync(t, s, o)
		mustEqual(t, what, snapshotOf(t, s), truthOf(t, h, r))
		for _, c := range r.Chains {
			if c.Check == nil || c.Check.How != CheckedByContracts || c.Check.Refused > 0 || len(c.Repairs) > 0 {
				t.Errorf("%s: got %+v and repairs %v, want that contracts answered all", what, c.Check, c.Repairs)
			}
		}
		return r
	}
	mustBeRight("half of it")

	for id, n := range anvils {
		head := n.Head()
		var rest []history.Block
		for b := range h.Of(id) {
			if b.Number > head {
				rest = append(rest, b)
			}
		}
		n.Play(rest...)
		n.Finalize()
	}
	for _, c := range mustBeRight("all of it").Chains {
		if c.To < ends[c.Chain] || c.From > ends[c.Chain] || c.Undone != nil {
			t.Errorf("got %+v, want blocks up to %d", c, ends[c.Chain])
		}
	}

	for id, n := range anvils {
		first := ends[id] - 8
		_, instead := h.Fork(id, first, seed+1000, history.Options{Transactions: 20})
		h = h.Upto(id, first-1).With(n.Reorg(first, instead...)...)
		n.Finalize()
	}
	for _, c := range mustBeRight("after a reorganisation").Chains {
		if c.Undone == nil {
			t.Errorf("chain %d: nothing was undone", c.Chain)
		}
	}
}
