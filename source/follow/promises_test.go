package follow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/chain/provider"
	"github.com/followpress/followpress/source/profile"
)

// run follows a world on virtual time.
func run(t *testing.T, seed uint64, change func(*world, *Options), test func(*world, *Follower)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		o := w.options(w.open(dir))
		if change != nil {
			change(w, &o)
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
		test(w, f)
	})
}

// settle takes all rounds, and checks the last one, or every round if checked.
func (w *world) settle(f *Follower, checked bool) (files map[string]string) {
	w.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); {
		if r, ok := next(w.t, f, 10*time.Second); ok {
			if r.Snapshot != nil {
				files = filesOf(w.t, r.Snapshot)
				if checked {
					w.check("a round", r.Heads, files)
				}
			}
		}
	}
	for _, c := range f.Status().Chains {
		if c.Block != w.newest[c.Chain] {
			w.t.Fatalf("got %+v, want the newest blocks %v", f.Status(), w.newest)
		}
	}
	return files
}

// Bloom filters that are empty, or full, lose no logs.
func TestBloomsThatLie(t *testing.T) {
	for _, bits := range []byte{0, 0xff} {
		run(t, 5, func(w *world, _ *Options) {
			for _, n := range w.nodes {
				n.Set(meanrpc.Faults{Bloom: &bits})
			}
		}, func(w *world, f *Follower) {
			w.settle(f, true)
			for range 10 {
				for id := range w.nodes {
					w.grow(id, 1+w.random.Uint64N(3))
				}
				w.settle(f, true)
			}
		})
	}
}

// Logs that bloom filters hide are found by looking without them, after some minutes.
func TestBloomsThatHideLogs(t *testing.T) {
	other := byte(0x01) // a bit in eight, which no contract has all three of
	run(t, 6, nil, func(w *world, f *Follower) {
		w.settle(f, true)
		for _, n := range w.nodes {
			n.Set(meanrpc.Faults{Bloom: &other})
		}
		for id := range w.nodes {
			w.grow(id, 12)
		}
		time.Sleep(2 * auditEvery)
		files := w.settle(f, false)
		want := w.fresh(map[uint64]*history.History{8453: w.h, 10: w.h, 1: w.h}, w.newest, files)
		files["meta.json"] = want["meta.json"]
		if !maps.Equal(files, want) {
			w.t.Fatal(describe(files, want))
		}
	})
}

// A node that loses logs is contradicted by the contracts once its blocks are final. Then the graph is
// mended, by the logs of another node.
func TestLostLogsAreFoundByTheContracts(t *testing.T) {
	var lost []meanrpc.LogID
	run(t, 7, func(w *world, o *Options) {
		id := w.h.Chains[0].ID
		honest := meanrpc.New(id, slices.Values(w.h.Blocks))
		all := o.Provider.Transport.(hosts)
		all["honest.test"] = honest
		o.URLs[id] = append(o.URLs[id], "https://honest.test")
		w.twins = map[uint64]*meanrpc.Node{id: honest}
		w.set(id)
	}, func(w *world, f *Follower) {
		id := w.h.Chains[0].ID
		w.settle(f, true)
		from := w.newest[id]
		for b := range w.h.Of(id) {
			for i, l := range b.Logs {
				if b.Number > from && b.Number <= from+30 && l.Address == w.h.Chains[0].Records[0] && l.Topics[0] == history.TopicListOp {
					lost = append(lost, meanrpc.LogID{Block: b.Number, Index: uint64(i)})
				}
			}
		}
		if len(lost) == 0 {
			w.t.Fatal("no operation to lose: choose another seed")
		}
		forget := meanrpc.Faults{Forget: func(l meanrpc.LogID) bool { return slices.Contains(lost, l) }}
		w.nodes[id].Set(forget)
		w.twins[id].Set(forget)
		w.grow(id, 30)
		files := w.settle(f, false)
		now := map[uint64]*history.History{8453: w.h, 10: w.h, 1: w.h}
		want := w.fresh(now, w.newest, files)
		if files["records.ndjson"] == want["records.ndjson"] {
			w.t.Fatal("the lost operations change nothing: choose another seed")
		}
		w.twins[id].Set(meanrpc.Faults{})
		for id := range w.nodes {
			w.final[id] = w.newest[id]
			w.set(id)
		}
		files = w.settle(f, false)
		files["meta.json"] = want["meta.json"]
		if !maps.Equal(files, want) {
			w.t.Fatalf("%s\n%+v", describe(files, want), f.Status())
		}
	})
}

