package chain

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/source/chain/provider"
)

// asked are nodes whose hosts say, one after the other, how many operations a slot has. Between two answers the newest
// block may be replaced.
type asked struct {
	*world
	head provider.Block
	logs common.Hash // newest block hash in logs
	then common.Hash // hash of that block, once contracts have answered
	says []byte      // number of operations, by host
}

func (a *asked) Newest(context.Context) (provider.Block, error) { return a.head, nil }
func (a *asked) Hosts() int                                     { return len(a.says) }

func (a *asked) Block(_ context.Context, number uint64) (provider.Block, error) {
	return provider.Block{Number: number, Hash: a.then}, nil
}

func (a *asked) Logs(_ context.Context, _ []common.Address, _ []common.Hash, from, to uint64, done func(provider.Blocks) error) error {
	return done(provider.Blocks{From: from, To: to, Last: provider.Block{Number: to, Hash: a.logs}})
}

func (a *asked) Call(_ context.Context, calls []provider.Call, _ provider.Block, except []string) (provider.State, error) {
	for i, n := range a.says {
		if name := string(rune('a' + i)); !slices.Contains(except, name) {
			return provider.State{Host: name, Origin: name, Results: slices.Repeat([][]byte{common.BytesToHash([]byte{n}).Bytes()}, len(calls))}, nil
		}
	}
	return provider.State{}, provider.ErrNoState
}

// syncOf reads base from nodes, up to block 100. Its logs have five operations of a slot, which the returned ledger has.
func syncOf(a *asked) (c *chainSync, l *ledger, slot subject) {
	c = &chainSync{chain: base, decoder: newDecoder(base), store: &store{contracts: newDecoder(base).addresses()}, nodes: a, head: provider.Block{Number: 100}, doubted: map[subject]bool{}}
	slot = subject{question: ops, contract: base.Records[0].Address}
	l = newLedger()
	l.ops[slot] = 5
	return c, l, slot
}

// A host that counts fewer operations than the logs has an older state, which is not a
// contradiction. A host that counts more contradicts the logs, even if all others agree with them.
func TestCountsThatConfirm(t *testing.T) {
	for _, tt := range []struct {
		says  []byte
		wrong int
	}{
		{[]byte{5, 5}, 0}, {[]byte{4, 5}, 0}, {[]byte{5, 4}, 0}, {[]byte{0, 0}, 0}, {[]byte{5, 6}, 1}, {[]byte{6, 5}, 1}, {[]byte{4, 6}, 1},
	} {
		c, l, slot := syncOf(&asked{head: provider.Block{Number: 100}, says: tt.says})
		c.doubted[slot] = true
		if wrong, err := c.confirm(t.Context(), l); err != nil || len(wrong) != tt.wrong {
			t.Errorf("hosts that count %v: got %v and %v, want %d that are wrong", tt.says, wrong, err, tt.wrong)
		}
	}
}

// Answers of contracts after the newest block count only if its logs were read, and if it is still
// part of the chain afterwards.
func TestNewestBlockIsReplacedMeanwhile(t *testing.T) {
	is, other := common.Hash{1}, common.Hash{2}
	for name, tt := range map[string]struct {
		logs, then common.Hash
		ok         bool
	}{
		"it stays": {is, is, true}, "while logs are read": {other, is, false}, "while contracts are asked": {is, other, false},
		"before logs are read": {other, other, false},
	} {
		c, l, slot := syncOf(&asked{head: provider.Block{Number: 101, Hash: is}, logs: tt.logs, then: tt.then, says: []byte{5}})
		found, err := c.askLater(t.Context(), l, []subject{slot}, nil)
		if tt.ok && (err != nil || len(found.asked) != 1) || !tt.ok && !errors.Is(err, errUnknown) {
			t.Errorf("%s: got %+v and %v, want an answer: %t", name, found, err, tt.ok)
		}
	}
}

// Where no contract can be asked, two hosts that agree are enough, and one is not. What fewer hosts had given is read
// again.
func TestQuorumThatIsEnough(t *testing.T) {
	for _, tt := range []struct {
		quorum, had int
		unchecked   bool // allowed
		how         string
		again       bool
	}{
		{quorum: 0, had: 1}, {quorum: 1, had: 1},
		{quorum: 1, had: 1, unchecked: true, how: CheckedNot},
		{quorum: 2, had: 2, how: CheckedByQuorum}, {quorum: 3, had: 3, how: CheckedByQuorum},
		{quorum: 2, had: 1, again: true}, {quorum: 3, had: 2, again: true},
		{quorum: 2, had: 3, how: CheckedByQuorum},
	} {
		s := newStore(t, t.TempDir(), nil)
		s.check.Origin = &anchor{}
		s.begin(tt.had)
		if err := errors.Join(s.append(nil, 0, last(base.Registry.FirstBlock)), s.commit()); err != nil {
			t.Fatal(err)
		}
		c, _, _ := syncOf(&asked{world: &world{}})
		c.store, c.options.Provider.Quorum, c.options.Unchecked = s, tt.quorum, tt.unchecked
		err := c.unchecked(errUnknown)
		how := ""
		if c.report.Check != nil {
			how = c.report.Check.How
		}
		if how != tt.how || c.again != tt.again || (err != nil) != (tt.how == "" && !tt.again) {
			t.Errorf("quorum %d of what %d hosts had: got %q, again %t, %v; want %q and %t", tt.quorum, tt.had, how, c.again, err, tt.how, tt.again)
		}
	}
}
