package chain

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/goccy/go-json"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// A world is a chain with its nodes, which may be reorganised at any moment between two answers.
type world struct {
	chain history.Chain

	mu      sync.Mutex
	blocks  map[uint64]history.Block // those with logs
	forks   []uint64                 // first blocks of reorganisations, in their order
	head    uint64
	step    uint64                    // blocks in a part
	meanly  func(method string) error // before each answer; nil for nothing
	supply  func(int64) int64         // what the registry says instead of the truth; nil for that
	noTime  bool                      // logs do not say it
	noState bool                      // contracts cannot be asked
	asked   map[string]int
}

func newWorld(c history.Chain, blocks []history.Block) *world {
	w := &world{chain: c, head: c.First, step: 1 << 20, blocks: map[uint64]history.Block{}, asked: map[string]int{}}
	for _, b := range blocks {
		if b.Chain == c.ID {
			w.blocks[b.Number] = b
			w.head = max(w.head, b.Number)
		}
	}
	return w
}

// answer makes an answer while nothing changes, after what may happen before it.
func (w *world) answer(method string, make func() error) error {
	w.asked[method]++
	if w.meanly != nil {
		if err := w.meanly(method); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return make()
}

func (w *world) block(number uint64) provider.Block {
	text := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, w.chain.ID), number)
	for i, first := range w.forks {
		if first <= number {
			text = binary.BigEndian.AppendUint64(text, uint64(i))
		}
	}
	b := provider.Block{Number: number, Hash: sha256.Sum256(text), Time: 1 + int64(number)}
	if logs, ok := w.blocks[number]; ok {
		b.Time = logs.Time
	}
	return b
}

func (w *world) Head(_ context.Context, least uint64) (b provider.Block, err error) {
	return b, w.answer("head", func() error {
		if b = w.block(w.head); w.head < least {
			return provider.ErrBehind
		}
		return nil
	})
}

func (w *world) Block(_ context.Context, number uint64) (b provider.Block, err error) {
	return b, w.answer("block", func() error {
		if b = w.block(number); w.head < number {
			return provider.ErrBehind
		}
		return nil
	})
}

func (w *world) Times(_ context.Context, blocks map[uint64]common.Hash) (times map[uint64]int64, err error) {
	times = map[uint64]int64{}
	return times, w.answer("times", func() error {
		for number, hash := range blocks {
			b := w.block(number)
			if b.Hash != hash {
				return provider.ErrDisagree
			}
			times[number] = b.Time
		}
		return nil
	})
}

