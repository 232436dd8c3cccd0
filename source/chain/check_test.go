package chain

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/goccy/go-json"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/source"
)

// aLog is a log of a history, with where it is.
type aLog struct {
	meanrpc.LogID
	history.Log
}

// lossy returns the logs of a chain that a snapshot may depend on.
func lossy(h *history.History, c history.Chain) (all []aLog) {
	d := newDecoder(deployment(h.Chains).Chains[0])
	for _, of := range deployment(h.Chains).Chains {
		if of.ID == c.ID {
			d = newDecoder(of)
		}
	}
	for b := range h.Of(c.ID) {
		for i, l := range b.Logs {
			log := raw(l, b.Number, uint64(i))
			if e, _, ok, err := d.decode(&log); err == nil && ok && (!hasKey(e.Kind) || e.Key == userKey || e.Key == primaryKey) {
				all = append(all, aLog{meanrpc.LogID{Block: b.Number, Index: uint64(i)}, l})
			}
		}
	}
	return all
}

// forgetting leaves out the logs that match.
func forgetting(logs []aLog, match func(aLog) bool) func(meanrpc.LogID) bool {
	gone := map[meanrpc.LogID]bool{}
	for _, l := range logs {
		if match(l) {
			gone[l.LogID] = true
		}
	}
	return func(id meanrpc.LogID) bool { return gone[id] }
}

// losses are ways in which a node may not have the logs that it should have.
var losses = map[string]func(r *rand.Rand, h *history.History, c history.Chain) meanrpc.Faults{
	"nothing at all": func(_ *rand.Rand, h *history.History, c history.Chain) meanrpc.Faults {
		return meanrpc.Faults{Pruned: 1 << 60}
	},
	"pruned": func(r *rand.Rand, h *history.History, c history.Chain) meanrpc.Faults {
		logs := lossy(h, c)
		return meanrpc.Faults{Pruned: logs[r.IntN(len(logs))].Block + 1}
	},
	"one contract": func(r *rand.Rand, h *history.History, c history.Chain) meanrpc.Faults {
		logs := lossy(h, c)
		by := logs[r.IntN(len(logs))].Address
		return meanrpc.Faults{Forget: forgetting(logs, func(l aLog) bool { return l.Address == by })}
	},
	"one event": func(r *rand.Rand, h *history.History, c history.Chain) meanrpc.Faults {
		logs := lossy(h, c)
		topic := logs[r.IntN(len(logs))].Topics[0]
		return meanrpc.Faults{Forget: forgetting(logs, func(l aLog) bool { return l.Topics[0] == topic })}
	},
	"some blocks": func(r *rand.Rand, h *history.History, c history.Chain) meanrpc.Faults {
		logs := lossy(h, c)
		from := logs[r.IntN(len(logs))].Block
		to := from + r.Uint64N(5)
		return meanrpc.Faults{Forget: forgetting(logs, func(l aLog) bool { return from <= l.Block && l.Block <= to })}
	},
	"the last log": func(_ *rand.Rand, h *history.History, c history.Chain) meanrpc.Faults {
		logs := lossy(h, c)
		last := logs[len(logs)-1].LogID
		return meanrpc.Faults{Forget: forgetting(logs, func(l aLog) bool { return l.LogID == last })}
	},
	"some logs": func(r *rand.Rand, h *history.History, c history.Chain) meanrpc.Faults {
		return meanrpc.Faults{Forget: forgetting(lossy(h, c), func(aLog) bool { return r.IntN(10) == 0 })}
	},
	"a cap": func(r *rand.Rand, _ *history.History, _ history.Chain) meanrpc.Faults {
		return meanrpc.Faults{SilentCap: 20 + r.IntN(60)}
	},
}

