package provider

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// Some nodes silently omit logs beyond a limit. The answer then has as many logs as the limit. This
// answer is fetched again in parts; a single block is read from its receipts. The contracts show other
// omissions; see Again.

// roundLimit divides all known limits.
const roundLimit = 1000

// receiptsFactor is how many times larger than other answers the receipts of a block may be: they have
// the logs of all contracts.
const receiptsFactor = 4

// mayBeCut reports whether this many logs may be the result of a limit.
func (n *node) mayBeCut(logs int) bool {
	return logs > 0 && logs%roundLimit == 0 || n.sizes.doubted(logs)
}

func limitError(logs int) error {
	return fmt.Errorf("its answer has %d logs, which may be a limit", logs)
}

// block reads the logs of one block for which eth_getLogs fails from its receipts. why is the problem
// of the eth_getLogs answer, which had least logs.
func (r *reading) block(ctx context.Context, n *node, number uint64, least int, why error) (Blocks, error) {
	var header blockAnswer
	if err := n.one(ctx, "eth_getBlockByNumber", &header, hexutil.Uint64(number), false); err != nil {
		return Blocks{}, err
	}
	switch {
	case !header.found || header.Number != number:
		return Blocks{}, n.failure(behind, fmt.Errorf("no block %d: %w", number, ErrBehind))
	case !header.listed:
		return Blocks{}, n.failure(passing, fmt.Errorf("block %d has no list of its transactions", number))
	}
	n.log.Info("a block is read from its receipts", "host", n.host, "block", number, "because", why)
	all := &receiptsAnswer{wanted: &r.question}
	if err := n.one(ctx, "eth_getBlockReceipts", all, hexutil.Uint64(number)); kindOf(err) == asked {
		return Blocks{}, n.failure(asked, fmt.Errorf("%w; its receipts: %w", why, err))
	} else if err != nil {
		return Blocks{}, err
	}
	part, err := Blocks{}, all.check(&header)
	if err == nil {
		part, err = r.blocks(number, number, all.logs, header.Block)
	}
	if err == nil && len(part.Logs) < least {
		err = fmt.Errorf("block %d has %d logs by its receipts, and %d by eth_getLogs", number, len(part.Logs), least)
	}
	if err != nil {
		return Blocks{}, n.name(fail(passing, err))
	}
	return part, nil
}

// A receiptsAnswer is the answer of eth_getBlockReceipts. Of unwanted logs it keeps only their
// number and their bits of the block's bloom filter.
type receiptsAnswer struct {
	wanted   *question
	receipts int
	logs     []types.Log
	count    uint64 // number of all logs
	gaps     bool   // the logs are not numbered from 0
	hash     common.Hash
	mixed    bool // logs have different block hashes
	bloom    types.Bloom
}

func (a *receiptsAnswer) read(from *input) {
	for from.Begin('['); from.More(']'); a.receipts++ {
		from.members(func(name []byte) {
			if string(name) != "logs" {
				from.Skip()
				return
			}
			for from.Begin('['); from.More(']'); {
				var l types.Log
				from.log(&l)
				a.add(&l)
			}
		}, "logs")
	}
}

func (a *receiptsAnswer) add(l *types.Log) {
	if a.count == 0 {
		a.hash = l.BlockHash
	}
	a.gaps = a.gaps || uint64(l.Index) != a.count
	a.mixed = a.mixed || l.BlockHash != a.hash
	a.count++
	a.bloom.Add(l.Address[:])
	for _, topic := range l.Topics {
		a.bloom.Add(topic[:])
	}
	if a.wanted.wants(l) {
		a.logs = append(a.logs, *l)
	}
}

// check compares receipts with the header of their block: there is one per transaction, logs are
// numbered from 0, and they set all bits of the bloom filter.
func (a *receiptsAnswer) check(header *blockAnswer) error {
	at := header.Number
	switch {
	case a.receipts != header.transactions:
		return fmt.Errorf("block %d has %d transactions, and %d receipts", at, header.transactions, a.receipts)
	case a.gaps:
		return fmt.Errorf("the receipts of block %d have %d logs that are not numbered from 0", at, a.count)
	case a.mixed || a.count > 0 && a.hash != header.Hash:
		return fmt.Errorf("the receipts are of another block than %d, %s", at, header.Hash)
	}
	for i := range header.Bloom {
		if header.Bloom[i]&^a.bloom[i] != 0 {
			return fmt.Errorf("the receipts of block %d lack logs in its bloom filter", at)
		}
	}
	return nil
}