func (w *world) Logs(ctx context.Context, addresses []common.Address, topics []common.Hash, from, to uint64, done func(provider.Blocks) error) error {
	for ; from <= to; from += w.step {
		p := provider.Blocks{From: from, To: min(to, from+w.step-1)}
		err := w.answer("logs", func() error {
			p.Logs = w.logs(p.From, p.To, func(l types.Log) bool {
				return slices.Contains(addresses, l.Address) && len(l.Topics) > 0 && slices.Contains(topics, l.Topics[0])
			})
			return nil
		})
		if err == nil {
			p.Last, err = w.Block(ctx, p.To)
		}
		if err == nil {
			err = done(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) logs(from, to uint64, wanted func(types.Log) bool) (all []types.Log) {
	for _, number := range slices.Sorted(maps.Keys(w.blocks)) {
		if number < from || to < number {
			continue
		}
		b := w.block(number)
		for i, l := range w.blocks[number].Logs {
			log := raw(l, number, uint64(i))
			if log.BlockHash = b.Hash; !w.noTime {
				log.BlockTimestamp = uint64(b.Time)
			}
			if wanted(log) {
				all = append(all, log)
			}
		}
	}
	return all
}

func (w *world) Call(_ context.Context, calls []provider.Call, at provider.Block, except []string) (s provider.State, err error) {
	w.mu.Lock() // no other request comes before this one, which does not show the chain
	defer w.mu.Unlock()
	w.asked["call"]++
	if w.noState || len(except) > 0 {
		return s, provider.ErrNoState
	}
	contracts := meanrpc.NewContracts()
	for _, number := range slices.Sorted(maps.Keys(w.blocks)) {
		for _, l := range w.blocks[number].Logs {
			contracts.Log(number, l)
		}
	}
	for _, c := range calls {
		answer, _ := contracts.Answer(c.To, c.Data, at.Number)
		if w.supply != nil && len(c.Data) == 4 {
			answer = common.BigToHash(big.NewInt(w.supply(new(big.Int).SetBytes(answer).Int64()))).Bytes()
		}
		s.Results = append(s.Results, answer)
	}
	s.Host, s.Origin, s.Together = "world", "world", true
	return s, nil
}

func (w *world) Newest(context.Context) (provider.Block, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.block(w.head), nil
}

func (w *world) Again()     {}
func (w *world) Hosts() int { return 1 }

func (w *world) Cost() []provider.Cost { return []provider.Cost{{Host: "world"}} }
func (w *world) Close()                {}

// reorganise replaces the blocks from first on by some of other.
func (w *world) reorganise(first uint64, other *world) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forks = append(w.forks, first)
	maps.DeleteFunc(w.blocks, func(number uint64, _ history.Block) bool { return number >= first })
	for number, b := range other.blocks {
		if number >= first {
			w.blocks[number] = b
		}
	}
}

// events returns those up to a block, as they are now.
func (w *world) events(t *testing.T, c source.Chain, to uint64) (all []source.Event) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	d := newDecoder(c)
	for _, l := range w.logs(0, to, func(l types.Log) bool { _, ours := d.kinds[site.Address(l.Address)]; return ours }) {
		e, _, ok, err := d.decode(&l)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			e.Time = milliseconds(w.block(e.Block).Time)
			all = append(all, e)
		}
	}
	return all
}

// deployment is that of a history's chains.
func deployment(chains []history.Chain) *source.Deployment {
	d := &source.Deployment{}
	for _, c := range chains {
		chain := source.Chain{ID: c.ID, Name: fmt.Sprint("chain ", c.ID)}
		start := func(a *history.Address) *source.Start {
			if a == nil {
				return nil
			}
			return &source.Start{Address: site.Address(*a), FirstBlock: c.First}
		}
		chain.Registry, chain.Accounts = start(c.Registry), start(c.Accounts)
		for _, a := range c.Records {
			chain.Records = append(chain.Records, *start(&a))
		}
		d.Chains = append(d.Chains, chain)
	}
	return d
}

type noProgress struct{}

func (noProgress) Stage(string, int64) {}
func (noProgress) Add(int64)           {}
func (noProgress) End()                {}

// worlds are the chains of a history.
type worlds map[uint64]*world

func newWorlds(h *history.History) worlds {
	all := worlds{}
	for _, c := range h.Chains {
		all[c.ID] = newWorld(c, h.Blocks)
	}
	return all
}

// options read from worlds.
func (all worlds) options() Options {
	o := Options{URLs: map[uint64][]string{}, Progress: noProgress{}, NoSync: true, every: time.Nanosecond}
	for id := range all {
		o.URLs[id] = []string{"http://world"}
	}
	o.dial = func(_ context.Context, chain uint64, _ []string, _ provider.Options) (nodes, error) {
		return all[chain], nil
	}
	return o
}

// check compares the stored events with the current worlds.
func (all worlds) check(t *testing.T, s *State, r *Report) {
	t.Helper()
	got := map[uint64][]source.Event{}
	for e, err := range s.Events() {
		if err != nil {
			t.Fatal(err)
		}
		got[e.Contract.Chain] = append(got[e.Contract.Chain], cloned(e))
	}
	for i, c := range s.deployment.Chains {
		want := all[c.ID].events(t, c, r.Chains[i].To)
		if !slices.EqualFunc(got[c.ID], want, equal) {
			t.Fatalf("chain %d up to block %d: got %d events, want these %d", c.ID, r.Chains[i].To, len(got[c.ID]), len(want))
		}
		if n := r.Chains[i].Stored; n != uint64(len(want)) {
			t.Errorf("chain %d: the report has %d events, want %d", c.ID, n, len(want))
		}
	}
}