// stateless are ways in which contracts are hard to ask.
var stateless = []func(*rand.Rand, *meanrpc.Faults){
	func(*rand.Rand, *meanrpc.Faults) {},
	func(_ *rand.Rand, f *meanrpc.Faults) { f.NoMulticall = true },
	func(r *rand.Rand, f *meanrpc.Faults) { f.MaxCalls = 1 + r.IntN(20) },
	func(_ *rand.Rand, f *meanrpc.Faults) { f.NoMulticall, f.NoBatches = true, true },
	func(r *rand.Rand, f *meanrpc.Faults) { f.State = 1 + r.Uint64N(4) },
	func(_ *rand.Rand, f *meanrpc.Faults) { f.IgnoresBlock = true },
	func(_ *rand.Rand, f *meanrpc.Faults) { // only the functions that the protocol's documents name
		f.Says = func(function string, true []byte) []byte {
			if function == "ownerOf" || function == "getListStorageLocation" {
				return nil
			}
			return true
		}
	},
}

// setHeads lets the chains of nodes grow: the newest block of each is a little after the final one.
func setHeads(h *history.History, nodes map[uint64]*meanrpc.Node, share float64) {
	for _, c := range h.Chains {
		end, _ := h.Last(c.ID)
		final := c.First + uint64(share*float64(end.Number-c.First))
		nodes[c.ID].SetHead(min(end.Number, final+5), final, final)
	}
}

// However a node loses logs, from the beginning or later, always or only behind some requests: the
// snapshot is right or there is an error, which names the chain. Then a good node repairs it.
func TestLostLogs(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range *seeds {
				lost(t, seed, loss)
			}
		})
	}
}

var seeds = flag.Uint64("seeds", uint64(len(stateless)), "histories that TestLostLogs tries with each loss")

func lost(t *testing.T, seed uint64, loss func(*rand.Rand, *history.History, history.Chain) meanrpc.Faults) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 22))
	h := history.Random(seed, history.Options{Transactions: 150})
	nodes := startNodes(t, h)
	o, s := from(nodes), open(t, t.TempDir(), h)
	o.Provider.Patience, o.Provider.MaxRange = 5*time.Second, 10
	later := seed%2 == 1
	if later {
		setHeads(h, nodes, 0.5)
		mustSync(t, s, o)
	}
	setHeads(h, nodes, 0.9)
	var id uint64
	for _, c := range h.Chains {
		f := meanrpc.Faults{}
		if of := lossy(h, c); len(of) > 0 && (c.Registry != nil || r.IntN(2) == 0) {
			f, id = loss(r, h, c), c.ID
		}
		if seed%3 == 2 { // as behind a load balancer
			f.Applies = func(r meanrpc.Request) bool { return rand.New(rand.NewPCG(seed, uint64(r.N))).IntN(3) == 0 }
		}
		stateless[seed%uint64(len(stateless))](r, &f)
		nodes[c.ID].Set(f)
	}
	report, err := s.Sync(t.Context(), o)
	what := fmt.Sprintf("seed %d, %v", seed, err)
	if err == nil {
		if !slices.ContainsFunc(report.Chains, func(c PerChain) bool { return c.Check.Moved > 0 }) {
			mustEqual(t, what, snapshotOf(t, s), truthOf(t, h, report))
		}
		for _, c := range report.Chains {
			if c.Check.How != CheckedByContracts && c.Check.How != CheckedNothing {
				t.Errorf("%s: chain %d: got %+v", what, c.Chain, c.Check)
			}
		}
	} else if !strings.Contains(err.Error(), "disagree") || !strings.Contains(err.Error(), "by logs") || id == 0 {
		t.Errorf("%s: want that contracts and logs disagree", what)
	}
	for _, n := range nodes {
		n.Set(meanrpc.Faults{})
	}
	report = mustSync(t, s, o)
	mustEqual(t, what+", once nodes are right", snapshotOf(t, s), truthOf(t, h, report))
	before := report.Chains[0].Cost[0].Calls["eth_getLogs"]
	if report = mustSync(t, s, o); report.Chains[0].Cost[0].Calls["eth_getLogs"] > 0 || report.Chains[0].Check.How != CheckedEarlier {
		t.Errorf("%s: with nothing new: got %+v after %d requests for logs, want none", what, report.Chains[0], before)
	}
}

