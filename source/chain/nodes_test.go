package chain

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
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

// A node that lies, or has not got everything: the snapshot is right, or there is an error.
func TestLies(t *testing.T) {
	mint := func(h *history.History) (id meanrpc.LogID) {
		for b := range h.Of(h.Chains[0].ID) {
			for i, l := range b.Logs {
				if l.Address == *h.Chains[0].Registry && l.Topics[0] == history.TopicTransfer && l.Topics[1] == (history.Word{}) {
					id = meanrpc.LogID{Block: b.Number, Index: uint64(i)}
				}
			}
		}
		return id
	}
	for name, test := range map[string]struct {
		faults func(h *history.History) meanrpc.Faults
		want   int
	}{
		"another chain id": {func(*history.History) meanrpc.Faults { return meanrpc.Faults{ChainID: 99} }, mustFail},
		"lags secretly":    {func(*history.History) meanrpc.Faults { return meanrpc.Faults{Lag: 5} }, mayFail},
		"lags":             {func(*history.History) meanrpc.Faults { return meanrpc.Faults{Lag: 5, LagKnown: true} }, mustBeRight},
		"forgot a mint": {func(h *history.History) meanrpc.Faults {
			m := mint(h)
			return meanrpc.Faults{Forget: func(l meanrpc.LogID) bool { return l == m }}
		}, mustFail},
		"pruned":       {func(h *history.History) meanrpc.Faults { return meanrpc.Faults{Pruned: mint(h).Block + 1} }, mustFail},
		"removed":      {func(*history.History) meanrpc.Faults { return meanrpc.Faults{Removed: true} }, mustBeRight},
		"foreign":      {func(*history.History) meanrpc.Faults { return meanrpc.Faults{Foreign: true} }, mayFail},
		"out of range": {func(*history.History) meanrpc.Faults { return meanrpc.Faults{OutOfRange: true} }, mayFail},
		"twice":        {func(*history.History) meanrpc.Faults { return meanrpc.Faults{Twice: true} }, mayFail},
		"bad data":     {func(*history.History) meanrpc.Faults { return meanrpc.Faults{BadData: true} }, mustFail},
		"another supply": {func(*history.History) meanrpc.Faults {
			return meanrpc.Faults{Says: more("totalSupply")}
		}, mustFail},
		"no state": {func(*history.History) meanrpc.Faults { return meanrpc.Faults{NoState: true} }, mustFail},
		"always overloaded": {func(*history.History) meanrpc.Faults {
			return meanrpc.Faults{Trouble: meanrpc.Every(1, meanrpc.Trouble{Status: 503})}
		}, mustFail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, half := range []bool{false, true} {
				lie(t, half, test.faults, test.want)
			}
		})
	}
}

// more lets a function of contracts answer a number that is one more than the truth.
func more(function string) func(string, []byte) []byte {
	return func(asked string, true []byte) []byte {
		if asked == function {
			return new(big.Int).Add(big.NewInt(1), new(big.Int).SetBytes(true)).FillBytes(make([]byte, 32))
		}
		return true
	}
}

// What Sync must do when a node lies.
const (
	mayFail = iota
	mustFail
	mustBeRight
)

// lie has the node of the first chain lie, from the beginning or once half of the chains was read.
// Afterwards it is right again.
func lie(t *testing.T, half bool, faults func(*history.History) meanrpc.Faults, want int) {
	t.Helper()
	h := history.Random(11, history.Options{Transactions: 300})
	nodes := startNodes(t, h)
	o, s, id := from(nodes), open(t, t.TempDir(), h), h.Chains[0].ID
	o.Provider.Patience, o.Provider.MaxRange = 300*time.Millisecond, 50
	if half {
		for _, c := range h.Chains {
			end, _ := h.Last(c.ID)
			head := (c.First + end.Number) / 2
			nodes[c.ID].SetHead(head, head, head)
		}
		mustSync(t, s, o)
		for _, c := range h.Chains {
			end, _ := h.Last(c.ID)
			nodes[c.ID].SetHead(end.Number, end.Number, end.Number)
		}
	}
	nodes[id].Set(faults(h))
	r, err := s.Sync(t.Context(), o)
	if err == nil {
		mustEqual(t, "while the node lies", snapshotOf(t, s), truthOf(t, h, r))
	}
	if (err != nil) != (want == mustFail) && want != mayFail {
		t.Fatalf("half was read: %v: got error %v", half, err)
	}
	if err == nil {
		return
	}
	if !strings.Contains(err.Error(), fmt.Sprint(id)) {
		t.Errorf("got %v, want the chain in it", err)
	}
	nodes[id].Set(meanrpc.Faults{})
	o.Provider.Patience = 10 * time.Second
	r = mustSync(t, s, o)
	mustEqual(t, "once the node is right", snapshotOf(t, s), truthOf(t, h, r))
}

