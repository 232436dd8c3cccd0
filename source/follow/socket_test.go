package follow

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/meanrpc"
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
