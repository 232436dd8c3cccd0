package chain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// A Tail holds the newest blocks of a chain, after those of a State, in memory until the chain's
// finality and the contracts have confirmed them. One goroutine may use it at a time.
//
// It trusts nodes as far as their answers are consistent: each block that it takes has a known
// block as its parent, or is part of the chain of a node that still has one, and logs belong to
// these blocks. State.Sync finds out whether logs are missing.
type Tail struct {
	chain     source.Chain
	decoder   *decoder
	addresses []common.Address
	topics    []common.Hash

	base   provider.Block
	blocks []TailBlock // known blocks after base, in order, possibly with gaps
	short  time.Time   // since when nodes return only blocks before the newest known; zero if they do not

	distrust bool // blooms have contradicted logs
	audited  uint64
	reorgs   uint64
}

// A TailBlock is a block of a Tail with its events, which do not change.
type TailBlock struct {
	provider.Block
	Events []source.Event
}

// Nodes are the nodes that a Tail asks; see provider.Chain for the methods.
type Nodes interface {
	Latest(ctx context.Context) (provider.Header, error)
	Headers(ctx context.Context, numbers []uint64) ([]provider.Header, error)
	Logs(ctx context.Context, addresses []common.Address, topics []common.Hash, from, to uint64, done func(provider.Blocks) error) error
	LogsOf(ctx context.Context, addresses []common.Address, topics []common.Hash, of []provider.Block) ([]provider.Blocks, error)
	Times(ctx context.Context, blocks map[uint64]common.Hash) (map[uint64]int64, error)
	At(b *provider.Block)
}

var (
	// ErrReplaced means that the block after which a Tail begins is no longer part of the chain.
	ErrReplaced = errors.New("the newest block of the state is no longer part of the chain")
	// errMoving means that the chain changed between two answers; the next poll tries again.
	errMoving = errors.New("the newest blocks are being replaced")
)

const (
	linked    = 32          // blocks fetched one by one to check how they are linked; of more, only the last ones
	mostKnown = 4096        // limit of blocks without events
	shrinks   = time.Minute // how long a chain must stay shorter to be believed: lagging nodes look the same
)

// NewTail returns a Tail without blocks after base.
func NewTail(c source.Chain, base provider.Block) *Tail {
	t := &Tail{chain: c, decoder: newDecoder(c), base: base, audited: base.Number}
	for _, a := range t.decoder.addresses() {
		t.addresses = append(t.addresses, common.Address(a))
	}
	t.topics = t.decoder.topics()
	return t
}

// Head returns the newest block.
func (t *Tail) Head() provider.Block {
	if n := len(t.blocks); n > 0 {
		return t.blocks[n-1].Block
	}
	return t.base
}

// WithEvents returns the blocks that have events, in order.
func (t *Tail) WithEvents() (some []TailBlock) {
	for _, b := range t.blocks {
		if len(b.Events) > 0 {
			some = append(some, b)
		}
	}
	return some
}

// Reorganisations returns the number of times that blocks were replaced.
func (t *Tail) Reorganisations() uint64 { return t.reorgs }

// Distrust makes the Tail fetch the logs of every block from now on, regardless of bloom filters.
func (t *Tail) Distrust() { t.distrust = true }

// Rebase tells the Tail that the State now has the blocks up to base. If the Tail lacks base, it
// forgets its blocks, and the next Poll reads them again.
func (t *Tail) Rebase(base provider.Block) {
	i := sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].Number >= base.Number })
	switch {
	case base == t.base:
	case base.Number < t.base.Number || i == len(t.blocks) || t.blocks[i].Number == base.Number && t.blocks[i].Hash != base.Hash:
		t.blocks = nil
	case t.blocks[i].Number == base.Number:
		t.blocks = slices.Clone(t.blocks[i+1:])
	default:
		t.blocks = slices.Clone(t.blocks[i:])
	}
	t.base, t.audited = base, max(t.audited, base.Number)
}

// Poll fetches the newest block and all new blocks before it. If nothing is new, it makes one
// request. After an error the Tail is unchanged or has some of the new blocks.
func (t *Tail) Poll(ctx context.Context, n Nodes) error {
	const tries = 3 // a reorganization, and another one during it
	h, err := n.Latest(ctx)
	if err != nil {
		return err
	}
	n.At(nil)
	for range tries {
		top := t.Head()
		if h.Number > top.Number || h.Hash == top.Hash {
			t.short = time.Time{}
		}
		if h.Hash == top.Hash {
			return nil
		}
		if h.Number <= top.Number {
			if gone, err := t.gone(ctx, n, h); err != nil || !gone {
				return err
			}
		} else {
			ok, err := t.forward(ctx, n, h)
			if err != nil {
				return err
			}
			if ok {
				return nil
			}
		}
		if err := t.rewind(ctx, n, h); err != nil {
			return err
		}
	}
	return errMoving
}

