package chain

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/bundle"
	"github.com/followpress/followpress/source/chain/provider"
)

// A shelf keeps a log as a bucket does.
type shelf struct {
	mu      sync.Mutex
	objects map[string][]byte
	index   *bundle.Index
}

func (s *shelf) publish(t *testing.T, sources []bundle.Source) *bundle.Built {
	t.Helper()
	built, err := bundle.Build(t.Context(), sources, s.index, func(o bundle.Object) error {
		s.objects[o.Name] = o.Body
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.objects[bundle.IndexName], err = built.Index.Body(); err != nil {
		t.Fatal(err)
	}
	if s.index, err = bundle.ParseIndex(s.objects[bundle.IndexName]); err != nil {
		t.Fatal(err)
	}
	return built
}

func (s *shelf) fetch(_ context.Context, name string, _ int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if body, ok := s.objects[name]; ok {
		return slices.Clone(body), nil
	}
	return nil, bundle.ErrNone
}

func (s *shelf) log(t *testing.T) *bundle.Log {
	t.Helper()
	l, err := bundle.Open(t.Context(), s.fetch)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newShelf() *shelf { return &shelf{objects: map[string][]byte{}} }

func mustHistory(t *testing.T, s *State) []bundle.Source {
	t.Helper()
	sources, err := s.History()
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

// stopSomewhere lets nodes end somewhere between a block and their last one.
func stopSomewhere(random *rand.Rand, h *history.History, nodes map[uint64]*meanrpc.Node, at map[uint64]uint64, all bool) {
	for _, c := range h.Chains {
		last := c.First
		if b, ok := h.Last(c.ID); ok {
			last = b.Number
		}
		from := max(at[c.ID], c.First)
		head := from + random.Uint64N(max(1, (last-from)/2+1))
		if all {
			head = last
		}
		at[c.ID] = head
		nodes[c.ID].SetHead(head, head, head)
	}
}

// TestLogAndBack: a state makes a log, and the log a state with the same events up to the points that it
// names, which goes on from there like any other. A log that grew with a state in many steps has the
// bundles of one that another state has made in one.
func TestLogAndBack(t *testing.T) {
	for seed := range uint64(servers.Rounds(8, 60)) {
		random := rand.New(rand.NewPCG(seed, 4))
		h := history.Random(seed, history.Options{Transactions: 50 + random.IntN(300)})
		nodes, grown, at := startNodes(t, h), newShelf(), map[uint64]uint64{}
		o, s := from(nodes), open(t, t.TempDir(), h)
		for step := range 4 {
			stopSomewhere(random, h, nodes, at, step == 3)
			mustSync(t, s, o)
			grown.publish(t, mustHistory(t, s))

			twin := open(t, t.TempDir(), h)
			if err := errors.Join(twin.Adopt(t.Context(), grown.log(t), true), twin.Confirm(t.Context(), o)); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			sameUpto(t, s, twin, grown.index)
			if built, err := bundle.Build(t.Context(), adoptedSources(t, twin), grown.index, func(o bundle.Object) error { return fmt.Errorf("put %s", o.Name) }); err != nil || built.Put > 0 {
				t.Fatalf("seed %d: the log of the twin: got %v, want that nothing is to be put", seed, err)
			}
			r := mustSync(t, twin, o)
			mustEqual(t, fmt.Sprintf("seed %d, step %d: the snapshot of the twin", seed, step), snapshotOf(t, twin), snapshotOf(t, s))
			mustEqual(t, "and that of the history", snapshotOf(t, twin), truthOf(t, h, r))
			got, want := slices.Collect(allEvents(t, twin)), slices.Collect(allEvents(t, s))
			if !slices.EqualFunc(got, want, equal) {
				t.Fatalf("seed %d, step %d: got %d events of the twin, want %d", seed, step, len(got), len(want))
			}
			ofTwin := newShelf()
			ofTwin.publish(t, mustHistory(t, twin))
			if !slices.Equal(ofTwin.index.Bundles, grown.index.Bundles) {
				t.Fatalf("seed %d, step %d: the bundles of the twin differ", seed, step)
			}
			if random.IntN(2) == 0 { // another machine goes on
				s = twin
			}
		}
	}
}

// adoptedSources is what a twin would publish, if there is a point of each chain.
func adoptedSources(t *testing.T, twin *State) []bundle.Source {
	t.Helper()
	sources := mustHistory(t, twin)
	for i := range sources {
		if len(sources[i].Points) == 0 { // nothing of it is complete yet: as if it had been read up to its first block
			sources[i].Points = []bundle.Mark{{Block: 0}}
		}
	}
	return sources
}

// sameUpto compares the events of both up to the points of a log.
func sameUpto(t *testing.T, s, twin *State, x *bundle.Index) {
	t.Helper()
	for _, c := range s.deployment.Chains {
		at := slices.IndexFunc(x.Chains, func(l bundle.Chain) bool { return l.ID == c.ID })
		check, err := readCheckpoint(twin.folder(c), c)
		if err != nil {
			t.Fatal(err)
		}
		p := x.Chains[at].Point
		if p == nil {
			if len(check.Points) > 0 {
				t.Errorf("chain %d: got a checkpoint, want none", c.ID)
			}
			continue
		}
		top, err := twin.complete(c)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := s.complete(c)
		if err != nil {
			t.Fatal(err)
		}
		collect := func(s *State, to point, most uint64) (all []source.Event) {
			if _, err := read(s.folder(c), c, to, func(e source.Event) bool {
				if e.Block <= most {
					all = append(all, cloned(e))
				}
				return true
			}); err != nil {
				t.Fatal(err)
			}
			return all
		}
		got, want := collect(twin, top, top.Block), collect(s, whole, p.Block)
		if top.Block != p.Block || top.Events != uint64(len(want)) || !slices.EqualFunc(got, want, equal) {
			t.Errorf("chain %d up to block %d: got %d events, want the %d of the state", c.ID, p.Block, len(got), len(want))
		}
	}
}

// TestLogOfAnyRuns: states that were read in other runs, and a deployment whose chains have another order,
// make the same bundles.
func TestLogOfAnyRuns(t *testing.T) {
	h := history.Random(3, history.Options{Transactions: 400})
	nodes := startNodes(t, h)
	random := rand.New(rand.NewPCG(3, 4))
	o, first := from(nodes), newShelf()
	s := open(t, t.TempDir(), h)
	mustSync(t, s, o)
	first.publish(t, mustHistory(t, s))
	for range 3 {
		other := *h
		other.Chains = slices.Clone(h.Chains)
		random.Shuffle(len(other.Chains), func(i, j int) { other.Chains[i], other.Chains[j] = other.Chains[j], other.Chains[i] })
		o.Provider.MaxRange = 1 + random.Uint64N(50)
		s, at := open(t, t.TempDir(), &other), map[uint64]uint64{}
		for step := range 3 {
			stopSomewhere(random, h, nodes, at, step == 2)
			mustSync(t, s, o)
		}
		again := newShelf()
		again.publish(t, mustHistory(t, s))
		if !slices.Equal(again.index.Bundles, first.index.Bundles) {
			t.Fatal("the bundles differ")
		}
	}
}

// lied is a log whose events of a chain are others.
func lied(t *testing.T, s *State, chain uint64, lie func(iter.Seq[source.Event]) iter.Seq[source.Event]) *shelf {
	t.Helper()
	sources := mustHistory(t, s)
	for i := range sources {
		if sources[i].ID != chain {
			continue
		}
		true := sources[i].Events
		var events []source.Event
		for e := range lie(func(yield func(source.Event) bool) {
			for e, err := range true {
				if err != nil {
					t.Fatal(err)
				}
				if !yield(cloned(e)) {
					return
				}
			}
		}) {
			events = append(events, e)
		}
		for p := range sources[i].Points {
			mark := &sources[i].Points[p]
			mark.Events = 0
			for _, e := range events {
				if e.Block <= mark.Block {
					mark.Events++
				}
			}
		}
		sources[i].Events = func(yield func(source.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	l := newShelf()
	l.publish(t, sources)
	return l
}

// TestLogsThatLie: a log that lacks events, or has invented some, is refused, and so is one of other blocks;
// nothing of it stays. A node without state cannot tell.
func TestLogsThatLie(t *testing.T) {
	h := history.Random(5, history.Options{Transactions: 300})
	nodes := startNodes(t, h)
	o, s := from(nodes), open(t, t.TempDir(), h)
	mustSync(t, s, o)
	right := newShelf()
	right.publish(t, mustHistory(t, s))
	at := slices.IndexFunc(right.index.Chains, func(c bundle.Chain) bool { return c.Point != nil && c.Point.Events > 50 })
	chain := &right.index.Chains[at]
	var op, before source.Event // the last one of a block, so that there is room for another one
	for e := range allEvents(t, s) {
		if before.Kind == source.Op && before.Contract.Chain == chain.ID && before.Block < e.Block && e.Block < chain.Point.Block {
			op = before
		}
		before = e
	}
	same := func(events iter.Seq[source.Event]) iter.Seq[source.Event] { return events }
	for name, tc := range map[string]struct {
		lie    func(iter.Seq[source.Event]) iter.Seq[source.Event]
		change func(*bundle.Index)
		faults meanrpc.Faults
		want   string
		keeps  bool
	}{
		"true": {lie: same},
		"lacks an operation": {lie: func(events iter.Seq[source.Event]) iter.Seq[source.Event] {
			return func(yield func(source.Event) bool) {
				for e := range events {
					if !equal(e, op) && !yield(e) {
						return
					}
				}
			}
		}, want: "lacks events"},
		"invents an operation": {lie: func(events iter.Seq[source.Event]) iter.Seq[source.Event] {
			return func(yield func(source.Event) bool) {
				for e := range events {
					if !yield(e) {
						return
					}
					if equal(e, op) {
						e.Index++
						if !yield(e) {
							return
						}
					}
				}
			}
		}, want: "some that never were"},
		"another hash": {lie: same, change: func(x *bundle.Index) {
			x.Chains[at].Point = &bundle.Point{Block: chain.Point.Block, Events: chain.Point.Events, Time: chain.Point.Time, Hash: "0x" + strings.Repeat("1", 64)}
		}, want: "by the log 0x1111"},
		"another first": {lie: same, change: func(x *bundle.Index) {
			x.Chains[at].First = &bundle.Block{Block: chain.First.Block, Hash: "0x" + strings.Repeat("1", 64)}
		}, want: "by the log 0x1111"},
		"another time": {lie: same, change: func(x *bundle.Index) {
			x.Chains[at].Point = &bundle.Point{Block: chain.Point.Block, Events: chain.Point.Events, Hash: chain.Point.Hash, Time: "2001-01-01T00:00:00.000Z"}
		}, want: "2001-01-01"},
		"nobody knows": {lie: same, faults: meanrpc.Faults{NoState: true}, want: "nobody can tell", keeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			log := lied(t, s, chain.ID, tc.lie).log(t)
			if tc.change != nil {
				log.Index.Chains = slices.Clone(log.Index.Chains)
				tc.change(log.Index)
			}
			for _, n := range nodes {
				n.Set(tc.faults)
				defer n.Set(meanrpc.Faults{})
			}
			o := o
			o.Provider.Patience = 1 // of nodes that never tell
			dir := t.TempDir()
			twin := open(t, dir, h)
			if err := twin.Adopt(t.Context(), log, true); err != nil {
				t.Fatal(err)
			}
			err := twin.Confirm(t.Context(), o)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, ErrRefused) == tc.keeps {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if IsState(dir) != tc.keeps {
				t.Errorf("the state is there: got %v, want %v", IsState(dir), tc.keeps)
			}
		})
	}
}

// TestAdoptRefuses: a log of another deployment, or with events that no contract can have emitted, is
// refused before a state is there.
func TestAdoptRefuses(t *testing.T) {
	h := history.Random(5, history.Options{Transactions: 300})
	nodes := startNodes(t, h)
	o, s := from(nodes), open(t, t.TempDir(), h)
	o.Provider.MaxRange = 10 // many points, so that one of each chain is in the log
	mustSync(t, s, o)
	chain := s.deployment.Registry().Chain
	change := func(with func(*source.Event)) *shelf {
		return lied(t, s, chain, func(events iter.Seq[source.Event]) iter.Seq[source.Event] {
			return func(yield func(source.Event) bool) {
				for e := range events {
					if e.Kind == source.Transfer {
						with(&e)
					}
					if !yield(e) {
						return
					}
				}
			}
		})
	}
	other := *h
	other.Chains = slices.Clone(h.Chains)
	other.Chains[0].First++
	fewer := *h
	fewer.Chains = h.Chains[:len(h.Chains)-1]
	for name, tc := range map[string]struct {
		log  *shelf
		h    *history.History
		want string
	}{
		"another contract": {change(func(e *source.Event) { e.Contract.Address[3] ^= 1 }), h, "does not emit"},
		"another kind":     {change(func(e *source.Event) { e.Kind = source.Op }), h, "does not emit"},
		"a short owner":    {change(func(e *source.Event) { e.Value = e.Value[:3] }), h, "3 bytes"},
		"other contracts":  {change(func(*source.Event) {}), &other, "other contracts"},
		"fewer chains":     {change(func(*source.Event) {}), &fewer, "another deployment"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "fewer chains" {
				tc.want = "name the deployment"
			}
			dir := t.TempDir()
			twin := open(t, dir, tc.h)
			if err := twin.Adopt(t.Context(), tc.log.log(t), true); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "chains*")); err != nil || len(left) > 0 {
				t.Errorf("got %v, %v, want nothing left", left, err)
			}
		})
	}
	if err := s.Adopt(t.Context(), change(func(*source.Event) {}).log(t), true); err == nil || !strings.Contains(err.Error(), "empty folder") {
		t.Errorf("into a state that has events: got %v, want an error", err)
	}
}

// TestHistoryIsFinal: what may still be replaced, and what nobody has confirmed, is in no log.
func TestHistoryIsFinal(t *testing.T) {
	h := history.Random(6, history.Options{Transactions: 100})
	nodes := startNodes(t, h)
	o, s := from(nodes), open(t, t.TempDir(), h)
	o.Provider.Finality = provider.Latest
	mustSync(t, s, o)
	if _, err := s.History(); err == nil || !strings.Contains(err.Error(), "--finality finalized") {
		t.Errorf("read up to the newest block: got %v, want an error", err)
	}
	o.Provider.Finality = provider.Finalized
	mustSync(t, s, o)
	mustHistory(t, s)

	for _, n := range nodes {
		n.Set(meanrpc.Faults{NoState: true})
	}
	o.Unchecked, o.Provider.Patience = true, 1
	s = open(t, t.TempDir(), h)
	mustSync(t, s, o)
	if _, err := bundle.Build(t.Context(), mustHistory(t, s), nil, nil); err == nil || !strings.Contains(err.Error(), "known to be right") {
		t.Errorf("events that nobody has confirmed: got %v, want an error", err)
	}
}

// TestHistoryAfterReorganisation: what was read up to the newest block, and was reorganised since, is in no log,
// also if the run that was to read up to the final one has failed.
func TestHistoryAfterReorganisation(t *testing.T) {
	h := history.Random(4, history.Options{Transactions: 200})
	all, s := newWorlds(h), open(t, t.TempDir(), h)
	others := newWorlds(history.Random(5, history.Options{Transactions: 200, Chains: h.Chains}))
	o := all.options()
	o.Provider.Finality = provider.Latest
	mustSync(t, s, o)
	for id, w := range all {
		w.reorganise(w.head-25, others[id])
		w.meanly = func(method string) error {
			if method == "block" {
				return errors.New("away")
			}
			return nil
		}
	}
	o.Provider.Finality = provider.Finalized
	if _, err := s.Sync(t.Context(), o); err == nil || !strings.Contains(err.Error(), "away") {
		t.Fatalf("got %v, want the error of the nodes", err)
	}
	if _, err := s.History(); err == nil || !strings.Contains(err.Error(), "--finality finalized") {
		t.Errorf("after a run that failed: got %v, want an error", err)
	}
	for _, w := range all {
		w.meanly = nil
	}
	all.check(t, s, mustSync(t, s, o))
	mustHistory(t, s)
}

// TestUncheckedLog: with --unchecked a log is taken as it is, where no node can tell whether it is right. Nothing
// of it is read again in that run, and nothing counts as verified.
func TestUncheckedLog(t *testing.T) {
	h := history.Random(5, history.Options{Transactions: 300})
	all, s := newWorlds(h), open(t, t.TempDir(), h)
	mustSync(t, s, all.options())
	right := newShelf()
	right.publish(t, mustHistory(t, s))
	for _, w := range all {
		w.noState = true
	}
	o, twin := all.options(), open(t, t.TempDir(), h)
	o.Unchecked, o.Provider.Quorum = true, 1
	if err := errors.Join(twin.Adopt(t.Context(), right.log(t), true), twin.Confirm(t.Context(), o)); err != nil {
		t.Fatal(err)
	}
	r := mustSync(t, twin, o)
	all.check(t, twin, r)
	for _, c := range r.Chains {
		at := slices.IndexFunc(right.index.Chains, func(l bundle.Chain) bool { return l.ID == c.Chain })
		if p := right.index.Chains[at].Point; len(c.Repairs) > 0 || p != nil && c.From != p.Block+1 {
			t.Errorf("chain %d: read from block %d, with %v, want what comes after %+v", c.Chain, c.From, c.Repairs, p)
		}
		if n, err := twin.Verified(c.Chain); err != nil || n > 0 {
			t.Errorf("chain %d: verified up to block %d (%v), want nothing", c.Chain, n, err)
		}
	}
	r = mustSync(t, twin, o) // now it is, as after any such run
	all.check(t, twin, r)
	if len(r.Chains[0].Repairs) == 0 {
		t.Error("the next run: nothing was read again")
	}
}
