package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/chain/provider"
	"github.com/followpress/followpress/source/profile"
	"github.com/followpress/followpress/source/replay"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

// hosts answer requests without connections, so that a test may run on virtual time.
type hosts map[string]http.Handler

// RoundTrip implements http.RoundTripper. A handler that aborts ends the connection.
func (h hosts) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			answer, err = nil, io.EOF
		default:
			panic(v)
		}
	}()
	w := httptest.NewRecorder()
	h[r.URL.Host].ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// A world has the nodes of chains, and what there ever was on the chains.
type world struct {
	t     *testing.T
	h     *history.History
	nodes map[uint64]*meanrpc.Node
	twins map[uint64]*meanrpc.Node // other nodes of the same chains, if any
	// versions are the histories of each chain; the last one is current.
	versions map[uint64][]*history.History
	newest   map[uint64]uint64
	final    map[uint64]uint64
	random   *rand.Rand
	profiles string // the folder of a state that has profiles; "" for none
	window   time.Duration
	cut      bool // some window had some operations, and lacked older ones
}

func deploymentOf(h *history.History) *source.Deployment {
	d := &source.Deployment{}
	start := func(c history.Chain, a *history.Address) *source.Start {
		if a == nil {
			return nil
		}
		return &source.Start{Address: site.Address(*a), FirstBlock: c.First}
	}
	for _, c := range h.Chains {
		chain := source.Chain{ID: c.ID, Name: fmt.Sprint("chain ", c.ID), Registry: start(c, c.Registry), Accounts: start(c, c.Accounts)}
		for _, r := range c.Records {
			chain.Records = append(chain.Records, *start(c, &r))
		}
		d.Chains = append(d.Chains, chain)
	}
	return d
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, h: history.Random(seed, history.Options{Transactions: 150}), nodes: map[uint64]*meanrpc.Node{},
		versions: map[uint64][]*history.History{}, newest: map[uint64]uint64{}, final: map[uint64]uint64{}, random: rand.New(rand.NewPCG(seed, 9)),
		window: time.Duration(1+rand.New(rand.NewPCG(seed, 25)).IntN(60)) * time.Second}
	for _, c := range w.h.Chains {
		w.nodes[c.ID] = meanrpc.New(c.ID, slices.Values(w.h.Blocks))
		w.versions[c.ID] = []*history.History{w.h}
		w.newest[c.ID] = c.First + w.random.Uint64N(1+(w.last(c.ID)-c.First)/2)
		w.final[c.ID] = c.First + w.random.Uint64N(1+w.newest[c.ID]-c.First)
		w.set(c.ID)
	}
	return w
}

// last returns the last block of a chain that has logs.
func (w *world) last(id uint64) uint64 {
	versions := w.versions[id]
	if b, ok := versions[len(versions)-1].Last(id); ok {
		return b.Number
	}
	for _, c := range w.h.Chains {
		if c.ID == id {
			return c.First
		}
	}
	return 0
}

func (w *world) set(id uint64) {
	w.nodes[id].SetHead(w.newest[id], w.final[id], w.final[id])
	if twin := w.twins[id]; twin != nil {
		twin.SetHead(w.newest[id], w.final[id], w.final[id])
	}
}

// grow makes some blocks.
func (w *world) grow(id, n uint64) {
	w.newest[id] += n
	w.set(id)
}

// finalize makes older blocks final.
func (w *world) finalize(id uint64) {
	w.final[id] += w.random.Uint64N(1 + w.newest[id] - w.final[id])
	w.set(id)
}

// reorg replaces some of the blocks that are not final. The chain grows by a block unless it
// shrinks.
func (w *world) reorg(id, seed uint64, shorter bool) {
	if w.newest[id] == w.final[id] {
		return
	}
	first := w.final[id] + 1 + w.random.Uint64N(w.newest[id]-w.final[id])
	versions := w.versions[id]
	forked, instead := versions[len(versions)-1].Fork(id, first, seed, history.Options{Transactions: 20})
	w.versions[id] = append(versions, forked)
	w.nodes[id].Reorg(first, instead...)
	switch {
	case shorter && w.newest[id] > first:
		w.newest[id] = first + w.random.Uint64N(w.newest[id]-first)
	default:
		w.newest[id]++
	}
	w.set(id)
}

// options follow the nodes.
func (w *world) options(state *chain.State) Options {
	o := Options{
		State: state, Deployment: deploymentOf(w.h), URLs: map[uint64][]string{}, NoSync: true, Confirm: time.Minute, History: w.window,
		Provider: provider.Options{Transport: w.transport(), Patience: 30 * time.Second, Timeout: 10 * time.Second},
	}
	for _, c := range w.h.Chains {
		o.URLs[c.ID] = []string{fmt.Sprintf("https://%d.test", c.ID)}
	}
	return o
}