// A node that has all logs but loses them on its way is repaired by another one in the same run.
func TestAnotherHostRepairs(t *testing.T) {
	h := history.Random(31, history.Options{Transactions: 200})
	bad, good := startNodes(t, h), startNodes(t, h)
	o := from(bad)
	for id, n := range good {
		o.URLs[id] = append(o.URLs[id], strings.Replace(n.URL, "127.0.0.1", "localhost", 1)) // another host
	}
	for _, half := range []float64{0.5, 1} {
		s := open(t, t.TempDir(), h)
		for _, c := range h.Chains {
			bad[c.ID].Set(meanrpc.Faults{})
		}
		setHeads(h, bad, half)
		setHeads(h, good, half)
		if half < 1 {
			mustSync(t, s, o)
			setHeads(h, bad, 1)
			setHeads(h, good, 1)
		}
		for _, c := range h.Chains {
			random := rand.New(rand.NewPCG(1, 1))
			bad[c.ID].Set(meanrpc.Faults{Forget: forgetting(lossy(h, c), func(aLog) bool { return random.IntN(3) == 0 })})
		}
		r := mustSync(t, s, o)
		mustEqual(t, "with a good host", snapshotOf(t, s), truthOf(t, h, r))
		if c := r.Chains[0]; len(c.Repairs) == 0 || !strings.Contains(r.String(), "again") {
			t.Errorf("got %s, want that it was read again", r)
		} else if verified := half < 1 && c.Repairs[0].From == c.From; half < 1 && !verified {
			t.Errorf("got repairs %+v, want from where it was verified, %d", c.Repairs, c.From)
		}
	}
}

// A consistent host that contradicts another host is not believed.
func TestHostThatAgreesWithItself(t *testing.T) {
	h := history.Random(32, history.Options{Transactions: 200})
	forgetful, empty := startNodes(t, h), startNodes(t, h)
	o := from(forgetful)
	for id, n := range empty {
		o.URLs[id] = append(o.URLs[id], strings.Replace(n.URL, "127.0.0.1", "localhost", 1))
	}
	for _, c := range h.Chains {
		forgetful[c.ID].Set(meanrpc.Faults{Pruned: 1 << 60})
		empty[c.ID].Set(meanrpc.Faults{Pruned: 1 << 60, Says: func(function string, true []byte) []byte {
			if function == "ownerOf" {
				return nil
			}
			return make([]byte, len(true))
		}})
	}
	s := open(t, t.TempDir(), h)
	if _, err := s.Sync(t.Context(), o); err == nil || !strings.Contains(err.Error(), "disagree") {
		t.Fatalf("got %v, want that they disagree", err)
	}
}

// A host whose contracts do not tell counts is skipped, like one whose state is older than the
// contracts.
func TestHostThatDoesNotTell(t *testing.T) {
	h := history.Random(36, history.Options{Transactions: 100})
	mute, good := startNodes(t, h), startNodes(t, h)
	o := from(mute)
	for _, n := range mute {
		n.Set(meanrpc.Faults{Says: func(string, []byte) []byte { return nil }})
	}
	if _, err := open(t, t.TempDir(), h).Sync(t.Context(), o); !errors.Is(err, errUnknown) || !strings.Contains(err.Error(), "did not tell") {
		t.Errorf("alone: got %v, want that it did not tell", err)
	}
	for id, n := range good {
		o.URLs[id] = append(o.URLs[id], strings.Replace(n.URL, "127.0.0.1", "localhost", 1))
	}
	s := open(t, t.TempDir(), h)
	r := mustSync(t, s, o)
	mustEqual(t, "with a good host", snapshotOf(t, s), truthOf(t, h, r))
	if c := r.Chains[0].Check; c.How != CheckedByContracts || !strings.HasPrefix(c.Host, "localhost") {
		t.Errorf("got %+v, want what the good host says", c)
	}
}

// A chain whose contracts do not answer ends the check of the other chains, at any moment.
func TestCheckEndsWithThatOfAnotherChain(t *testing.T) {
	h := history.Random(36, history.Options{Transactions: 100})
	nodes := startNodes(t, h)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	for _, n := range nodes {
		n.Set(meanrpc.Faults{Says: func(string, []byte) []byte {
			cancel(fmt.Errorf("%w: another chain", errUnknown))
			return nil
		}})
	}
	ended := make(chan error, 1)
	go func() {
		_, err := open(t, t.TempDir(), h).Sync(ctx, from(nodes))
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was cancelled", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the check does not end")
	}
}