// at returns the index of a known block.
func (t *Tail) at(number uint64) (i int, ok bool) {
	i = sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].Number >= number })
	return i, i < len(t.blocks) && t.blocks[i].Number == number
}

// gone reports whether a newest block that is not after ours means that ours was replaced. It does
// not if the node lags, or if it is on another branch while other nodes have our block.
func (t *Tail) gone(ctx context.Context, n Nodes, h provider.Header) (bool, error) {
	top := t.Head()
	known, same := h.Number == t.base.Number, h.Hash == t.base.Hash
	if i, ok := t.at(h.Number); ok {
		known, same = true, h.Hash == t.blocks[i].Hash
	}
	if h.Number < t.base.Number {
		return false, nil // it lags by more than any reorganization
	}
	if t.short.IsZero() {
		t.short = time.Now()
	}
	if (same || !known) && time.Since(t.short) < shrinks {
		return false, nil
	}
	ours, err := n.Headers(ctx, []uint64{top.Number})
	return err == nil && ours[0].Hash != top.Hash, err
}

// forward takes the blocks after the newest one, up to a later one. ok is false if that block is
// not part of the same chain. For many blocks, it fetches the logs of all but the last ones
// together.
func (t *Tail) forward(ctx context.Context, n Nodes, h provider.Header) (ok bool, err error) {
	top := t.Head()
	n.At(&h.Block)
	if h.Number > top.Number+linked {
		near := h.Number - linked/2
		found, err := n.Headers(ctx, []uint64{top.Number, near})
		if err != nil {
			return false, err
		}
		if found[0].Hash == (common.Hash{}) || found[1].Hash == (common.Hash{}) {
			return false, fmt.Errorf("%w: block %d is available, but an earlier block is not", errMoving, h.Number)
		}
		if found[0].Hash != top.Hash {
			return false, nil
		}
		blocks := map[uint64]*TailBlock{}
		if err := t.logs(ctx, n, top.Number+1, found[1].Block, blocks); err != nil {
			return false, err
		}
		t.add(blocks)
		top = t.Head()
	}
	headers := []provider.Header{h}
	if h.Number > top.Number+1 {
		var numbers []uint64
		for number := top.Number + 1; number < h.Number; number++ {
			numbers = append(numbers, number)
		}
		if headers, err = n.Headers(ctx, numbers); err != nil {
			return false, err
		}
		headers = append(headers, h)
	}
	for i := 1; i < len(headers); i++ {
		if headers[i].Parent != headers[i-1].Hash {
			return false, fmt.Errorf("%w: the parent of block %d is not block %d", errMoving, headers[i].Number, headers[i].Number-1)
		}
	}
	if headers[0].Parent != top.Hash {
		return false, nil
	}
	return true, t.read(ctx, n, headers)
}

// read takes linked blocks after the newest one.
func (t *Tail) read(ctx context.Context, n Nodes, headers []provider.Header) error {
	blocks := map[uint64]*TailBlock{}
	var of []provider.Block
	for i := range headers {
		blocks[headers[i].Number] = &TailBlock{Block: headers[i].Block}
		if t.distrust || headers[i].MayHave(t.addresses, t.topics) {
			of = append(of, headers[i].Block)
		}
	}
	if len(of) > 0 {
		found, err := n.LogsOf(ctx, t.addresses, t.topics, of)
		if err != nil {
			return err
		}
		for _, p := range found {
			if err := t.events(ctx, n, p, blocks); err != nil {
				return err
			}
		}
	}
	t.add(blocks)
	return nil
}

// add appends blocks.
func (t *Tail) add(blocks map[uint64]*TailBlock) {
	for _, number := range slices.Sorted(maps.Keys(blocks)) {
		b := *blocks[number]
		for i := range b.Events {
			b.Events[i].Time = milliseconds(b.Time)
		}
		t.blocks = append(t.blocks, b)
	}
	t.thin()
}

// logs adds the blocks with logs in a range to blocks, with their events.
func (t *Tail) logs(ctx context.Context, n Nodes, from uint64, head provider.Block, blocks map[uint64]*TailBlock) error {
	last := common.Hash{}
	err := n.Logs(ctx, t.addresses, t.topics, from, head.Number, func(p provider.Blocks) error {
		last = p.Last.Hash
		return t.events(ctx, n, p, blocks)
	})
	if err == nil && last != head.Hash {
		err = fmt.Errorf("%w: block %d had the hash %s, and now has %s", errMoving, head.Number, head.Hash, last)
	}
	return err
}