func (w *world) transport() hosts {
	all := hosts{}
	for id, n := range w.nodes {
		all[fmt.Sprintf("%d.test", id)] = n
	}
	return all
}

func (w *world) open(dir string) *chain.State {
	w.t.Helper()
	s, err := chain.Open(dir, deploymentOf(w.h))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// filesOf returns the files of a snapshot by name.
func filesOf(t *testing.T, files afero.Fs) map[string]string {
	t.Helper()
	all := map[string]string{}
	var names []string
	if memory, ok := files.(interface{ Names() []string }); ok {
		names = memory.Names()
	} else if entries, err := afero.ReadDir(files, "."); err != nil {
		t.Fatal(err)
	} else {
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		text, err := afero.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := files.Stat(name); err != nil || info.Size() != int64(len(text)) {
			t.Fatalf("%s: got %v, %v, want %d bytes", name, info, err, len(text))
		}
		all[name] = string(text)
	}
	return all
}

// fresh is whole with the operations of a window only: that of a round, whose files are got.
func (w *world) fresh(versions map[uint64]*history.History, heads map[uint64]uint64, got map[string]string) map[string]string {
	w.t.Helper()
	files := w.whole(versions, heads)
	round := afero.NewMemMapFs()
	if err := afero.WriteFile(round, "meta.json", []byte(got["meta.json"]), 0o644); err != nil {
		w.t.Fatal(err)
	}
	var times [2]time.Time
	for i, read := range []func(afero.Fs) (string, error){snapshot.ReadAsOf, snapshot.ReadOpsFrom} {
		text, err := read(round)
		if err == nil {
			times[i], err = time.Parse(time.RFC3339, text)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if window := times[0].Sub(times[1]); window != w.window {
		w.t.Fatalf("%s: got a window of %s, want %s", got["meta.json"], window, w.window)
	}
	_, from, _ := strings.Cut(got["meta.json"], `,"ops_from":`)
	before, _, _ := strings.Cut(files["meta.json"], `,"chains":`) // a round does not name its inputs
	files["meta.json"] = before + `,"ops_from":` + from
	var ops strings.Builder
	for line := range strings.Lines(files["ops.ndjson"]) {
		o, err := snapshot.Reader[snapshot.Op]{}.Parse([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			w.t.Fatal(err)
		}
		if o.Time >= times[1].UnixMilli() {
			ops.WriteString(line)
		}
	}
	w.cut = w.cut || ops.Len() > 0 && ops.Len() < len(files["ops.ndjson"])
	files["ops.ndjson"] = ops.String()
	return files
}

// whole returns the snapshot of a state that has just read the blocks up to heads, of one version of each
// chain.
func (w *world) whole(versions map[uint64]*history.History, heads map[uint64]uint64) map[string]string {
	w.t.Helper()
	dir := w.t.TempDir()
	defer func() { _ = os.RemoveAll(dir) }()
	o := chain.Options{URLs: map[uint64][]string{}, NoSync: true, Progress: noProgress{}, Unchecked: true}
	all := hosts{}
	for id, h := range versions {
		n := meanrpc.New(id, slices.Values(h.Blocks))
		n.SetHead(heads[id], heads[id], heads[id])
		host := fmt.Sprintf("%d.test", id)
		all[host], o.URLs[id] = n, []string{"https://" + host}
	}
	o.Provider = provider.Options{Transport: all, Finality: provider.Latest}
	state := w.open(filepath.Join(dir, "state"))
	defer func() { _ = state.Close() }()
	if _, err := state.Sync(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
	return w.snapshotOf(state, filepath.Join(dir, "snapshot"))
}

// snapshotOf returns what `snapshot chain` makes of a state.
func (w *world) snapshotOf(state *chain.State, dir string) map[string]string {
	w.t.Helper()
	r := replay.New(deploymentOf(w.h))
	for e, err := range state.Events() {
		if err == nil {
			err = r.Add(e)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	to, err := snapshot.Create(dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
	if err != nil {
		w.t.Fatal(err)
	}
	g, err := r.Write(w.t.Context(), to)
	if err == nil {
		err = source.WriteAccounts(to, g, w.ownProfiles()...)
	}
	var failed [2]error
	g.AsOf, failed[0] = state.AsOf()
	g.Chains, failed[1] = state.Chains()
	if err = errors.Join(err, failed[0], failed[1]); err == nil {
		err = to.Commit(g.Meta())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return filesOf(w.t, afero.NewBasePathFs(afero.NewOsFs(), dir))
}

func (w *world) ownProfiles() (all []source.Profiles) {
	if w.profiles != "" {
		all = append(all, profile.Profiles(w.profiles))
	}
	return all
}

// check compares a round with a fresh state of the same blocks. Blocks that were replaced since count
// too, as long as a chain is of one version.
func (w *world) check(what string, heads []source.Head, got map[string]string) {
	w.t.Helper()
	var difference string
	var try func(i int, chosen map[uint64]*history.History) bool
	numbers := map[uint64]uint64{}
	for _, h := range heads {
		numbers[h.Chain] = h.Block
	}
	try = func(i int, chosen map[uint64]*history.History) bool {
		if i == len(heads) {
			want := w.fresh(chosen, numbers, got)
			same := maps.Equal(got, want)
			if !same && difference == "" {
				difference = describe(got, want)
			}
			return same
		}
		for _, v := range slices.Backward(w.versions[heads[i].Chain]) {
			chosen[heads[i].Chain] = v
			if try(i+1, chosen) {
				return true
			}
		}
		return false
	}
	if !try(0, map[uint64]*history.History{}) {
		w.t.Fatalf("%s: heads %v: %s", what, heads, difference)
	}
}

func describe(got, want map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		g, x := bytes.Split([]byte(got[name]), []byte("\n")), bytes.Split([]byte(want[name]), []byte("\n"))
		for i := range min(len(g), len(x)) {
			if !bytes.Equal(g[i], x[i]) {
				return fmt.Sprintf("%s: line %d: got %s, want %s", name, i+1, g[i], x[i])
			}
		}
		if len(g) != len(x) {
			return fmt.Sprintf("%s: got %d lines, want %d", name, len(g), len(x))
		}
	}
	return "other files"
}

// next returns a round, or nothing if none comes in some time.
func next(t *testing.T, f *Follower, patience time.Duration) (source.Round, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := f.Next(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return source.Round{}, false
	} else if err != nil {
		t.Fatal(err)
	}
	return r, true
}

// Whatever happens on the chains, and however nodes lag, each round is the snapshot of a fresh state
// of the same blocks, byte for byte; in the end that of the newest blocks.
func TestRandomRounds(t *testing.T) {
	cut := 0 // worlds in which the window of operations began between them
	for seed := range uint64(servers.Rounds(8, 200)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed)
				state := w.open(dir)
				f, err := Open(w.options(state))
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := errors.Join(f.Close(), state.Close()); err != nil {
						t.Fatal(err)
					}
				}()
				w.play(f, seed)
				if w.cut {
					cut++
				}
			})
		})
	}
	if cut == 0 {
		t.Error("no window had some operations, and lacked older ones")
	}
}

// play lets things happen, and checks all rounds.
func (w *world) play(f *Follower, seed uint64) {
	t, random := w.t, w.random
	var files map[string]string
	var heads []source.Head
	see := func(r source.Round) {
		heads = r.Heads
		if r.Snapshot != nil {
			files = filesOf(t, r.Snapshot)
			w.check("a round", r.Heads, files)
		}
	}
	ids := slices.Sorted(maps.Keys(w.nodes))
	for step := range uint64(25) {
		id := ids[random.IntN(len(ids))]
		switch n := random.IntN(12); {
		case n < 6:
			w.grow(id, 1+random.Uint64N(1+max(1, (w.last(id)-min(w.last(id), w.newest[id]))/4)))
		case n < 7:
			w.reorg(id, 1000*seed+step, random.IntN(3) == 0)
		case n < 8:
			w.finalize(id)
		case n < 9:
			w.nodes[id].Set(meanrpc.Faults{Lag: random.Uint64N(6), LagKnown: random.IntN(2) == 0})
		case n < 10:
			w.nodes[id].Set(meanrpc.Faults{Trouble: meanrpc.Sometimes(seed+step, 0.3, meanrpc.Trouble{Status: 503}, meanrpc.Trouble{Reset: true})})
		default:
			w.nodes[id].Set(meanrpc.Faults{})
		}
		if r, ok := next(t, f, time.Duration(random.IntN(20_000))*time.Millisecond); ok {
			see(r)
		}
	}
	for _, n := range w.nodes {
		n.Set(meanrpc.Faults{})
	}
	deadline := time.Now().Add(5 * time.Minute)
	for time.Now().Before(deadline) {
		if r, ok := next(t, f, 30*time.Second); ok {
			see(r)
		}
	}
	for _, h := range heads {
		if h.Block != w.newest[h.Chain] {
			t.Fatalf("chain %d: got block %d in the end, want %d: %+v", h.Chain, h.Block, w.newest[h.Chain], f.Status())
		}
	}
	now := map[uint64]*history.History{}
	for id, v := range w.versions {
		now[id] = v[len(v)-1]
	}
	want := w.fresh(now, w.newest, files)
	files["meta.json"] = want["meta.json"] // rounds without events have no snapshot
	if !maps.Equal(files, want) {
		t.Fatalf("in the end: %s", describe(files, want))
	}
}
