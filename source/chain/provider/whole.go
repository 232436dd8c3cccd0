package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/go-json-experiment/json/jsontext"
)

// Some nodes silently omit logs beyond a limit. The answer then has as many logs as the limit, so it
// is one of the node's largest. Those are fetched again in parts, which must have as many logs
// together; a single block is read from its receipts.

// roundLimit divides all known limits.
const roundLimit = 1000

// mayBeCut reports whether this many logs may be the result of a limit. They are not if the node
// once returned more, completely.
func (n *node) mayBeCut(logs int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return logs >= fewLogs && (logs >= n.whole || logs%roundLimit == 0)
}

// wasWhole records that an answer had all logs.
func (n *node) wasWhole(logs int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.whole = max(n.whole, logs)
}

// confirm compares an answer with the answers for both halves of its blocks. A failure of kind
// asked means that the answer was, or may have been, cut; smaller ranges then decide.
func (r *reading) confirm(ctx context.Context, n *node, all Blocks) error {
	at := all.Logs[len(all.Logs)/2].BlockNumber
	if at == all.From {
		at++
	}
	halves := [2][]types.Log{}
	for i, ends := range [2][2]uint64{{all.From, at - 1}, {at, all.To}} {
		var logs logsAnswer
		if err := n.one(ctx, "eth_getLogs", &logs, r.filter(ends[0], ends[1])); err != nil {
			return err
		}
		part, err := r.blocks(ends[0], ends[1], logs, blockAnswer{true, Block{Number: ends[1]}}, false)
		if err != nil {
			return n.name(fail(passing, err))
		}
		if len(part.Logs) >= len(all.Logs) { // it may be cut as well
			return n.failure(asked, fmt.Errorf("its answer has %d logs, which may be a limit", len(logs)))
		}
		halves[i] = part.Logs
	}
	if both := slices.Concat(halves[0], halves[1]); !slices.EqualFunc(both, all.Logs, sameLog) {
		return n.failure(asked, fmt.Errorf("its answer has %d logs, and both halves have %d", len(all.Logs), len(both)))
	}
	n.wasWhole(len(all.Logs))
	return nil
}

// maxBlockAnswer is how many times larger than other answers the receipts of a block may be: they
// have the logs of all contracts, of which only the requested ones stay in memory.
const maxBlockAnswer = 16

// block reads the logs of one block for which eth_getLogs fails: from its receipts, in one answer
// or per transaction, or separately for each contract and topic. why is the problem of the
// eth_getLogs answer, which had least logs.
func (r *reading) block(ctx context.Context, n *node, number uint64, least int, why error) (Blocks, error) {
	var header fullBlock
	if err := n.one(ctx, "eth_getBlockByNumber", &header, hexutil.Uint64(number), false); err != nil {
		return Blocks{}, err
	}
	if !header.found || header.block.Number != number {
		return Blocks{}, n.failure(behind, fmt.Errorf("no block %d: %w", number, ErrBehind))
	}
	n.log.Info("a block is read from its receipts", "host", n.host, "block", number, "because", why)
	logs, err := r.receipts(ctx, n, &header)
	if kindOf(err) == asked {
		instead, pieces := r.pieces(ctx, n, number)
		if pieces != nil {
			return Blocks{}, n.failure(asked, fmt.Errorf("%w; its receipts: %w; by contract and topic: %w", why, err, pieces))
		}
		logs, err = instead, nil
	}
	if err != nil {
		return Blocks{}, err
	}
	part, err := r.blocks(number, number, logs, header.blockAnswer, true)
	if err == nil && len(part.Logs) < least {
		err = fmt.Errorf("block %d has %d logs by its receipts, and %d by eth_getLogs", number, len(part.Logs), least)
	}
	if err != nil {
		return Blocks{}, n.name(fail(passing, err))
	}
	n.wasWhole(least)
	return part, nil
}

// receipts reads the logs of a block from its receipts. A failure of kind asked means that the node
// does not have them.
func (r *reading) receipts(ctx context.Context, n *node, header *fullBlock) ([]types.Log, error) {
	all := &receiptsAnswer{wanted: &r.question}
	err := n.oneOf(ctx, maxBlockAnswer*n.o.MaxAnswer, "eth_getBlockReceipts", all, hexutil.Uint64(header.block.Number))
	if k := kindOf(err); err != nil && ctx.Err() == nil && (k == asked || k == slow) {
		all = &receiptsAnswer{wanted: &r.question}
		err = n.receiptsOneByOne(ctx, header.transactions, all)
	}
	if err == nil {
		if err = all.check(header); err != nil {
			err = n.failure(passing, err)
		}
	}
	return all.logs, err
}

func (n *node) receiptsOneByOne(ctx context.Context, transactions []common.Hash, into *receiptsAnswer) error {
	for size := n.batchSize(); len(transactions) > 0; {
		size = min(size, len(transactions))
		err := n.someReceipts(ctx, transactions[:size], into)
		switch k := kindOf(err); {
		case err == nil:
			transactions = transactions[size:]
		case size > 1 && ctx.Err() == nil && (k == asked || k == slow):
			size /= 2
		default:
			return err
		}
	}
	return nil
}

// someReceipts fetches receipts in one request, and adds them only if all arrive.
func (n *node) someReceipts(ctx context.Context, transactions []common.Hash, into *receiptsAnswer) error {
	answers, calls := make([]receiptsAnswer, len(transactions)), make([]call, len(transactions))
	for i, hash := range transactions {
		answers[i].wanted = into.wanted
		calls[i] = call{"eth_getTransactionReceipt", []any{hash}, (*receiptAnswer)(&answers[i])}
	}
	var err error
	if len(calls) == 1 {
		err = n.oneOf(ctx, maxBlockAnswer*n.o.MaxAnswer, calls[0].method, calls[0].result, calls[0].args...)
	} else {
		var errs []error
		errs, err = n.together(ctx, calls)
		err = cmp.Or(err, cmp.Or(errs...))
	}
	if err != nil {
		return err
	}
	for i := range answers {
		into.add(&answers[i])
	}
	return nil
}