// A node of another chain with the same id is not believed once the right one was read.
func TestAnotherChainOverHTTP(t *testing.T) {
	h := history.Random(16, history.Options{})
	nodes := startNodes(t, h)
	o, s := from(nodes), open(t, t.TempDir(), h)
	mustSync(t, s, o)
	nodes[h.Chains[0].ID].Set(meanrpc.Faults{OtherChain: true})
	if _, err := s.Sync(t.Context(), o); err == nil || !strings.Contains(err.Error(), "another chain") {
		t.Fatalf("got %v, want that it is another chain", err)
	}
	nodes[h.Chains[0].ID].Set(meanrpc.Faults{})
	r := mustSync(t, s, o)
	mustEqual(t, "once the node is right", snapshotOf(t, s), truthOf(t, h, r))
}

// A log that one of two nodes has left out is found if both must agree.
func TestQuorumFindsForgottenLogs(t *testing.T) {
	servers.Wanted(t) // it takes seconds until nodes are believed to disagree
	h := history.Random(12, history.Options{Transactions: 100})
	nodes, others := startNodes(t, h), startNodes(t, h)
	o := from(nodes)
	o.Provider.Quorum, o.Provider.Patience = 2, 300*time.Millisecond
	for id, n := range others {
		// Hosts are told apart by their names; these are two names of this machine.
		o.URLs[id] = append(o.URLs[id], strings.Replace(n.URL, "127.0.0.1", "localhost", 1))
	}
	c := h.Chains[1].ID
	var op history.Block
	for b := range h.Of(c) {
		for _, l := range b.Logs {
			if l.Address == h.Chains[1].Records[0] && l.Topics[0] == history.TopicListOp {
				op = b
			}
		}
	}
	others[c].Set(meanrpc.Faults{Forget: func(l meanrpc.LogID) bool { return l.Block == op.Number }})
	s := open(t, t.TempDir(), h)
	if _, err := s.Sync(t.Context(), o); !errors.Is(err, provider.ErrDisagree) {
		t.Fatalf("got %v, want that they disagree", err)
	}
	others[c].Set(meanrpc.Faults{})
	o.Provider.Patience = 10 * time.Second
	r := mustSync(t, s, o)
	mustEqual(t, "once both agree", snapshotOf(t, s), truthOf(t, h, r))
}

func TestFewRequestsWithNothingNew(t *testing.T) {
	h := history.Random(13, history.Options{})
	nodes := startNodes(t, h)
	s := open(t, t.TempDir(), h)
	mustSync(t, s, from(nodes))
	for _, n := range nodes {
		n.Reset()
	}
	r := mustSync(t, s, from(nodes))
	for _, c := range r.Chains {
		if n := nodes[c.Chain].Counts().Requests; n > 10 || c.Events > 0 || int64(n) != c.Cost[0].Requests {
			t.Errorf("chain %d: %d requests, want at most 10 and no events: %+v", c.Chain, n, c)
		}
	}
}

func TestReorganisationOverHTTP(t *testing.T) {
	h := history.Random(14, history.Options{Transactions: 600})
	nodes := startNodes(t, h)
	o := from(nodes)
	o.Provider.Finality, o.Provider.MaxRange = provider.Latest, 10
	s := open(t, t.TempDir(), h)
	mustSync(t, s, o)
	for i, c := range h.Chains {
		end, _ := h.Last(c.ID)
		var instead []history.Block
		h, instead = h.Fork(c.ID, end.Number-20, uint64(i), history.Options{Transactions: 30})
		nodes[c.ID].Reorg(end.Number-20, instead...)
		head := end.Number + 30
		nodes[c.ID].SetHead(head, head, head)
	}
	r := mustSync(t, s, o)
	mustEqual(t, "after it", snapshotOf(t, s), truthOf(t, h, r))
	for _, c := range r.Chains {
		if c.Undone == nil {
			t.Errorf("chain %d: nothing was undone", c.Chain)
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