// events adds the blocks of an answer to blocks, with their events.
func (t *Tail) events(ctx context.Context, n Nodes, p provider.Blocks, blocks map[uint64]*TailBlock) error {
	add := func(b provider.Block) error {
		known := blocks[b.Number]
		if known == nil {
			blocks[b.Number] = &TailBlock{Block: b}
		} else if known.Hash != b.Hash {
			return fmt.Errorf("%w: block %d has the hash %s, and its logs have %s", errMoving, b.Number, known.Hash, b.Hash)
		}
		return nil
	}
	if err := add(p.Last); err != nil {
		return err
	}
	untimed := map[uint64]common.Hash{}
	for i := range p.Logs {
		log := &p.Logs[i]
		e, _, ok, err := t.decoder.decode(log)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := add(provider.Block{Number: log.BlockNumber, Hash: log.BlockHash, Time: int64(log.BlockTimestamp)}); err != nil {
			return err
		}
		b := blocks[log.BlockNumber]
		if b.Time <= 0 {
			untimed[b.Number] = b.Hash
		}
		e.Value = slices.Clone(e.Value) // it references the answer
		b.Events = append(b.Events, e)
	}
	return t.setTimes(ctx, n, untimed, blocks)
}

func (t *Tail) setTimes(ctx context.Context, n Nodes, untimed map[uint64]common.Hash, blocks map[uint64]*TailBlock) error {
	if len(untimed) == 0 {
		return nil
	}
	times, err := n.Times(ctx, untimed)
	if err != nil {
		return err
	}
	for number := range untimed {
		seconds, ok := times[number]
		if !ok {
			return fmt.Errorf("the time of block %d is missing", number)
		}
		blocks[number].Time = seconds
	}
	return nil
}

// thin forgets some old blocks without events if there are many: every second one of the older
// half.
func (t *Tail) thin() {
	if len(t.blocks) <= mostKnown {
		return
	}
	kept := t.blocks[:0]
	for i, b := range t.blocks {
		if i%2 == 0 || i >= mostKnown/2 || len(b.Events) > 0 {
			kept = append(kept, b)
		}
	}
	t.blocks = kept
}

// rewind forgets blocks that are not part of the chain of a header.
func (t *Tail) rewind(ctx context.Context, n Nodes, h provider.Header) error {
	n.At(&h.Block)
	end, _ := t.at(h.Number + 1)
	for some := 8; ; some = min(8*some, 512) {
		from := max(0, end-some)
		var numbers []uint64
		for _, b := range t.blocks[from:end] {
			numbers = append(numbers, b.Number)
		}
		if from == 0 {
			numbers = append([]uint64{t.base.Number}, numbers...)
		}
		found, err := n.Headers(ctx, numbers)
		if err != nil {
			return err
		}
		for i, hash := range found {
			if hash.Hash == (common.Hash{}) {
				return fmt.Errorf("%w: block %d is available, but the earlier block %d is not", errMoving, h.Number, numbers[i])
			}
		}
		for i := len(found) - 1; i >= 0; i-- {
			at, ok := t.at(numbers[i])
			if ok && t.blocks[at].Hash == found[i].Hash {
				return t.cut(at + 1)
			}
			if !ok && t.base.Hash == found[i].Hash {
				return t.cut(0)
			}
		}
		if from == 0 {
			return fmt.Errorf("%w: block %d had the hash %s, and now has %s", ErrReplaced, t.base.Number, t.base.Hash, found[0].Hash)
		}
		end = from
	}
}

// cut forgets all blocks but the first n.
func (t *Tail) cut(n int) error {
	if n < len(t.blocks) {
		t.reorgs++
		t.blocks = slices.Clone(t.blocks[:n])
		t.audited = min(t.audited, t.Head().Number)
	}
	return nil
}

// Audit fetches the logs of the blocks since the last Audit again, whatever their bloom filters
// say. If they differ, the Tail forgets these blocks, so that the next Poll reads them again, and
// no longer trusts bloom filters.
func (t *Tail) Audit(ctx context.Context, n Nodes) error {
	head := t.Head()
	if t.distrust || t.audited >= head.Number {
		return nil // the logs of all blocks were fetched
	}
	n.At(&head)
	blocks := map[uint64]*TailBlock{}
	from, _ := t.at(t.audited + 1)
	for _, b := range t.blocks[from:] {
		blocks[b.Number] = &TailBlock{Block: b.Block}
	}
	if err := t.logs(ctx, n, t.audited+1, head, blocks); err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(blocks)) {
		i, ok := t.at(number)
		had := 0
		if ok {
			had = len(t.blocks[i].Events)
		}
		if had != len(blocks[number].Events) {
			t.distrust, t.blocks = true, t.blocks[:min(i, from)]
			t.audited = t.Head().Number
			return nil
		}
	}
	t.audited = head.Number
	return nil
}
