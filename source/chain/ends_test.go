package chain

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/source/chain/provider"
)

// TestEnds: a chain ends at the block in the options, with the same events for any earlier state.
func TestEnds(t *testing.T) {
	for seed := range uint64(servers.Rounds(8, 60)) {
		random := rand.New(rand.NewPCG(seed, 26))
		h := history.Random(seed, history.Options{Transactions: 150})
		all := newWorlds(h)
		for _, w := range all {
			w.step = 1 + random.Uint64N(20)
		}
		s := open(t, t.TempDir(), h)
		for range 5 {
			o, want := all.options(), h
			o.Ends = map[uint64]provider.Block{}
			for _, c := range h.Chains {
				last, _ := h.Last(c.ID)
				end := c.First + random.Uint64N(max(c.First, last.Number)-c.First+1)
				o.Ends[c.ID] = provider.Block{Number: end, Hash: all[c.ID].block(end).Hash}
				want = want.Upto(c.ID, end)
			}
			if random.IntN(3) == 0 { // as a run for snapshots would
				mustSync(t, s, all.options())
			}
			r := mustSync(t, s, o)
			mustEqual(t, "tables", snapshotOf(t, s), linesOf(t, want))
			for _, c := range r.Chains {
				if end := o.Ends[c.Chain]; c.To != end.Number {
					t.Fatalf("seed %d, chain %d: got block %d, want %d", seed, c.Chain, c.To, end.Number)
				}
			}
		}
	}
}

// TestEndsThatAreNot: a block with another hash and a block unknown to nodes are errors, and the
// state stays as it was. A block before the contracts is not an error.
func TestEndsThatAreNot(t *testing.T) {
	h := history.Random(3, history.Options{Transactions: 60})
	all := newWorlds(h)
	c := h.Chains[0]
	s := open(t, t.TempDir(), h)
	at := func(end provider.Block) error {
		o := all.options()
		o.Ends = map[uint64]provider.Block{c.ID: end}
		_, err := s.Sync(t.Context(), o)
		return err
	}
	had := mustSync(t, s, all.options())
	other := common.Hash(binary.BigEndian.AppendUint64(make([]byte, 24), 7))
	if err := at(provider.Block{Number: c.First + 2, Hash: other}); !errors.Is(err, ErrOtherBlock) || !Lasts(err) || !strings.Contains(err.Error(), other.String()) {
		t.Errorf("another hash: got %v", err)
	}
	if err := at(provider.Block{Number: all[c.ID].head + 1}); !errors.Is(err, provider.ErrBehind) || !strings.Contains(err.Error(), "wait") {
		t.Errorf("a later block: got %v", err)
	}
	if err := at(provider.Block{Number: c.First - 1, Hash: other}); err != nil {
		t.Errorf("before the contracts: got %v", err)
	}
	if asOf, err := s.AsOf(); err != nil || asOf.Before(time.Unix(0, 0)) {
		t.Errorf("got %v and %v", asOf, err)
	}
	if again := mustSync(t, s, all.options()); again.Chains[0].Stored != had.Chains[0].Stored {
		t.Errorf("got %d events, want the %d that were there", again.Chains[0].Stored, had.Chains[0].Stored)
	}
}
