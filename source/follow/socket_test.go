package follow

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/source/chain/provider"
)

// A node that announces blocks is not polled for them. Once its connection ends, it is polled
// again, and the connection is retried.
func TestBlocksByWebSocket(t *testing.T) {
	w := newWorld(t, 4)
	o := w.options(w.open(t.TempDir()))
	o.Provider = provider.Options{}
	o.Poll = 50 * time.Millisecond
	nodes := map[uint64]*meanrpc.Node{}
	for _, c := range w.h.Chains {
		nodes[c.ID] = meanrpc.Start(t, c.ID, slices.Values(w.h.Blocks))
		o.URLs[c.ID] = []string{nodes[c.ID].URL, strings.Replace(nodes[c.ID].URL, "http", "ws", 1)}
	}
	w.nodes = nodes
	for id := range nodes {
		w.set(id)
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
	id := w.h.Chains[0].ID
	subscribed := func() bool {
		for _, c := range f.Status().Chains {
			if c.Chain == id {
				return c.Subscribed
			}
		}
		return false
	}
	var files map[string]string
	until := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !done(); {
			if time.Now().After(deadline) {
				t.Fatalf("%s: nothing of that: %+v", what, f.Status())
			}
			if r, ok := next(t, f, 100*time.Millisecond); ok && r.Snapshot != nil {
				files = filesOf(t, r.Snapshot)
				w.check(what, r.Heads, files)
			}
		}
	}
	has := func() bool {
		for _, c := range f.Status().Chains {
			if c.Chain == id {
				return c.Block == w.newest[id]
			}
		}
		return false
	}
	until("the beginning", has)
	for range 3 {
		// A node tells nothing until there is a block.
		until("a subscription", func() bool {
			if !subscribed() {
				w.grow(id, 1)
			}
			return subscribed() && has()
		})
		time.Sleep(2 * o.Poll)
		nodes[id].Reset()
		w.grow(id, 1)
		until("a block that was told", has)
		if latest := nodes[id].Counts().Calls["eth_getBlockByNumber"]; latest > 4 {
			t.Errorf("got %d questions for blocks, want those about the one that was told", latest)
		}
		nodes[id].CloseSockets()
		until("the end of the connection", func() bool { return !subscribed() })
		w.grow(id, 2)
		until("blocks that were asked for", has)
	}
}

// Rounds of real nodes, including ones that report new blocks, equal the snapshots of their
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
		anvils[c.ID], o.URLs[c.ID] = n, []string{n.URL, strings.Replace(n.URL, "http", "ws", 1)}
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
		if c.Reorganisations == 0 || !c.Subscribed {
			t.Errorf("got %+v, want a reorganisation, and that the node tells of blocks", c)
		}
	}
}
