package chain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	real "github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
	"github.com/followpress/followpress/source/replay"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

// startNodes starts a node for each chain of a history.
func startNodes(t testing.TB, h *history.History) map[uint64]*meanrpc.Node {
	t.Helper()
	all := map[uint64]*meanrpc.Node{}
	for _, c := range h.Chains {
		all[c.ID] = meanrpc.Start(t, c.ID, slices.Values(h.Blocks))
		if _, ok := h.Last(c.ID); !ok {
			all[c.ID].SetHead(c.First, c.First, c.First)
		}
	}
	return all
}

// from are options that read from nodes, impatiently.
func from(nodes map[uint64]*meanrpc.Node) Options {
	o := Options{
		URLs: map[uint64][]string{}, NoSync: true, Progress: noProgress{}, every: time.Nanosecond,
		Provider: provider.Options{Timeout: 5 * time.Second, Patience: time.Minute},
	}
	for id, n := range nodes {
		o.URLs[id] = []string{n.URL}
	}
	return o
}

// lines are rows as lines, to be compared.
type lines struct{ lists, records, ops []string }

func (l *lines) WriteList(list snapshot.List) error {
	user := "none"
	if list.User != nil {
		user = list.User.String()
	}
	l.lists = append(l.lists, fmt.Sprintf("%s owner %s user %s", list.TokenID, list.Owner, user))
	return nil
}

func (l *lines) WriteRecord(r snapshot.Record) error {
	l.records = append(l.records, fmt.Sprintf("%s: %d %s %x %q %d", r.TokenID, r.Version, r.Type, r.Data, r.Tags, r.Added))
	return nil
}

func (*lines) Begin(snapshot.Table) error { return nil }

func (l *lines) WriteOp(o snapshot.Op) error {
	l.ops = append(l.ops, fmt.Sprintf("op %s: %d %d %d %d %x", o.TokenID, o.Time, o.Chain, o.Block, o.LogIndex, o.Op))
	return nil
}

// snapshotOf returns what a state makes, in lines.
func snapshotOf(t *testing.T, s *State) string {
	t.Helper()
	return snapshotOfEvents(t, s, s.Events())
}