// pieces fetches the logs of a block separately for each contract and topic. It fails if one answer
// is as large as one that was cut.
func (r *reading) pieces(ctx context.Context, n *node, number uint64) ([]types.Log, error) {
	if len(r.addresses)*len(r.topics) <= 1 {
		return nil, errors.New("one address and one topic cannot be split further")
	}
	var all []types.Log
	for _, address := range r.addresses {
		for _, topic := range r.topics {
			q := question{[]common.Address{address}, []common.Hash{topic}}
			var logs logsAnswer
			if err := n.one(ctx, "eth_getLogs", &logs, q.filter(number, number)); err != nil {
				return nil, err
			}
			if n.mayBeCut(len(logs)) {
				return nil, fmt.Errorf("%d logs of %s with topic %s, which may be a limit", len(logs), address, topic)
			}
			all = append(all, logs...)
		}
	}
	return all, nil
}

// A fullBlock is a block with the fields for checking its receipts.
type fullBlock struct {
	blockAnswer
	transactions []common.Hash
	bloom        types.Bloom // zero if the node omits it
}

func (b *fullBlock) read(from *jsontext.Decoder) error {
	*b = fullBlock{}
	hasTransactions := false
	err := b.readWith(from, func(name string) (err error) {
		switch name {
		case "transactions":
			hasTransactions = true
			return named(name, elements(from, func() error {
				b.transactions = append(b.transactions, common.Hash{})
				return readFixed(from, b.transactions[len(b.transactions)-1][:])
			}))
		case "logsBloom":
			b.bloom, err = readLoosely(from, func(text []byte) (bloom types.Bloom, err error) {
				err = fixed(bloom[:], text)
				return bloom, err
			})
			return err
		}
		return from.SkipValue()
	})
	if err == nil && b.found && !hasTransactions {
		err = errors.New("a block without a list of its transactions")
	}
	return err
}

// A receiptsAnswer is the answer of eth_getBlockReceipts. Of unwanted logs it keeps only their
// number and their bits of the block's bloom filter.
type receiptsAnswer struct {
	wanted   *question
	receipts int
	logs     []types.Log
	count    uint64 // number of all logs
	first    uint64 // index of the first log
	gaps     bool   // the indexes have gaps
	hash     common.Hash
	mixed    bool // logs have different block hashes
	bloom    types.Bloom
}

func (a *receiptsAnswer) read(from *jsontext.Decoder) error {
	return elements(from, func() error { return (*receiptAnswer)(a).read(from) })
}

// A receiptAnswer is the answer of eth_getTransactionReceipt.
type receiptAnswer receiptsAnswer

func (a *receiptAnswer) read(from *jsontext.Decoder) error {
	if from.PeekKind() == 'n' {
		return errors.Join(from.SkipValue(), fail(asked, errors.New("it does not have a receipt")))
	}
	need := needs{"logs"}
	a.receipts++
	err := members(from, func(name string) error {
		need.met(name)
		if name != "logs" {
			return from.SkipValue()
		}
		return elements(from, func() error {
			var l types.Log
			if err := readLog(from, &l); err != nil {
				return fmt.Errorf("log %d of receipt %d: %w", a.count, a.receipts-1, err)
			}
			(*receiptsAnswer)(a).addLog(&l)
			return nil
		})
	})
	if err != nil {
		return err
	}
	return need.missing()
}

func (a *receiptsAnswer) addLog(l *types.Log) {
	a.follow(uint64(l.Index), l.BlockHash)
	a.count++
	a.bloom.Add(l.Address[:])
	for _, topic := range l.Topics {
		a.bloom.Add(topic[:])
	}
	if a.wanted.wants(l) {
		a.logs = append(a.logs, *l)
	}
}

// follow checks the next log against the previous ones.
func (a *receiptsAnswer) follow(index uint64, hash common.Hash) {
	if a.count == 0 {
		a.first, a.hash = index, hash
	}
	a.gaps = a.gaps || index != a.first+a.count
	a.mixed = a.mixed || hash != a.hash
}

// add adds the receipts that come next in the block.
func (a *receiptsAnswer) add(b *receiptsAnswer) {
	a.receipts += b.receipts
	if b.count == 0 {
		return
	}
	a.follow(b.first, b.hash)
	a.count, a.gaps, a.mixed = a.count+b.count, a.gaps || b.gaps, a.mixed || b.mixed
	a.logs = append(a.logs, b.logs...)
	for i := range a.bloom {
		a.bloom[i] |= b.bloom[i]
	}
}

// check compares receipts with the header of their block: there is one per transaction, logs are
// numbered from 0, and they set all bits of the bloom filter.
func (a *receiptsAnswer) check(header *fullBlock) error {
	at := header.block.Number
	switch {
	case a.receipts != len(header.transactions):
		return fmt.Errorf("block %d has %d transactions, and %d receipts", at, len(header.transactions), a.receipts)
	case a.gaps || a.first != 0:
		return fmt.Errorf("the receipts of block %d have %d logs that are not numbered from 0", at, a.count)
	case a.mixed || a.count > 0 && a.hash != header.block.Hash:
		return fmt.Errorf("the receipts are of another block than %d, %s", at, header.block.Hash)
	}
	for i := range header.bloom {
		if header.bloom[i]&^a.bloom[i] != 0 {
			return fmt.Errorf("the receipts of block %d lack logs in its bloom filter", at)
		}
	}
	return nil
}