func open(t *testing.T, dir string, h *history.History) *State {
	t.Helper()
	s, err := Open(dir, deployment(h.Chains))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustSync(t *testing.T, s *State, o Options) *Report {
	t.Helper()
	r, err := s.Sync(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// However chains are reorganised while they are read, and whenever a run ends: a run that succeeds
// leaves the events of the chains as they are, and a run succeeds once they are quiet.
func TestSyncOfRestlessChains(t *testing.T) {
	for seed := range uint64(servers.Rounds(20, 600)) {
		restless(t, seed)
	}
}

func restless(t *testing.T, seed uint64) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	random := rand.New(rand.NewPCG(seed, 0))
	h := history.Random(seed, history.Options{Transactions: 40})
	others := newWorlds(history.Random(seed+1<<32, history.Options{Transactions: 60, Chains: h.Chains}))
	all := newWorlds(h)
	errCut := errors.New("cut off")
	for i, id := range slices.Sorted(maps.Keys(all)) {
		w := all[id]
		end, random := w.head+uint64(random.IntN(9)), rand.New(rand.NewPCG(seed, uint64(i)))
		w.head, w.step, w.noTime = w.chain.First, 1+random.Uint64N(20), random.IntN(4) == 0
		w.meanly = func(string) error {
			w.head = min(end, w.head+random.Uint64N(1+w.step))
			switch random.IntN(20) {
			case 0:
				return errCut
			case 1, 2:
				depth := random.Uint64N(1 << random.IntN(6))
				w.reorganise(max(w.chain.First+1, w.head-min(w.head, depth)), others[id])
			}
			return nil
		}
	}
	dir := t.TempDir()
	for range 6 {
		s, err := Open(dir, deployment(h.Chains))
		if err != nil {
			t.Fatal(err)
		}
		o := all.options()
		o.Provider.Finality = finalities[random.IntN(3)]
		if random.IntN(2) == 0 {
			o.every = time.Hour
		}
		if r, err := s.Sync(t.Context(), o); err == nil {
			all.check(t, s, r)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range all {
		w.meanly = nil
	}
	s := open(t, dir, h)
	r := mustSync(t, s, all.options())
	all.check(t, s, r)
	for _, c := range r.Chains {
		if c.To != all[c.Chain].head {
			t.Errorf("chain %d: read up to %d, want the head %d", c.Chain, c.To, all[c.Chain].head)
		}
	}
}

func TestSecondRunAsksForNewBlocksOnly(t *testing.T) {
	h := history.Random(1, history.Options{Transactions: 200})
	all, s := newWorlds(h), open(t, t.TempDir(), h)
	for _, w := range all {
		w.step = 10
	}
	first := mustSync(t, s, all.options())
	for i, c := range first.Chains {
		if want := all[c.Chain]; c.From != want.chain.First || c.To != want.head || c.Events == 0 || c.Events != c.Stored {
			t.Errorf("first run: got %+v", first.Chains[i])
		}
	}
	for _, grow := range []uint64{0, 5} {
		for _, w := range all {
			w.head += grow
			clear(w.asked)
		}
		r := mustSync(t, s, all.options())
		all.check(t, s, r)
		for _, c := range r.Chains {
			n := 1 // eth_chainId
			for _, times := range all[c.Chain].asked {
				n += times
			}
			if n > 8 || c.Events != 0 || c.To-c.From+1 != grow {
				t.Errorf("%d new blocks: %d requests (%v), %+v, want at most 8 and no events", grow, n, all[c.Chain].asked, c)
			}
		}
	}
}

func TestAsOfIsTheEarliestOfAllChains(t *testing.T) {
	h := history.Random(2, history.Options{})
	all, s := newWorlds(h), open(t, t.TempDir(), h)
	mustSync(t, s, all.options())
	earliest := int64(1 << 60)
	for _, w := range all {
		earliest = min(earliest, w.block(w.head).Time)
	}
	if got, err := s.AsOf(); err != nil || got.Unix() != earliest {
		t.Errorf("got %v, %v, want %v", got, err, time.Unix(earliest, 0))
	}
}

// A node that lags behind the state loses no events, unless a stronger finality excludes their
// blocks.
func TestHeadBeforeWhatWasRead(t *testing.T) {
	h := history.Random(3, history.Options{})
	all, s := newWorlds(h), open(t, t.TempDir(), h)
	o := all.options()
	mustSync(t, s, o)
	heads := map[uint64]uint64{}
	for id, w := range all {
		heads[id] = w.head
		w.head -= 5
	}
	if _, err := s.Sync(t.Context(), o); !errors.Is(err, provider.ErrBehind) || !strings.Contains(err.Error(), "lag") {
		t.Errorf("nodes that lag: got %v, want ErrBehind", err)
	}
	for id, w := range all {
		w.head = heads[id] + 3
	}
	o.Provider.Finality = provider.Latest
	if r := mustSync(t, s, o); r.Chains[0].Undone != nil || r.Chains[0].To != r.Chains[0].From+2 {
		t.Errorf("got %+v, want three blocks more and nothing undone", r.Chains[0])
	}
	for id, w := range all {
		w.head = heads[id] + 1
	}
	o.Provider.Finality = provider.Finalized
	r := mustSync(t, s, o)
	all.check(t, s, r)
	if c := r.Chains[0]; c.To != heads[c.Chain]+1 {
		t.Errorf("after a weaker finality: read up to %d, want %d", c.To, heads[c.Chain]+1)
	}
}

func TestReorganisationIsUndoneAndReported(t *testing.T) {
	h := history.Random(4, history.Options{Transactions: 200})
	all, s := newWorlds(h), open(t, t.TempDir(), h)
	others := newWorlds(history.Random(5, history.Options{Transactions: 200, Chains: h.Chains}))
	for _, w := range all {
		w.step = 10
	}
	mustSync(t, s, all.options())
	id := h.Chains[0].ID
	all[id].reorganise(all[id].head-25, others[id])
	r := mustSync(t, s, all.options())
	all.check(t, s, r)
	for _, c := range r.Chains {
		if changed := c.Chain == id; changed != (c.Undone != nil) || changed && (c.Undone.Blocks < 26 || c.Undone.Blocks >= 36) {
			t.Errorf("chain %d: got %+v undone", c.Chain, c.Undone)
		}
	}
	if !strings.Contains(r.String(), "forgot") {
		t.Errorf("got a report without it: %s", r)
	}
}

// Nodes of another chain with the same ID do not count as a reorganisation.
func TestAnotherChain(t *testing.T) {
	h := history.Random(6, history.Options{})
	all, s := newWorlds(h), open(t, t.TempDir(), h)
	o := all.options()
	mustSync(t, s, o)
	id := h.Chains[0].ID
	all[id].reorganise(0, all[id])
	all[id].blocks = newWorlds(h)[id].blocks
	if _, err := s.Sync(t.Context(), o); err == nil || !strings.Contains(err.Error(), fmt.Sprint("--reread ", id)) {
		t.Fatalf("got %v, want an error that says how to read it again", err)
	}
	o.Reread = map[uint64]uint64{id: 0}
	r := mustSync(t, s, o)
	all.check(t, s, r)
}

func TestOptionsThatAreRefused(t *testing.T) {
	h := history.Random(9, history.Options{})
	all, s := newWorlds(h), open(t, t.TempDir(), h)
	id := h.Chains[0].ID
	for want, change := range map[string]func(*Options){
		fmt.Sprintf("--rpc %d=URL", id): func(o *Options) { delete(o.URLs, id) },
		"no contracts on chain 77":      func(o *Options) { o.URLs[77] = []string{"http://x"} },
		"--reread 78":                   func(o *Options) { o.Reread = map[uint64]uint64{78: 0} },
		"--finality":                    func(o *Options) { o.Provider.Finality = "soon" },
		"cannot dial": func(o *Options) {
			o.dial = func(context.Context, uint64, []string, provider.Options) (nodes, error) {
				return (*world)(nil), errors.New("cannot dial")
			}
		},
	} {
		o := all.options()
		change(&o)
		if _, err := s.Sync(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A run that was paused while its folder was replaced, and wakes up when another run uses the new
// one, does not touch that.
func TestReplacedFolder(t *testing.T) {
	h := history.Random(9, history.Options{})
	all, dir := newWorlds(h), filepath.Join(t.TempDir(), "state")
	paused := open(t, dir, h)
	o := all.options()
	o.every = time.Nanosecond // checkpoints after each part
	var second *State
	others := newWorlds(h)
	o.Progress = onAdd{do: sync.OnceFunc(func() {
		err := os.Rename(dir, dir+".old")
		if err == nil {
			second, err = Open(dir, deployment(h.Chains))
		}
		if err == nil {
			_, err = second.Sync(t.Context(), others.options())
		}
		if err != nil {
			t.Error(err)
		}
	})}
	if _, err := paused.Sync(t.Context(), o); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("the paused run: got %v, want that its folder was replaced", err)
	}
	// The run may have been paused just before it opens a file, and know nothing of the
	// replacement.
	c := paused.deployment.Chains[0]
	late, err := openStore(paused.folder(c), c, new(uint64), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := late.close(); err != nil {
		t.Error(err)
	}
	if _, err := second.AsOf(); err != nil {
		t.Errorf("its replacement: got %v, want it untouched", err)
	}
	others.check(t, second, mustSync(t, second, others.options()))
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if _, err := paused.Sync(t.Context(), o); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("another Sync of the paused run: got %v, want that its folder was replaced", err)
	}
}

// onAdd calls do when blocks were read.
type onAdd struct {
	noProgress
	do func()
}

func (p onAdd) Add(int64) { p.do() }

// A deployment whose first block is too late loses tokens, and the error says that it may be so.
func TestFirstBlockTooLate(t *testing.T) {
	h := history.Random(7, history.Options{Transactions: 200})
	all, d := newWorlds(h), deployment(h.Chains)
	late := (h.Chains[0].First + all[h.Chains[0].ID].head) / 2
	base := &d.Chains[0]
	base.Registry.FirstBlock, base.Accounts.FirstBlock = late, late
	for i := range base.Records {
		base.Records[i].FirstBlock = late
	}
	s, err := Open(t.TempDir(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Sync(t.Context(), all.options()); err == nil || !strings.Contains(err.Error(), fmt.Sprint("first_block ", late)) {
		t.Errorf("got %v, want that the first block may be wrong", err)
	}
}

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

func TestReport(t *testing.T) {
	r := &Report{Seconds: 1.5, Chains: []PerChain{
		{
			Chain: 8453, Name: "Base", From: 100, To: 199, AsOf: "2026-11-22T03:00:00Z", Events: 7, Stored: 20, Tokens: 3, Check: &Check{How: CheckedByContracts, Host: "a.example", Block: 199, Tokens: 3, Slots: 4, Values: 10},
			Cost: []provider.Cost{{Host: "node.example", Requests: 5, Calls: map[string]int64{"eth_getLogs": 4, "eth_chainId": 1}, Received: 2_500_000, Retries: 2, Limited: 1, Waited: time.Second}},
		},
		{Chain: 10, Name: "OP Mainnet", From: 50, To: 49, Undone: &Undone{Blocks: 3, Events: 1}},
	}}
	want := `Base (8453): read blocks 100 to 199, 7 new events of 20, as of 2026-11-22T03:00:00Z; confirmed by the contracts (a.example, block 199): 3 tokens, the operations of 4 slots, 10 values
  node.example: 5 requests with 5 calls, 2.5 MB received, 2 tried again, 1 of them because of a rate limit
OP Mainnet (10): read no blocks, 0 new events of 0; forgot 3 blocks with 1 events, which may no longer be part of the chain
`
	if got := r.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	got, err := json.Marshal(r.Chains[1])
	wantJSON := `{"chain":10,"name":"OP Mainnet","from":50,"to":49,"as_of":"","events":0,"stored":0,"tokens":0,"check":null,"undone":{"blocks":3,"events":1},"repairs":null,"cost":null}`
	if err != nil || string(got) != wantJSON {
		t.Errorf("got %s, %v, want %s", got, err, wantJSON)
	}
}
