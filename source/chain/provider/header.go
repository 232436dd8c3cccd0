package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/go-json-experiment/json/jsontext"
)

// A Header is a block as a node describes it, with its parent and whether it may have logs. Like
// Block, it contains no computed values.
type Header struct {
	Block
	Parent common.Hash
	// Bloom contains the addresses and topics of the block's logs, and may appear to contain
	// others. A node may set it wrongly or not at all.
	Bloom types.Bloom
	// Empty means that the block has no transactions, according to its receipts root.
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

// A headerAnswer is the answer of eth_getBlockByNumber with the members of a Header.
type headerAnswer struct {
	blockAnswer
	parent common.Hash
	bloom  types.Bloom
	empty  bool
}

func (a *headerAnswer) header() Header { return Header{a.block, a.parent, a.bloom, a.empty} }

func (a *headerAnswer) read(from *jsontext.Decoder) error {
	*a = headerAnswer{}
	hasParent, hasBloom, receipts := false, false, common.Hash{}
	err := a.readWith(from, func(name string) (err error) {
		switch name {
		case "parentHash":
			hasParent = true
			err = readFixed(from, a.parent[:])
		case "logsBloom":
			hasBloom = true
			err = readFixed(from, a.bloom[:])
		case "receiptsRoot":
			err = readFixed(from, receipts[:])
		default:
			return from.SkipValue()
		}
		return named(name, err)
	})
	if err == nil && a.found && !hasParent {
		err = errors.New("a block: it has no parentHash")
	}
	a.empty = hasBloom && receipts == types.EmptyReceiptsHash
	return err
}

// Latest returns the newest block of a node, which may be older than that of the previous call. It
// makes one request if the first node answers.
func (c *Chain) Latest(ctx context.Context) (Header, error) {
	var h Header
	_, err := c.ask(ctx, asking{insist: 2}, func(ctx context.Context, n *node) (err error) {
		var answer headerAnswer
		if err := n.one(ctx, "eth_getBlockByNumber", &answer, Latest, false); err != nil {
			return err
		}
		if !answer.found {
			return n.failure(passing, errors.New("it has no newest block"))
		}
		h = answer.header()
		n.head.Store(&h.Block)
		return nil
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

// headers fetches headers. It halves a batch that the node rejects.
func (n *node) headers(ctx context.Context, numbers []uint64) (found []Header, err error) {
	for len(numbers) > 0 {
		some := numbers[:min(len(numbers), n.batchSize())]
		answers := make([]headerAnswer, len(some))
		calls := make([]call, len(some))
		for i, number := range some {
			calls[i] = call{"eth_getBlockByNumber", []any{hexutil.Uint64(number), false}, &answers[i]}
		}
		if err := n.each(ctx, calls); err != nil {
			if k := kindOf(err); len(some) == 1 || ctx.Err() != nil || k != asked && k != slow {
				return nil, err
			}
			n.smallerBatch(len(some) / 2)
			continue
		}
		for i, a := range answers {
			if a.found && a.block.Number != some[i] {
				return nil, n.failure(passing, fmt.Errorf("requested block %d, got block %d", some[i], a.block.Number))
			}
			found = append(found, a.header())
		}
		numbers = numbers[len(some):]
	}
	return found, nil
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
	if kindOf(err) == asked && ctx.Err() == nil { // some nodes do not support this
		found = nil
		for _, b := range of {
			err = c.Logs(ctx, addresses, topics, b.Number, b.Number, func(p Blocks) error {
				found = append(found, p)
				return nil
			})
			if err != nil {
				return nil, err
			}
			if p := &found[len(found)-1]; p.Last.Hash != b.Hash {
				return nil, fmt.Errorf("chain %d: %w: block %d has the hash %s instead of %s", c.id, ErrDisagree, b.Number, p.Last.Hash, b.Hash)
			}
		}
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("chain %d: logs of %d blocks from %d: %w", c.id, len(of), of[0].Number, err)
	}
	return found, nil
}

// byHash fetches the logs of blocks from a node. It halves a batch that the node rejects.
func (r *reading) byHash(ctx context.Context, n *node, of []Block) (found []Blocks, err error) {
	for len(of) > 0 {
		some := of[:min(len(of), n.batchSize())]
		answers := make([]logsAnswer, len(some))
		calls := make([]call, len(some))
		for i, b := range some {
			calls[i] = call{"eth_getLogs", []any{r.filterOf(map[string]any{"blockHash": b.Hash})}, &answers[i]}
		}
		if err := n.each(ctx, calls); err != nil {
			if k := kindOf(err); len(some) == 1 || ctx.Err() != nil || k != asked && k != slow {
				return nil, err
			}
			n.smallerBatch(len(some) / 2)
			continue
		}
		for i, b := range some {
			p, err := r.blocks(b.Number, b.Number, answers[i], blockAnswer{true, b}, true)
			if err != nil {
				return nil, n.name(fail(passing, err))
			}
			if n.mayBeCut(len(answers[i])) {
				p, err = r.block(ctx, n, b.Number, len(p.Logs), fmt.Errorf("its answer has %d logs, which may be a limit", len(answers[i])))
				if err == nil && p.Last.Hash != b.Hash {
					err = n.failure(passing, fmt.Errorf("block %d has the hash %s instead of %s", b.Number, p.Last.Hash, b.Hash))
				}
				if err != nil {
					return nil, err
				}
			}
			found = append(found, p)
		}
		of = of[len(some):]
	}
	return found, nil
}
