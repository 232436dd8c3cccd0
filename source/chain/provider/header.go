package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// A Header is a block as a node describes it, with its parent and whether it may have logs. Like
// Block, it contains no computed values.
type Header struct {
	Block
	Parent common.Hash
	// Bloom contains the addresses and topics of the block's logs, and may appear to contain
	// others. A node may set it wrongly or not at all.
	Bloom types.Bloom
	// Empty means that the block has no transactions, according to its list of them, its bloom filter
	// and its receipts root.
	Empty bool
}

// MayHave reports whether the block may have a log of one of the addresses with one of the first
// topics. An empty bloom filter proves nothing for a block with transactions: some nodes do not
// fill it.
func (h *Header) MayHave(addresses []common.Address, topics []common.Hash) bool {
	if h.Bloom == (types.Bloom{}) {
		return !h.Empty
	}
	return slices.ContainsFunc(addresses, func(a common.Address) bool { return h.Bloom.Test(a[:]) }) &&
		slices.ContainsFunc(topics, func(t common.Hash) bool { return h.Bloom.Test(t[:]) })
}

// Latest returns the newest block of a node, which may be older than that of the previous call. It
// makes one request if the first node answers.
func (c *Chain) Latest(ctx context.Context) (Header, error) {
	var h Header
	_, err := c.ask(ctx, asking{insist: 2}, func(ctx context.Context, n *node) (err error) {
		if h, err = n.header(ctx, Latest); err == nil {
			err = n.checkParent(&h)
		}
		if err == nil {
			n.head.Store(&h.Block)
		}
		return err
	})
	if err != nil {
		return Header{}, fmt.Errorf("chain %d: the newest block: %w", c.id, err)
	}
	return h, nil
}

// Finalized returns the newest block of a node that cannot be reorganized.
func (c *Chain) Finalized(ctx context.Context) (Block, error) {
	var b Block
	_, err := c.ask(ctx, asking{insist: 2}, func(ctx context.Context, n *node) (err error) {
		b, err = n.block(ctx, Finalized)
		return err
	})
	if err != nil {
		return Block{}, fmt.Errorf("chain %d: the finalized block: %w", c.id, err)
	}
	return b, nil
}

// At restricts all other answers to nodes that have this block, with its hash, until the next At or
// Head. With nil, any node may answer.
func (c *Chain) At(b *Block) { c.head.Store(b) }

// Turn makes another node the first to be asked.
func (c *Chain) Turn() { c.first.Add(1) }

// Headers returns headers in the order of numbers. A missing block has a zero header.
func (c *Chain) Headers(ctx context.Context, numbers []uint64) ([]Header, error) {
	found, err := agree(ctx, c, asking{insist: 2}, func(ctx context.Context, n *node) ([]Header, error) {
		if err := n.follows(ctx, c.head.Load()); err != nil {
			return nil, err
		}
		return n.headers(ctx, numbers)
	}, func(a, b []Header) string {
		for i := range a {
			if a[i].Hash != b[i].Hash {
				return fmt.Sprintf("block %d has the hashes %s and %s", numbers[i], a[i].Hash, b[i].Hash)
			}
		}
		return ""
	})
	if err != nil {
		return nil, fmt.Errorf("chain %d: %d blocks from %d: %w", c.id, len(numbers), numbers[0], err)
	}
	return found, nil
}

// headers fetches headers.
func (n *node) headers(ctx context.Context, numbers []uint64) ([]Header, error) {
	answers := make([]blockAnswer, len(numbers))
	err := n.inBatches(ctx, len(numbers), func(i int) call {
		return call{"eth_getBlockByNumber", []any{hexutil.Uint64(numbers[i]), false}, &answers[i]}
	})
	if err != nil {
		return nil, err
	}
	found := make([]Header, len(numbers))
	for i, a := range answers {
		if a.found && a.Number != numbers[i] {
			return nil, n.failure(passing, fmt.Errorf("requested block %d, got block %d", numbers[i], a.Number))
		}
		if err := n.checkParent(&a.Header); err != nil {
			return nil, err
		}
		found[i] = a.Header
	}
	return found, nil
}

// checkParent returns a failure for a block without the hash of its parent.
func (n *node) checkParent(h *Header) error {
	if h.Number > 0 && h.Parent == (common.Hash{}) {
		return n.failure(passing, fmt.Errorf("block %d has no parentHash", h.Number))
	}
	return nil
}

// LogsOf returns the logs of blocks like Logs, one element per block. It asks by block hash
// (EIP-234): for a missing block a node returns an error rather than no logs.
func (c *Chain) LogsOf(ctx context.Context, addresses []common.Address, topics []common.Hash, of []Block) ([]Blocks, error) {
	if len(addresses) == 0 {
		return nil, errors.New("no contracts to read logs of") // a node would return the logs of all contracts
	}
	r := &reading{c: c, question: question{addresses, topics}}
	found, err := agree(ctx, c, asking{insist: 2}, func(ctx context.Context, n *node) ([]Blocks, error) { return r.byHash(ctx, n, of) }, func(a, b []Blocks) string {
		for i := range a {
			if text := difference(a[i], b[i]); text != "" {
				return text
			}
		}
		return ""
	})
	if err != nil {
		return nil, fmt.Errorf("chain %d: logs of %d blocks from %d: %w", c.id, len(of), of[0].Number, err)
	}
	return found, nil
}

// byHash fetches the logs of blocks from a node.
func (r *reading) byHash(ctx context.Context, n *node, of []Block) ([]Blocks, error) {
	answers := make([]logsAnswer, len(of))
	err := n.inBatches(ctx, len(of), func(i int) call {
		return call{"eth_getLogs", []any{r.filterOf(map[string]any{"blockHash": of[i].Hash})}, &answers[i]}
	})
	if err != nil {
		return nil, err
	}
	found := make([]Blocks, len(of))
	for i, b := range of {
		if found[i], err = r.blocks(b.Number, b.Number, answers[i], b); err != nil {
			return nil, n.name(fail(passing, err))
		}
		if !n.mayBeCut(len(answers[i])) {
			continue
		}
		if found[i], err = r.block(ctx, n, b.Number, len(found[i].Logs), limitError(len(answers[i]))); err != nil {
			return nil, err
		}
		if got := found[i].Last.Hash; got != b.Hash {
			return nil, n.failure(passing, fmt.Errorf("block %d has the hash %s instead of %s", b.Number, got, b.Hash))
		}
	}
	return found, nil
}
