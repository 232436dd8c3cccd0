package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"golang.org/x/time/rate"
)

// batchAttempts is the number of failures of a first batch before single calls are tried.
const batchAttempts = 2

// A call is a JSON-RPC call and the destination of its result.
type call struct {
	method string
	args   []any
	result any
}

// one sends a request with a single call. The caller holds a slot.
func (n *node) one(ctx context.Context, method string, result any, args ...any) error {
	return n.oneOf(ctx, n.o.MaxAnswer, method, result, args...)
}

// oneOf returns one with a limit on the bytes of the answer.
func (n *node) oneOf(ctx context.Context, most int64, method string, result any, args ...any) error {
	calls := []call{{method, args, result}}
	return n.request(ctx, calls, func(ctx context.Context) error {
		errs, err := n.post(ctx, calls, false, most)
		return cmp.Or(err, errors.Join(errs...))
	})
}

// together makes one request with several calls and returns an error for each.
func (n *node) together(ctx context.Context, calls []call) (errs []error, err error) {
	errs = make([]error, len(calls))
	err = n.request(ctx, calls, func(ctx context.Context) error {
		found, err := n.post(ctx, calls, true, n.o.MaxAnswer)
		copy(errs, found)
		return err
	})
	for i := range errs {
		if errs[i] != nil {
			errs[i] = n.name(classify(ctx, errs[i], n.hide))
		}
	}
	return errs, err
}

// request waits for the pace and makes a request.
func (n *node) request(ctx context.Context, calls []call, do func(context.Context) error) error {
	n.requestBegins()
	defer n.requestEnds()
	for _, pace := range []*rate.Limiter{n.limiter, n.share.limiter} {
		if err := sleep(ctx, pace.Reserve().Delay()); err != nil {
			return err
		}
	}
	n.mu.Lock()
	n.cost.Requests++
	for _, c := range calls {
		n.cost.Calls[c.method]++
	}
	n.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, n.o.Timeout)
	defer cancel()
	if err := do(limited); err != nil {
		return n.name(classify(ctx, err, n.hide))
	}
	return nil
}

// name adds the host to a failure and removes secrets.
func (n *node) name(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	text := f.err.Error()
	named := *f
	named.host = n.host
	if hidden := n.hide.Replace(text); hidden != text {
		named.err = errors.New(hidden)
	}
	return &named
}

// failure makes a failure of an invalid answer.
func (n *node) failure(k kind, err error) error { return n.name(fail(k, err)) }

func (n *node) block(ctx context.Context, tag string) (Block, error) {
	var answer blockAnswer
	err := n.one(ctx, "eth_getBlockByNumber", &answer, tag, false)
	if k := kindOf(err); (tag == Finalized || tag == Safe) && (err == nil && !answer.found || err != nil && (k == asked || k == behind)) {
		// Nodes express a missing block in four ways, some of which also mean a block yet to come.
		if err == nil {
			err = errors.New("null")
		}
		return Block{}, n.failure(asked, fmt.Errorf("it knows no %s block (%v)", tag, err)) //nolint:errorlint // hides the kind of err
	}
	if err != nil {
		return Block{}, err
	}
	if !answer.found {
		return Block{}, n.failure(behind, fmt.Errorf("no block %s: %w", tag, ErrBehind))
	}
	return answer.block, nil
}

// times fetches the times of blocks and compares their hashes. It halves a batch that the node
// rejects.
func (n *node) times(ctx context.Context, numbers []uint64, hashes map[uint64]common.Hash) (map[uint64]int64, error) {
	found := make(map[uint64]int64, len(numbers))
	for len(numbers) > 0 {
		some := numbers[:min(len(numbers), n.batchSize())]
		answers := make([]blockAnswer, len(some))
		if err := n.blocks(ctx, some, answers); err != nil {
			if k := kindOf(err); len(some) == 1 || ctx.Err() != nil || k != asked && k != slow {
				return nil, err
			}
			n.smallerBatch(len(some) / 2)
			continue
		}
		for i, a := range answers {
			switch hash := hashes[some[i]]; {
			case !a.found:
				return nil, n.failure(behind, fmt.Errorf("no block %d: %w", some[i], ErrBehind))
			case a.block.Number != some[i]:
				return nil, n.failure(passing, fmt.Errorf("requested block %d, got block %d", some[i], a.block.Number))
			case hash != (common.Hash{}) && hash != a.block.Hash:
				return nil, n.failure(asked, fmt.Errorf("%w: block %d is %s, and was %s in logs", ErrDisagree, some[i], a.block.Hash, hash))
			}
			found[some[i]] = a.block.Time
		}
		numbers = numbers[len(some):]
	}
	return found, nil
}