// What no contract can be asked about is an error, unless two hosts agreed on it or the options allow
// it; and it is read again by the next run.
func TestNothingUncheckedIsKept(t *testing.T) {
	for _, after := range []string{"an error", "unchecked"} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			h := history.Random(33, history.Options{Transactions: 200})
			nodes := startNodes(t, h)
			o, s := from(nodes), open(t, t.TempDir(), h)
			loses := func(c history.Chain) func(meanrpc.LogID) bool {
				random := rand.New(rand.NewPCG(2, 2))
				return forgetting(lossy(h, c), func(aLog) bool { return random.IntN(3) == 0 })
			}
			for _, c := range h.Chains {
				nodes[c.ID].Set(meanrpc.Faults{NoState: true, Forget: loses(c)})
			}
			o.Unchecked = after == "unchecked"
			r, err := s.Sync(t.Context(), o)
			if o.Unchecked {
				if err != nil || r.Chains[0].Check.How != CheckedNot || !strings.Contains(r.String(), "NOT CHECKED") || r.Chains[0].Check.Why == "" {
					t.Fatalf("got %v, %s, want success that says it", err, r)
				}
			} else if !errors.Is(err, errUnknown) || !strings.Contains(err.Error(), "--unchecked") || !strings.Contains(err.Error(), "--quorum 2") {
				t.Fatalf("got %v, want an error that says what to do", err)
			}
			for _, n := range nodes { // good logs, but still no state
				n.Set(meanrpc.Faults{NoState: true})
			}
			o.Unchecked = true
			r = mustSync(t, s, o)
			mustEqual(t, "read again", snapshotOf(t, s), truthOf(t, h, r))
			for _, n := range nodes {
				n.Set(meanrpc.Faults{})
				n.Reset()
			}
			o.Unchecked = false
			r = mustSync(t, s, o)
			mustEqual(t, "checked", snapshotOf(t, s), truthOf(t, h, r))
			if c := r.Chains[0]; c.Check.How != CheckedByContracts || len(c.Repairs) > 0 {
				t.Errorf("got %+v, want the contracts to confirm the logs", c)
			}
		})
	}
}

// Two hosts that agree on all logs suffice, but not for logs that an earlier run got from one host.
func TestQuorumWithoutState(t *testing.T) {
	h := history.Random(34, history.Options{Transactions: 200})
	nodes, others := startNodes(t, h), startNodes(t, h)
	s, one := open(t, t.TempDir(), h), from(nodes)
	random := rand.New(rand.NewPCG(3, 3))
	for _, c := range h.Chains {
		nodes[c.ID].Set(meanrpc.Faults{NoState: true, Forget: forgetting(lossy(h, c), func(aLog) bool { return random.IntN(3) == 0 })})
		others[c.ID].Set(meanrpc.Faults{NoState: true})
	}
	setHeads(h, nodes, 0.5)
	one.Unchecked = true
	mustSync(t, s, one)
	two := from(nodes)
	two.Provider.Quorum = 2
	for id, n := range others {
		two.URLs[id] = append(two.URLs[id], strings.Replace(n.URL, "127.0.0.1", "localhost", 1))
		nodes[id].Set(meanrpc.Faults{NoState: true})
	}
	setHeads(h, nodes, 1)
	setHeads(h, others, 1)
	r := mustSync(t, s, two)
	mustEqual(t, "by two hosts", snapshotOf(t, s), truthOf(t, h, r))
	if c := r.Chains[0].Check; c.How != CheckedByQuorum || c.Hosts != 2 || !strings.Contains(r.String(), "2 hosts agreed") {
		t.Errorf("got %+v", c)
	}
	if r = mustSync(t, s, two); r.Chains[0].Check.How != CheckedEarlier {
		t.Errorf("with nothing new: got %+v", r.Chains[0].Check)
	}
}

