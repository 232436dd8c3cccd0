package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"golang.org/x/sync/errgroup"
)

// ErrNoState means that no node can call contracts after a block: nodes have dropped that state, or
// do not support eth_call.
var ErrNoState = errors.New("no node has the state of the contracts")

// A Call is a call of a contract function that changes nothing.
type Call struct {
	To   common.Address
	Data []byte // function and arguments, ABI-encoded
}

// A State holds the answers of contracts after a block.
type State struct {
	Host     string   // host that answered, as named in errors
	Origin   string   // origin of Host, for except of Call
	Together bool     // Multicall3 combined the calls, so they were cheap
	Results  [][]byte // by call; nil if the contract refused
}

const (
	mostCalls    = 500         // calls per Multicall3: some 3 million gas, and less than 300 kB either way
	callPatience = time.Minute // per host; others may answer, and callers may skip the check
	leastDoubted = 8           // no node is known to cut answers to this few logs
	callInsists  = 3           // attempts at a host that had the state before: perhaps only some servers behind it do
)

// Call calls contract functions after a block, at the first host, apart from those in except, that
// answers all calls. If there is none, the error wraps ErrNoState and gives the reason for each
// host.
func (c *Chain) Call(ctx context.Context, calls []Call, at Block, except []string) (State, error) {
	var reasons []string
	for _, origin := range c.order() {
		if slices.Contains(except, origin) {
			continue
		}
		s, err := c.callAt(ctx, origin, calls, at)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return State{}, context.Cause(ctx)
		case kindOf(err) == fatal:
			return State{}, err
		}
		c.o.Log.Info("no state of a block", "block", at.Number, "error", err)
		reasons = append(reasons, err.Error())
	}
	return State{}, fmt.Errorf("chain %d: %w after block %d (%s)", c.id, ErrNoState, at.Number, cmp.Or(strings.Join(reasons, "; "), "none is left to ask"))
}

// order returns the hosts in the order in which they are asked.
func (c *Chain) order() []string {
	var all []string
	for i := range c.nodes {
		if o := c.nodes[(i+int(c.first.Load()))%len(c.nodes)].origin; !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}

// Hosts returns the number of hosts.
func (c *Chain) Hosts() int { return len(c.origins()) }

// Again reports that earlier answers were wrong, so that repeated questions get other answers: the
// next node is asked first, and an answer with at least half as many logs as the largest counts as
// possibly cut.
func (c *Chain) Again() {
	c.first.Add(1)
	most := 0
	for _, n := range c.nodes {
		most = max(most, n.sizes.largest())
	}
	for _, n := range c.nodes {
		n.sizes.distrust(max(leastDoubted, most/2))
	}
}

// Newest returns the newest block of a node, regardless of its finality. Only the state of that
// block is sure to exist.
func (c *Chain) Newest(ctx context.Context) (b Block, err error) {
	_, err = c.ask(ctx, asking{insist: callInsists, patience: callPatience}, func(ctx context.Context, n *node) error {
		if err := n.follows(ctx, c.head.Load()); err != nil {
			return err
		}
		b, err = n.block(ctx, Latest)
		return err
	})
	if err != nil {
		return Block{}, fmt.Errorf("chain %d: the newest block: %w", c.id, err)
	}
	return b, nil
}

// callAt asks one host. The first request finds out how many calls it accepts; the others run
// concurrently.
func (c *Chain) callAt(ctx context.Context, origin string, calls []Call, at Block) (State, error) {
	how := asking{patience: callPatience}
	for _, other := range c.order() {
		if other != origin {
			how.except = append(how.except, other)
		}
	}
	s := State{Origin: origin, Together: true, Results: make([][]byte, len(calls))}
	var mu sync.Mutex
	part := func(ctx context.Context, from, to int) error {
		n, err := c.ask(ctx, how, func(ctx context.Context, n *node) error {
			if err := n.follows(ctx, c.head.Load()); err != nil {
				return err
			}
			return n.calls(ctx, calls[from:to], s.Results[from:to], at)
		})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		s.Host, s.Together = n.host, s.Together && !n.apart.Load()
		return nil
	}
	first := min(len(calls), mostCalls)
	if err := part(ctx, 0, first); err != nil {
		return State{}, err
	}
	how.insist = callInsists
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.o.Concurrency)
	for from := first; from < len(calls); from += mostCalls {
		g.Go(func() error { return part(ctx, from, min(len(calls), from+mostCalls)) })
	}
	err := g.Wait()
	return s, err
}