func (n *node) blocks(ctx context.Context, numbers []uint64, answers []blockAnswer) error {
	calls := make([]call, len(numbers))
	for i, number := range numbers {
		calls[i] = call{"eth_getBlockByNumber", []any{hexutil.Uint64(number), false}, &answers[i]}
	}
	return n.each(ctx, calls)
}

// each makes one request of calls, all of which must succeed.
func (n *node) each(ctx context.Context, calls []call) error {
	if len(calls) == 1 {
		return n.one(ctx, calls[0].method, calls[0].result, calls[0].args...)
	}
	errs, err := n.together(ctx, calls)
	for _, e := range errs {
		if err == nil || kindOf(e) == limited {
			err = e
		}
	}
	return err
}

// batchSize returns the number of calls that the node accepts per request, if known.
func (n *node) batchSize() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unbatch >= batchAttempts {
		return 1
	}
	return cmp.Or(n.fewer, n.o.Batch)
}

// smallerBatch records that the node rejected a batch of this size.
func (n *node) smallerBatch(size int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fewer = min(cmp.Or(n.fewer, n.o.Batch), size)
}

// both makes two calls, in one request if the node accepts batches. Then they reach the same server
// even behind a load balancer, unless it splits batches; consecutive requests on one connection
// often do too.
func (n *node) both(ctx context.Context, first, second call) error {
	n.mu.Lock()
	batch, known := n.o.Batch > 1 && n.unbatch < batchAttempts, n.batches.Load()
	n.mu.Unlock()
	if !batch {
		return n.inTurn(ctx, first, second)
	}
	errs, err := n.together(ctx, []call{first, second})
	if err == nil && errs[1] == nil {
		n.batches.Store(true)
	}
	if err == nil {
		err = errs[0]
		if err == nil || kindOf(errs[1]) == limited {
			err = errs[1]
		}
		if errs[1] == nil || kindOf(err) == limited {
			return err
		}
	}
	if k := kindOf(err); ctx.Err() != nil || known || k == limited || k == refused || k == spent {
		return err
	}
	// The node may reject all batches.
	n.mu.Lock()
	n.unbatch++
	try := n.unbatch >= batchAttempts || kindOf(err) == asked
	n.mu.Unlock()
	if !try {
		return err
	}
	err = n.inTurn(ctx, first, second)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		n.unbatch = batchAttempts
		n.log.Info("takes no batches", "host", n.host)
	} else {
		n.unbatch = 0
	}
	return err
}

func (n *node) inTurn(ctx context.Context, first, second call) error {
	if err := n.one(ctx, first.method, first.result, first.args...); err != nil {
		return err
	}
	return n.one(ctx, second.method, second.result, second.args...)
}

// check fetches the chain ID, once. The caller holds a slot.
func (n *node) check(ctx context.Context, want uint64) error {
	if n.chain.Load() == want {
		return nil
	}
	var id hexutil.Big
	if err := n.one(ctx, "eth_chainId", &id); err != nil {
		return err
	}
	if got := id.ToInt(); !got.IsUint64() || got.Uint64() != want {
		return n.failure(fatal, fmt.Errorf("it is a node of chain %s, not of chain %d", got, want))
	}
	n.chain.Store(want)
	return nil
}

// follows returns nil if the head is part of the node's chain. The chain ID is not enough: a fork
// or a private chain may have the same. Each node is asked once per head.
func (n *node) follows(ctx context.Context, head *Block) error {
	if head == nil {
		return nil
	}
	if known := n.head.Load(); known != nil && known.Hash == head.Hash {
		return nil
	}
	b, err := n.block(ctx, hexutil.EncodeUint64(head.Number))
	if err != nil {
		return err
	}
	if b.Number != head.Number {
		return n.failure(passing, fmt.Errorf("requested block %d, got block %d", head.Number, b.Number))
	}
	if b.Hash != head.Hash {
		return n.failure(behind, fmt.Errorf("%w: its block %d is %s, and the head is %s", ErrDisagree, b.Number, b.Hash, head.Hash))
	}
	n.head.Store(&b)
	return nil
}