// Finalized writes the snapshot that `snapshot chain` makes from the same state, regardless of
// newer blocks.
func TestFinalizedIsTheSnapshotOfTheState(t *testing.T) {
	for seed := range uint64(servers.Rounds(3, 6)) {
		run(t, 20+seed, nil, func(w *world, f *Follower) {
			if seed%2 == 0 { // also before the first round
				w.settle(f, true)
			}
			for range 3 {
				for id := range w.nodes {
					w.grow(id, w.random.Uint64N(9))
					w.finalize(id)
				}
				dir := filepath.Join(w.t.TempDir(), "snapshot")
				to, err := snapshot.Create(dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
				if err != nil {
					w.t.Fatal(err)
				}
				meta, err := f.Finalized(w.t.Context(), to)
				if err == nil {
					err = to.Commit(meta)
				}
				if err != nil {
					w.t.Fatal(err)
				}
				got := filesOf(w.t, afero.NewBasePathFs(afero.NewOsFs(), dir))
				if want := w.whole(map[uint64]*history.History{8453: w.h, 10: w.h, 1: w.h}, w.final); !maps.Equal(got, want) {
					w.t.Fatal(describe(got, want))
				}
				w.settle(f, true)
			}
		})
	}
}

// Without news a chain costs one request per poll, apart from rare extra requests.
func TestRequestsWithoutNews(t *testing.T) {
	run(t, 8, nil, func(w *world, f *Follower) {
		for id := range w.nodes {
			w.newest[id] = w.last(id) + 1
			w.final[id] = w.newest[id]
			w.set(id)
		}
		w.settle(f, true)
		for _, n := range w.nodes {
			n.Reset()
		}
		const minutes = 60
		for range minutes * 30 {
			for id := range w.nodes {
				w.grow(id, 1)
			}
			for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
				if r, ok := next(w.t, f, time.Until(deadline)); ok && r.Snapshot != nil {
					w.t.Fatal("a snapshot without an event")
				}
			}
		}
		for id, n := range w.nodes {
			if got := float64(n.Counts().Requests) / minutes; got > 30.5 {
				w.t.Errorf("chain %d: got %.1f requests a minute, want 30: %v", id, got, n.Counts().Calls)
			}
		}
	})
}

// Next returns errors that waiting cannot fix. Status reports the others.
func TestErrors(t *testing.T) {
	run(t, 9, func(w *world, _ *Options) { w.nodes[10].Set(meanrpc.Faults{ChainID: 99}) }, func(w *world, f *Follower) {
		if _, err := f.Next(w.t.Context()); err == nil || !strings.Contains(err.Error(), "it is a node of chain 99, not of chain 10") {
			w.t.Errorf("got %v, want that a node is of another chain", err)
		}
	})
	run(t, 9, nil, func(w *world, f *Follower) {
		w.settle(f, true)
		w.nodes[10].Set(meanrpc.Faults{Trouble: meanrpc.Every(1, meanrpc.Trouble{Status: 503})})
		w.grow(10, 1)
		w.grow(1, 1)
		for deadline := time.Now().Add(time.Hour); time.Now().Before(deadline); {
			next(w.t, f, time.Minute)
		}
		s := f.Status()
		for _, c := range s.Chains {
			lag, known := c.Lag()
			if broken := c.Chain == 10; broken != (c.Error != "") || broken && lag < time.Hour-time.Minute || !known || broken != c.Nodes[0].Failing {
				w.t.Errorf("got %+v with lag %s", c, lag)
			}
		}
		w.nodes[10].Set(meanrpc.Faults{})
		time.Sleep(2 * time.Minute)
		w.settle(f, true)
		for _, c := range f.Status().Chains {
			n := c.Nodes[0]
			if broken := c.Chain == 10; n.Failing || time.Since(n.Answered) > time.Minute || broken != (time.Since(n.Failed) < 10*time.Minute && strings.HasPrefix(n.Error, "status 503")) {
				w.t.Errorf("chain %d, after its nodes answer again: got %+v, want an answer, and the error that has passed", c.Chain, n)
			}
		}
	})
}

