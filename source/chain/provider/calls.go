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
	calls := []call{{method, args, result}}
	return n.request(ctx, calls, func(ctx context.Context) error {
		errs, err := n.post(ctx, calls, false)
		return cmp.Or(err, errors.Join(errs...))
	})
}

// together makes one request with several calls and returns an error for each.
func (n *node) together(ctx context.Context, calls []call) (errs []error, err error) {
	errs = make([]error, len(calls))
	err = n.request(ctx, calls, func(ctx context.Context) error {
		found, err := n.post(ctx, calls, true)
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
	h, err := n.header(ctx, tag)
	return h.Block, err
}

func (n *node) header(ctx context.Context, tag string) (Header, error) {
	var answer blockAnswer
	err := n.one(ctx, "eth_getBlockByNumber", &answer, tag, false)
	if k := kindOf(err); (tag == Finalized || tag == Safe) && (err == nil && !answer.found || err != nil && (k == asked || k == behind)) {
		// Nodes express a missing block in four ways, some of which also mean a block yet to come.
		if err == nil {
			err = errors.New("null")
		}
		return Header{}, n.failure(asked, fmt.Errorf("it knows no %s block (%v)", tag, err)) //nolint:errorlint // hides the kind of err
	}
	if err != nil {
		return Header{}, err
	}
	if !answer.found {
		return Header{}, n.failure(behind, fmt.Errorf("no block %s: %w", tag, ErrBehind))
	}
	return answer.Header, nil
}

// times fetches the times of blocks and compares their hashes.
func (n *node) times(ctx context.Context, numbers []uint64, hashes map[uint64]common.Hash) (map[uint64]int64, error) {
	headers, err := n.headers(ctx, numbers)
	found := make(map[uint64]int64, len(headers))
	for _, h := range headers {
		switch hash := hashes[numbers[len(found)]]; {
		case h.Hash == (common.Hash{}):
			return nil, n.failure(behind, fmt.Errorf("no block %d: %w", numbers[len(found)], ErrBehind))
		case hash != (common.Hash{}) && hash != h.Hash:
			return nil, n.failure(asked, fmt.Errorf("%w: block %d is %s, and was %s in logs", ErrDisagree, h.Number, h.Hash, hash))
		}
		found[h.Number] = h.Time
	}
	return found, err
}

// inBatches makes calls in requests of the size that the node accepts. It halves a batch that the node
// rejects. All calls must succeed.
func (n *node) inBatches(ctx context.Context, total int, nth func(i int) call) error {
	for done := 0; done < total; {
		calls := make([]call, min(total-done, n.batchSize()))
		for i := range calls {
			calls[i] = nth(done + i)
		}
		err := n.each(ctx, calls)
		switch k := kindOf(err); {
		case err == nil:
			done += len(calls)
		case len(calls) > 1 && ctx.Err() == nil && (k == asked || k == slow):
			n.smallerBatch(len(calls) / 2)
		default:
			return err
		}
	}
	return nil
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