// A state of the format before is checked when it is opened, and read again if it lacks logs.
func TestStateOfTheFormatBefore(t *testing.T) {
	for _, lacks := range []bool{false, true} {
		h := history.Random(35, history.Options{Transactions: 200})
		nodes, dir := startNodes(t, h), t.TempDir()
		s := open(t, dir, h)
		o := from(nodes)
		random := rand.New(rand.NewPCG(4, 4))
		if lacks {
			for _, c := range h.Chains {
				nodes[c.ID].Set(meanrpc.Faults{NoState: true, Forget: forgetting(lossy(h, c), func(aLog) bool { return random.IntN(3) == 0 })})
			}
		}
		o.Unchecked = true
		mustSync(t, s, o)
		for _, c := range s.deployment.Chains {
			downgrade(t, s.folder(c).String())
		}
		for _, n := range nodes {
			n.Set(meanrpc.Faults{})
			n.Reset()
		}
		o.Unchecked = false
		r := mustSync(t, s, o)
		mustEqual(t, "after the upgrade", snapshotOf(t, s), truthOf(t, h, r))
		if c := r.Chains[0]; (len(c.Repairs) > 0) != lacks || c.Check.How != CheckedByContracts || (c.Cost[0].Calls["eth_getLogs"] > 0) != lacks {
			t.Errorf("lacks logs: %v: got %+v", lacks, c)
		}
	}
}

