package audit_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source/audit"
	"github.com/followpress/followpress/source/chain/provider"
)

// A real node, with contracts in Solidity and Multicall3 or without, answers as the nodes of the other tests do.
func TestAnvil(t *testing.T) {
	for epoch := range uint64(2) {
		h := history.Random(3+epoch, history.Options{Chains: history.Production(), Transactions: 60})
		w := &world{History: h}
		o := audit.Options{Deployment: w.deployment(), URLs: map[uint64][]string{}, All: true}
		var in []site.ChainInput
		for _, c := range h.Chains {
			node := nodes.StartAnvil(t, h.Chains, c.ID, 2+epoch)
			node.Play(slices.Collect(h.Of(c.ID))...)
			at := node.Head()
			node.Mine(5) // blocks after that of the site
			o.URLs[c.ID] = []string{node.URL}
			chain, err := provider.Dial(t.Context(), c.ID, o.URLs[c.ID], provider.Options{Finality: provider.Latest})
			if err != nil {
				t.Fatal(err)
			}
			b, err := chain.Block(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			chain.Close()
			in = append(in, site.ChainInput{ChainID: c.ID, Block: b.Number, Hash: b.Hash.String()})
		}
		slices.SortFunc(in, func(a, b site.ChainInput) int { return cmp.Compare(a.ChainID, b.ChainID) })
		r := run(t, snapshotOf(t, h.Truth(), in), o)
		if err := r.Err(); err != nil || r.Right != len(h.Truth().Lists) || r.LeftOut > 0 || r.Compared.Operations == 0 {
			t.Errorf("epoch %d: %v\n%s", 2+epoch, err, r)
		}
		altered := clone(h.Truth())
		list, fact := alters["a record more"](&altered)
		if r := run(t, snapshotOf(t, altered, in), o); len(r.Differences) != 1 || r.Differences[0].List != list || r.Differences[0].Fact != fact {
			t.Errorf("epoch %d, a record more: %s", 2+epoch, r)
		}
	}
}