// calls makes calls in parts of a size that the node accepts.
func (n *node) calls(ctx context.Context, calls []Call, results [][]byte, at Block) error {
	size := n.callSize()
	for len(calls) > 0 {
		some := calls[:min(len(calls), size, n.callSize())]
		err := n.someCalls(ctx, some, results[:len(some)], at)
		if errors.Is(err, errNoMulticall) {
			n.apart.Store(true)
			continue
		}
		if k := kindOf(err); err != nil && len(some) > 1 && ctx.Err() == nil && !errors.Is(err, ErrNoState) && (k == asked || k == slow) {
			size = (len(some) + 1) / 2 // too much gas, or too long: nodes express it in many ways
			continue
		}
		if err != nil {
			if kindOf(err) == asked && !errors.Is(err, ErrNoState) {
				err = n.failure(asked, fmt.Errorf("%w: %w", ErrNoState, errors.Unwrap(err)))
			}
			return err
		}
		n.tookCalls(size)
		calls, results = calls[len(some):], results[len(some):]
	}
	return nil
}

// callSize returns the number of calls that the node accepts per request, if known.
func (n *node) callSize() int {
	if n.apart.Load() {
		return n.batchSize()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return cmp.Or(n.fewerCalls, mostCalls)
}

// tookCalls records that the node accepted this many calls.
func (n *node) tookCalls(size int) {
	if n.apart.Load() {
		n.smallerBatch(size)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fewerCalls = min(cmp.Or(n.fewerCalls, mostCalls), size)
}

// errNoMulticall means that the chain has no Multicall3.
var errNoMulticall = errors.New("no Multicall3")

// someCalls makes calls in one request.
func (n *node) someCalls(ctx context.Context, calls []Call, results [][]byte, at Block) error {
	if n.apart.Load() {
		return n.singleCalls(ctx, calls, results, at)
	}
	var answer hexutil.Bytes
	if err := n.ethCall(ctx, Call{multicall3, packCalls(calls)}, &answer, at); err != nil {
		if len(calls) == 1 && kindOf(err) == asked && !errors.Is(err, ErrNoState) {
			return n.singleCalls(ctx, calls, results, at)
		}
		return err
	}
	if !unpackResults(answer, results) {
		return errNoMulticall // the answer is empty if there is no contract
	}
	return nil
}

func (n *node) ethCall(ctx context.Context, c Call, answer *hexutil.Bytes, at Block) error {
	call := ethCall(c, answer, at)
	return n.stateless(n.one(ctx, call.method, call.result, call.args...))
}

func ethCall(c Call, answer *hexutil.Bytes, at Block) call {
	message := map[string]any{"to": c.To, "data": hexutil.Bytes(c.Data)}
	return call{"eth_call", []any{message, hexutil.Uint64(at.Number)}, answer}
}

// singleCalls makes one request of calls without Multicall3.
func (n *node) singleCalls(ctx context.Context, calls []Call, results [][]byte, at Block) error {
	answers, errs := make([]hexutil.Bytes, len(calls)), make([]error, len(calls))
	if len(calls) == 1 {
		errs[0] = n.ethCall(ctx, calls[0], &answers[0], at)
	} else {
		batch := make([]call, len(calls))
		for i, c := range calls {
			batch[i] = ethCall(c, &answers[i], at)
		}
		var err error
		if errs, err = n.together(ctx, batch); err != nil {
			return n.stateless(err)
		}
	}
	for i, err := range errs {
		switch results[i] = nil; {
		case err == nil:
			results[i] = append([]byte{}, answers[i]...)
		case kindOf(err) == asked && refusedWords.MatchString(err.Error()):
		default:
			return n.stateless(err)
		}
	}
	return nil
}

var (
	refusedWords   = regexp.MustCompile(`(?i)revert|out of gas|gas required|invalid opcode`)
	stateWords     = regexp.MustCompile(`(?i)missing trie node|\bstate\b|historical|archiv|too old|no data|distance to target block|not (supported|found|available)`)
	tooMuchToState = regexp.MustCompile(`(?i)revert|\bgas\b|size|large|limit|timeout|time.?out|timed|batch`)
)

// stateless converts an answer that reports a missing state to ErrNoState, since fewer calls would
// not help.
func (n *node) stateless(err error) error {
	var f *failure
	if !errors.As(err, &f) || f.kind != behind && (f.kind != asked || !stateWords.MatchString(f.err.Error()) || tooMuchToState.MatchString(f.err.Error())) {
		return err
	}
	return n.failure(asked, fmt.Errorf("%w: %w", ErrNoState, f.err))
}