// downgrade makes a checkpoint one of the format before.
func downgrade(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, checkpointFile))
	if err != nil {
		t.Fatal(err)
	}
	var check map[string]any
	if err := json.Unmarshal(text, &check); err != nil {
		t.Fatal(err)
	}
	check["version"] = 1
	for _, name := range []string{"verified", "counted", "quorum", "unchecked"} {
		delete(check, name)
	}
	if text, err = json.Marshal(check); err == nil {
		err = os.WriteFile(filepath.Join(dir, checkpointFile), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A list may be placed in a slot of which a node has no event at all, on another chain.
func TestPlacedSlotWithoutEvents(t *testing.T) {
	h := &history.History{Chains: history.Production()}
	base, op := h.Chains[0], h.Chains[1]
	owner, slot := history.Address{19: 7}, history.Number(5)
	h.Blocks = []history.Block{
		{Chain: base.ID, Number: base.First + 1, Time: 1_727_000_000, Logs: []history.Log{
			history.Transfer(*base.Registry, history.Address{}, owner, history.Number(0)),
			history.Location(*base.Registry, history.Number(0), history.LocationBytes(history.Number(op.ID), op.Records[0], slot)),
		}},
		{Chain: op.ID, Number: op.First + 1, Time: 1_727_000_000, Logs: []history.Log{
			history.Op(op.Records[0], slot, append([]byte{1, 1, 1, 1}, owner[:]...)),
		}},
	}
	nodes := startNodes(t, h)
	nodes[op.ID].Set(meanrpc.Faults{Pruned: 1 << 60})
	o, s := from(nodes), open(t, t.TempDir(), h)
	_, err := s.Sync(t.Context(), o)
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"10", strings.ToLower("4Ca00413d850DcFa3516E14d21DAE2772F2aCb85"), fmt.Sprintf("operations of slot 0x%064x", 5), "1 after block", "0 by logs"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	nodes[op.ID].Set(meanrpc.Faults{})
	r := mustSync(t, s, o)
	mustEqual(t, "once the node is right", snapshotOf(t, s), truthOf(t, h, r))
}

// A value that has changed since cannot be compared at a node without the older state. The next run
// compares it, also if there is nothing new.
func TestValueThatHasChangedSince(t *testing.T) {
	h := &history.History{Chains: history.Production()}
	c := h.Chains[0]
	owner, slot := history.Address{19: 7}, history.Number(5)
	for i, logs := range [][]history.Log{
		{
			history.Transfer(*c.Registry, history.Address{}, owner, history.Number(0)),
			history.Location(*c.Registry, history.Number(0), history.LocationBytes(history.Number(c.ID), c.Records[0], slot)),
			history.ListMetadata(c.Records[0], slot, userKey, bytes.Repeat([]byte{1}, 20)),
		},
		{history.ListMetadata(c.Records[0], slot, userKey, bytes.Repeat([]byte{2}, 20))},
		{history.ListMetadata(c.Records[0], slot, userKey, bytes.Repeat([]byte{3}, 20))}, // not final
	} {
		h.Blocks = append(h.Blocks, history.Block{Chain: c.ID, Number: c.First + uint64(i), Time: 1_727_000_000 + int64(i), Logs: logs})
	}
	nodes := startNodes(t, h)
	nodes[c.ID].SetHead(c.First+2, c.First+1, c.First+1)
	nodes[c.ID].Set(meanrpc.Faults{State: 1, Forget: func(l meanrpc.LogID) bool { return l.Block == c.First+1 }})
	o, s := from(nodes), open(t, t.TempDir(), h)
	for range 2 {
		if check := mustSync(t, s, o).Chains[0].Check; check.How != CheckedByContracts || check.Moved != 1 {
			t.Errorf("got %+v, want one value that has changed", check)
		}
	}
	nodes[c.ID].Set(meanrpc.Faults{})
	r := mustSync(t, s, o)
	mustEqual(t, "once the node has the state", snapshotOf(t, s), truthOf(t, h, r))
	if len(r.Chains[0].Repairs) != 1 || r.Chains[0].Check.Moved > 0 {
		t.Errorf("got %+v, want that it was read again", r.Chains[0])
	}
	if check := mustSync(t, s, o).Chains[0].Check; check.How != CheckedEarlier {
		t.Errorf("after it: got %+v", check)
	}
}

// TestCallsAreThoseOfTheABI: go-ethereum encodes the same calls, and decodes the same answers.
func TestCallsAreThoseOfTheABI(t *testing.T) {
	functions, err := abi.JSON(strings.NewReader(`[
{"type":"function","name":"totalSupply","inputs":[],"outputs":[{"type":"uint256"}]},
{"type":"function","name":"getListOpCount","inputs":[{"name":"slot","type":"uint256"}],"outputs":[{"type":"uint256"}]},
{"type":"function","name":"ownerOf","inputs":[{"name":"tokenId","type":"uint256"}],"outputs":[{"type":"address"}]},
{"type":"function","name":"getListStorageLocation","inputs":[{"name":"tokenId","type":"uint256"}],"outputs":[{"type":"bytes"}]},
{"type":"function","name":"getMetadataValue","inputs":[{"name":"tokenId","type":"uint256"},{"name":"key","type":"string"}],"outputs":[{"type":"bytes"}]},
{"type":"function","name":"getValue","inputs":[{"name":"addr","type":"address"},{"name":"key","type":"string"}],"outputs":[{"type":"bytes"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	id := source.Word{12: 0xa1, 31: 0x7b}
	number, account := new(big.Int).SetBytes(id[:]), common.Address(id[12:])
	for q, c := range []struct {
		name string
		args []any
	}{
		supply: {"totalSupply", nil}, ops: {"getListOpCount", []any{number}}, owner: {"ownerOf", []any{number}},
		location: {"getListStorageLocation", []any{number}}, user: {"getMetadataValue", []any{number, "user"}},
		primary: {"getValue", []any{account, "primary-list"}},
	} {
		want, err := functions.Pack(c.name, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		s := subject{question: question(q), id: id}
		if got := s.call().Data; !bytes.Equal(got, want) {
			t.Errorf("%s: got %x, want %x", c.name, got, want)
		}
		if question(q) <= owner {
			continue
		}
		for _, value := range [][]byte{{}, {1}, bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{7}, 87)} {
			answer, err := functions.Methods[c.name].Outputs.Pack(value)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := s.answer(answer); !ok || !bytes.Equal(got, value) {
				t.Errorf("%s: got %x, %t, want %x", c.name, got, ok, value)
			}
			for cut := range answer[:64+len(value)] {
				if got, ok := s.answer(answer[:cut]); ok {
					t.Errorf("%s: %d bytes of the answer are %x, want that they are none", c.name, cut, got)
				}
			}
		}
	}
}
