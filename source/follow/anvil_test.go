package follow

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/source/chain/provider"
)

// Rounds of real nodes equal the snapshots of their
// histories, as chains grow and after a reorganization of each.
func TestRoundsOfAnvil(t *testing.T) {
	servers.Wanted(t)
	h := history.Random(2, history.Options{Transactions: 300, Gap: 8})
	w := &world{t: t, h: h, window: time.Hour, newest: map[uint64]uint64{}, versions: map[uint64][]*history.History{}}
	o := w.options(w.open(t.TempDir()))
	o.Provider, o.Poll = provider.Options{}, 100*time.Millisecond
	anvils := map[uint64]*nodes.Anvil{}
	rest := map[uint64][]history.Block{}
	for _, c := range h.Chains {
		n := nodes.StartAnvil(t, h.Chains, c.ID, 2)
		anvils[c.ID], o.URLs[c.ID] = n, []string{n.URL}
		end, _ := h.Last(c.ID)
		n.Play(h.Upto(c.ID, (c.First+end.Number)/2).Blocks...)
		for b := range h.Of(c.ID) {
			if b.Number > n.Head() {
				rest[c.ID] = append(rest[c.ID], b)
			}
		}
	}
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(f.Close(), o.State.Close()); err != nil {
			t.Error(err)
		}
	}()
	var files map[string]string
	settle := func(what string) {
		t.Helper()
		for id, n := range anvils {
			w.newest[id] = n.Head()
		}
		there := func() bool {
			for _, c := range f.Status().Chains {
				if c.Block != w.newest[c.Chain] {
					return false
				}
			}
			return true
		}
		for deadline := time.Now().Add(time.Minute); ; {
			done := there()
			r, ok := next(t, f, time.Second)
			if ok && r.Snapshot != nil {
				files = filesOf(t, r.Snapshot)
			}
			if done && !ok {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: got %+v, want blocks %v", what, f.Status(), w.newest)
			}
		}
		of := map[uint64]*history.History{}
		for id := range anvils {
			of[id] = h
		}
		want := w.fresh(of, w.newest, files)
		want["meta.json"] = files["meta.json"] // blocks without logs have other times there
		if !maps.Equal(files, want) {
			t.Fatalf("%s: %s", what, describe(files, want))
		}
	}
	settle("half of it")
	for len(rest[1])+len(rest[10])+len(rest[8453]) > 0 {
		for id, n := range anvils {
			some := rest[id][:min(3, len(rest[id]))]
			n.Play(some...)
			rest[id] = rest[id][len(some):]
		}
		settle("more of it")
	}
	for id, n := range anvils {
		end, _ := h.Last(id)
		first := end.Number - 3
		_, instead := h.Fork(id, first, 77, history.Options{Transactions: 20})
		h = h.Upto(id, first-1).With(n.Reorg(first, instead...)...)
	}
	settle("after a reorganisation")
	for _, c := range f.Status().Chains {
		if c.Reorganisations == 0 {
			t.Errorf("got %+v, want a reorganisation", c)
		}
	}
}