// Until a node answers for the first time, the status says so, and has no lag.
func TestNodesThatHaveNeverAnswered(t *testing.T) {
	run(t, 9, func(w *world, _ *Options) {
		for _, n := range w.nodes {
			n.Set(meanrpc.Faults{Trouble: meanrpc.Every(1, meanrpc.Trouble{Status: 503})})
		}
	}, func(w *world, f *Follower) {
		next(w.t, f, 2*time.Second)
		for _, c := range f.Status().Chains {
			if _, known := c.Lag(); known || !strings.Contains(c.Error, "status 503") || len(c.Nodes) != 1 || !c.Nodes[0].Failing || !c.Nodes[0].Answered.IsZero() {
				w.t.Errorf("got %+v, want an unknown lag and the error of its node", c)
			}
		}
	})
}

// Tables read again are in the next round, which names the accounts with changed profiles. An
// unreadable file leaves the tables unchanged.
func TestRenew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "recommended.ndjson")
	write := func(text string) {
		if err := afero.WriteFile(afero.NewOsFs(), file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a := site.Address{1}
	write(fmt.Sprintf("{\"address\":%q}\n", a))
	run(t, 10, func(_ *world, o *Options) {
		o.Tables.Files = map[snapshot.Table]string{snapshot.TableRecommended: file}
	}, func(w *world, f *Follower) {
		read := func() string { return w.settle(f, false)["recommended.ndjson"] }
		if got := read(); !strings.Contains(got, a.String()) {
			w.t.Fatalf("got %q, want a row of %s", got, a)
		}
		b := site.Address{2}
		write(fmt.Sprintf("{\"address\":%q}\n", b))
		f.Renew()
		if got := read(); !strings.Contains(got, b.String()) || strings.Contains(got, a.String()) {
			w.t.Fatalf("got %q, want a row of %s", got, b)
		}
		write("no row\n")
		f.Renew()
		if got := read(); got != "" && !strings.Contains(got, b.String()) || f.Status().Additions == "" {
			w.t.Fatalf("got %q and %q, want the old tables, and the reason", got, f.Status().Additions)
		}
	})
}

// Profiles of the state are in the rows of accounts, together with primary lists. Later profiles
// appear after a Renew, which names their accounts.
func TestProfiles(t *testing.T) {
	state := t.TempDir()
	add := func(fresh int64, names ...string) {
		t.Helper()
		_, err := profile.Import(state, func(yield func(snapshot.Account, error) bool) {
			for i, name := range names {
				account := common.HexToAddress(fmt.Sprintf("0xd8da6bf26964af9d7eed9e03e53415d37aa96%03x", i))
				if !yield(snapshot.Account{Address: site.Address(account), ENS: &site.Profile{Name: name, Fresh: fresh}}, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add(1, "a.eth", "b.eth", "c.eth", "d.eth", "e.eth", "f.eth")
	run(t, 11, func(w *world, o *Options) { w.profiles, o.Tables.State = state, state }, func(w *world, f *Follower) {
		files := w.settle(f, true)
		if !strings.Contains(files["accounts.ndjson"], `,"primary_list":`) || !strings.Contains(files["accounts.ndjson"], "c.eth") {
			w.t.Fatalf("got accounts %s, want some with primary lists, and profiles", files["accounts.ndjson"])
		}
		for id := range w.nodes {
			w.grow(id, 20)
		}
		w.settle(f, true)
		add(2, "a.eth", "z.eth", "c.eth", "d.eth", "e.eth", "f.eth", "g.eth")
		f.Renew()
		r, ok := next(w.t, f, time.Minute)
		if !ok || r.Snapshot == nil {
			w.t.Fatal("no snapshot")
		}
		w.check("new profiles", r.Heads, filesOf(w.t, r.Snapshot))
		if len(r.Accounts) < 2 || len(r.Lists) > 0 {
			w.t.Errorf("got accounts %v, lists %v, want those with other profiles", r.Accounts, r.Lists)
		}
	})
}

// A state that was read up to blocks which were replaced since is mended before rounds go on.
func TestAStateOfReplacedBlocks(t *testing.T) {
	for seed := range uint64(4) {
		run(t, 30+seed, func(w *world, o *Options) {
			for id := range w.nodes {
				w.newest[id] += 6
				w.set(id)
			}
			latest := o.Provider
			latest.Finality = provider.Latest
			if _, err := o.State.Sync(w.t.Context(), chain.Options{URLs: o.URLs, Provider: latest, NoSync: true, Progress: noProgress{}}); err != nil {
				w.t.Fatal(err)
			}
			for id := range w.nodes {
				w.reorg(id, seed, false)
			}
		}, func(w *world, f *Follower) {
			w.settle(f, false)
			w.grow(1, 1)
			files, now := w.settle(f, false), map[uint64]*history.History{}
			if files == nil {
				f.Renew() // the last settle had no event
				files = w.settle(f, false)
			}
			for id, v := range w.versions {
				now[id] = v[len(v)-1]
			}
			want := w.fresh(now, w.newest, files)
			files["meta.json"] = want["meta.json"]
			if !maps.Equal(files, want) {
				w.t.Fatal(describe(files, want))
			}
		})
	}
}

// A node whose newest block stays the same is left for another one.
func TestANodeThatStandsStill(t *testing.T) {
	run(t, 40, func(w *world, o *Options) {
		id := w.h.Chains[0].ID
		other := meanrpc.New(id, slices.Values(w.h.Blocks))
		o.Provider.Transport.(hosts)["other.test"] = other
		o.URLs[id] = append(o.URLs[id], "https://other.test")
		w.twins = map[uint64]*meanrpc.Node{id: other}
		w.set(id)
	}, func(w *world, f *Follower) {
		id := w.h.Chains[0].ID
		w.settle(f, true)
		w.newest[id] += 5
		w.twins[id].SetHead(w.newest[id], w.final[id], w.final[id])
		w.settle(f, true)
	})
}

// If another run replaces the folder of the state, no block is confirmed into it, and Next returns
// an error.
func TestAStateThatWasReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 12)
		o := w.options(w.open(dir))
		f, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(f.Close(), o.State.Close()); err != nil {
				t.Error(err)
			}
		}()
		if _, err := chain.Open(dir, o.Deployment); !errors.Is(err, chain.ErrBusy) {
			t.Errorf("a second process: got %v, want %v", err, chain.ErrBusy)
		}
		w.settle(f, true)
		if err := os.Rename(dir, dir+".old"); err != nil {
			t.Fatal(err)
		}
		for id := range w.nodes {
			w.grow(id, 20)
			w.final[id] = w.newest[id]
			w.set(id)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for err == nil {
			_, err = f.Next(ctx)
		}
		if !strings.Contains(err.Error(), "was removed or replaced") {
			t.Errorf("got %v, want that the state was replaced", err)
		}
	})
}
