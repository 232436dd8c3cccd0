package chain

import (
	"slices"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	real "github.com/followpress/followpress/internal/testenv/nodes"
)

// TestGeth reads a history from geth, in two runs, the second one to its end.
func TestGeth(t *testing.T) {
	g := real.StartGeth(t)
	h := history.Random(1, history.Options{Chains: g.Chains})
	o := Options{URLs: map[uint64][]string{g.Chain: {g.URL}}, NoSync: true, Progress: noProgress{}, every: time.Nanosecond}
	o.Provider.MaxRange = 50
	played := &history.History{Chains: g.Chains}
	s := open(t, t.TempDir(), played)
	for blocks := range slices.Chunk(h.Blocks, (len(h.Blocks)+1)/2) {
		played = played.With(g.Play(blocks...)...)
		g.Finalize()
		r := mustSync(t, s, o)
		mustEqual(t, "the history", snapshotOf(t, s), truthOf(t, played, r))
		if last, _ := played.Last(g.Chain); r.Chains[0].To < last.Number || r.Chains[0].Check.How != CheckedByContracts {
			t.Errorf("got %+v, want blocks up to %d and equal supplies", r.Chains[0], last.Number)
		}
	}
}