// snapshotOfEvents returns what events of a state make.
func snapshotOfEvents(t *testing.T, s *State, events source.Events) string {
	t.Helper()
	r := replay.New(s.deployment)
	for e, err := range events {
		if err == nil {
			err = r.Add(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var l lines
	g, err := r.Write(t.Context(), &l)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(l.records) // records of different lists may be mixed
	return strings.Join(slices.Concat(l.lists, l.records, l.ops, primaries(g.Primary)), "\n")
}

// truthOf returns what a history makes up to the blocks of a report, in lines.
func truthOf(t *testing.T, h *history.History, r *Report) string {
	t.Helper()
	for _, c := range r.Chains {
		h = h.Upto(c.Chain, c.To)
	}
	return linesOf(t, h)
}

// linesOf returns what a history makes, in lines.
func linesOf(t *testing.T, h *history.History) string {
	t.Helper()
	truth, primary := h.Truth(), map[site.Address]string{}
	var l lines
	for _, list := range truth.Lists {
		row := snapshot.List{TokenID: list.Token, Owner: list.Owner}
		if list.User != nil {
			user := site.Address(*list.User)
			row.User = &user
		}
		err := l.WriteList(row)
		for _, r := range list.Records {
			err = errors.Join(err, l.WriteRecord(snapshot.Record{
				TokenID: list.Token, Version: uint32(r.Version), Type: r.Type, Data: []byte(r.Data), Tags: r.Tags, Added: r.Added,
			}))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range truth.Ops {
		if err := l.WriteOp(snapshot.Op{TokenID: o.Token, Time: o.Time, Chain: o.Chain, Block: o.Block, LogIndex: uint32(o.Log), Op: []byte(o.Data)}); err != nil {
			t.Fatal(err)
		}
	}
	for account, token := range truth.Primary {
		primary[account] = token
	}
	slices.Sort(l.records)
	return strings.Join(slices.Concat(l.lists, l.records, l.ops, primaries(primary)), "\n")
}

func primaries(of map[site.Address]string) (lines []string) {
	for account, token := range of {
		lines = append(lines, fmt.Sprintf("%s primary %s", account, token))
	}
	slices.Sort(lines)
	return lines
}

func mustEqual(t *testing.T, what string, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s: line %d: got %s, want %s", what, i, g[i], w[i])
		}
	}
	t.Fatalf("%s: got %d lines, want %d", what, len(g), len(w))
}

// With any limits and faults of nodes, their logs give the snapshot of a naive computation from the
// history.
func TestHistoriesOverHTTP(t *testing.T) {
	for seed := range uint64(servers.Rounds(8, 60)) {
		random := rand.New(rand.NewPCG(seed, 1))
		h := history.Random(seed, history.Options{Transactions: 20 + random.IntN(150)})
		nodes := startNodes(t, h)
		o := from(nodes)
		for _, n := range nodes {
			words := meanrpc.AllWords()[random.IntN(len(meanrpc.AllWords()))]
			f := meanrpc.Faults{
				MaxBlocks: random.Uint64N(2) * (1 + random.Uint64N(40)), MaxResults: random.IntN(2) * (200 + random.IntN(200)), Words: &words,
				NoBatches: random.IntN(3) == 0, Removed: random.IntN(2) == 0, Shuffled: random.IntN(2) == 0,
				NoTimestamp: random.IntN(2) == 0, NewFields: random.IntN(2) == 0, State: random.Uint64N(2) * 3, NoMulticall: random.IntN(2) == 0, MaxCalls: random.IntN(2) * 7, Backwards: random.IntN(2) == 0, NoGzip: random.IntN(2) == 0,
			}
			if seed%20 == 19 { // not often, because clients wait after troubles
				f.Trouble = meanrpc.Sometimes(seed, 0.05, meanrpc.Troubles()...)
			}
			n.Set(f)
		}
		s := open(t, t.TempDir(), h)
		r := mustSync(t, s, o)
		mustEqual(t, fmt.Sprintf("seed %d", seed), snapshotOf(t, s), truthOf(t, h, r))
		for _, c := range r.Chains {
			if last, ok := h.Last(c.Chain); ok && c.To != last.Number {
				t.Fatalf("seed %d: chain %d was read up to %d, want %d", seed, c.Chain, c.To, last.Number)
			}
		}
	}
}

// inChild has the job of a process that syncs until it is killed.
const inChild = "FOLLOWPRESS_TEST_SYNC"

type job struct {
	State string
	URLs  map[uint64][]string
}

func init() {
	text := os.Getenv(inChild)
	if text == "" {
		return
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A loudProgress prints the stages.
type loudProgress struct{ noProgress }

func (loudProgress) Stage(name string, _ int64) { fmt.Println(name) }

func (j job) run() error {
	s, err := Open(j.State, deployment(history.Production()))
	if err != nil {
		return err
	}
	_, err = s.Sync(context.Background(), Options{
		URLs: j.URLs, Progress: loudProgress{}, every: time.Nanosecond, NoSync: true, Provider: provider.Options{MaxRange: 5},
	})
	return err
}

func TestKilledRunsGoOn(t *testing.T) {
	h := history.Random(15, history.Options{Transactions: servers.Rounds(600, 4000), Chains: history.Production()})
	nodes := startNodes(t, h)
	o := from(nodes)
	for _, n := range nodes {
		n.Set(meanrpc.Faults{Latency: 10 * time.Millisecond})
	}
	dir := t.TempDir()
	text, err := json.Marshal(job{dir, o.URLs})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(15, 0))
	killed := 0
	for range servers.Rounds(1, 50) {
		p := process.Start(t, process.Self(t, []string{inChild + "=" + string(text)}))
		if p.WaitFor("blocks") {
			time.Sleep(time.Duration(random.IntN(120)) * time.Millisecond)
		}
		p.Signal(os.Kill)
		if _, was := p.Wait(); was {
			killed++
		}
	}
	s := open(t, dir, h)
	r := mustSync(t, s, o)
	scratch := open(t, t.TempDir(), h)
	mustSync(t, scratch, o)
	got, want := slices.Collect(allEvents(t, s)), slices.Collect(allEvents(t, scratch))
	if !slices.EqualFunc(got, want, equal) {
		t.Errorf("got %d events, want the %d of a sync from scratch", len(got), len(want))
	}
	mustEqual(t, "after kills", snapshotOf(t, s), truthOf(t, h, r))
	t.Logf("%d processes were killed; the last run read %d of %d events", killed, r.Chains[0].Events, r.Chains[0].Stored)
}

func allEvents(t *testing.T, s *State) func(func(source.Event) bool) {
	return func(yield func(source.Event) bool) {
		for e, err := range s.Events() {
			if err != nil {
				t.Error(err)
				return
			}
			if !yield(cloned(e)) {
				return
			}
		}
	}
}

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
