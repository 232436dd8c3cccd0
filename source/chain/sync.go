package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// Options configure Sync.
type Options struct {
	URLs     map[uint64][]string // nodes by chain ID; each chain of the deployment needs one
	Provider provider.Options
	// Reread forgets the blocks of a chain, by its ID, from the given one on, before Sync reads.
	Reread map[uint64]uint64
	// Ends gives the last block to read per chain ID, instead of the newest; its time is ignored.
	// Later blocks already read are forgotten. The newest block with the finality must not be
	// before it. A nonzero hash must match; otherwise the error wraps ErrOtherBlock.
	Ends map[uint64]provider.Block
	// Unchecked accepts logs that could be compared neither with contracts nor, with a quorum, with
	// other hosts. The next run reads them again.
	Unchecked bool
	NoSync    bool // do not sync the state to disk: a power failure may damage it
	Progress  source.Progress

	dial  func(ctx context.Context, chain uint64, urls []string, o provider.Options) (nodes, error) // nil for provider.Dial
	every time.Duration                                                                             // between checkpoints; 0 means commitEvery
}

// nodes are the nodes of a chain; see provider.Chain for the methods.
type nodes interface {
	Head(ctx context.Context, least uint64) (provider.Block, error)
	Block(ctx context.Context, number uint64) (provider.Block, error)
	Times(ctx context.Context, blocks map[uint64]common.Hash) (map[uint64]int64, error)
	Logs(ctx context.Context, addresses []common.Address, topics []common.Hash, from, to uint64, done func(provider.Blocks) error) error
	Call(ctx context.Context, calls []provider.Call, at provider.Block, except []string) (provider.State, error)
	Newest(ctx context.Context) (provider.Block, error)
	Again()
	Hosts() int
	Cost() []provider.Cost
	Close()
}

const (
	commitEvery = 2 * time.Second // limits what a killed run reads again
	tries       = 5               // to read a chain to its head without a reorganization

	// anchorDepth is the distance of the second anchor from the head: far enough that
	// reorganizations hardly reach it, near enough that reading again takes few requests.
	anchorDepth = 1000
)

// Sync reads all chains up to their heads, concurrently. After a failure, the next Sync continues.
// The report is nil only if the options are invalid or the folder is gone.
func (s *State) Sync(ctx context.Context, o Options) (*Report, error) {
	if err := errors.Join(s.checkOptions(&o), s.held()); err != nil {
		return nil, err
	}
	begun := time.Now()
	chains := make([]*chainSync, len(s.deployment.Chains))
	for i, c := range s.deployment.Chains {
		chains[i] = &chainSync{options: o, held: s.held, chain: c, decoder: newDecoder(c), report: PerChain{Chain: c.ID, Name: c.Name}, doubted: map[subject]bool{}}
	}
	err := s.sync(ctx, o, chains)
	if err != nil {
		if replaced := s.held(); replaced != nil {
			err = replaced // the cause of the other error
		}
	}
	report := &Report{Seconds: time.Since(begun).Seconds()}
	for _, c := range chains {
		report.Chains = append(report.Chains, c.finish())
	}
	return report, err
}

func (s *State) sync(ctx context.Context, o Options, chains []*chainSync) (err error) {
	defer func() {
		for _, c := range chains {
			err = errors.Join(err, c.close())
		}
	}()
	each := func(do func(*chainSync, context.Context) error) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, c := range chains {
			group.Go(func() error {
				if err := do(c, ctx); err != nil {
					return fmt.Errorf("%s: %w", c.chain.Name, err) // errors of nodes name the chain ID
				}
				return nil
			})
		}
		return group.Wait()
	}
	o.Progress.Stage("nodes", int64(len(chains)))
	defer o.Progress.End()
	err = each(func(c *chainSync, ctx context.Context) error {
		if err := c.open(ctx, s.folder(c.chain)); err != nil {
			return err
		}
		defer o.Progress.Add(1)
		return c.prepare(ctx)
	})
	if err != nil {
		return err
	}
	var blocks int64
	for _, c := range chains {
		blocks += c.left()
	}
	o.Progress.Stage("blocks", blocks)
	if err := each((*chainSync).read); err != nil {
		return err
	}
	o.Progress.Stage("check", 0)
	return s.check(chains, each)
}

// checkOptions rejects options that contradict the deployment, and sets defaults.
func (s *State) checkOptions(o *Options) error {
	known := map[uint64]bool{}
	for _, c := range s.deployment.Chains {
		known[c.ID] = true
		if len(o.URLs[c.ID]) == 0 {
			return fmt.Errorf("no node for chain %d (%s); add --rpc %d=URL", c.ID, c.Name, c.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(o.URLs)) {
		if !known[id] {
			return fmt.Errorf("--rpc %d=…: the deployment has no contracts on chain %d", id, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(o.Reread)) {
		if !known[id] {
			return fmt.Errorf("--reread %d: the deployment has no contracts on chain %d", id, id)
		}
	}
	o.Provider.Finality = cmp.Or(o.Provider.Finality, provider.Finalized)
	if !slices.Contains(finalities, o.Provider.Finality) {
		return fmt.Errorf("--finality %s: want one of %q", o.Provider.Finality, finalities)
	}
	o.Provider.Shares = cmp.Or(o.Provider.Shares, new(provider.Shares))
	o.every = cmp.Or(o.every, commitEvery)
	if o.dial == nil {
		o.dial = func(ctx context.Context, chain uint64, urls []string, o provider.Options) (nodes, error) {
			return provider.Dial(ctx, chain, urls, o)
		}
	}
	return nil
}

// finalities are the words for a head, strongest first.
var finalities = []string{provider.Finalized, provider.Safe, provider.Latest}

type chainSync struct {
	options Options
	held    func() error // see State
	chain   source.Chain
	decoder *decoder
	report  PerChain

	store     *store // nil before open
	nodes     nodes  // nil before open
	head      provider.Block
	next      uint64 // first block that part expects
	committed time.Time
	parted    []source.Event // events of the last part, to reuse their memory

	doubted map[subject]bool // values that contracts contradicted
	repairs int              // number of rereads
	all     bool             // the whole chain is being read again
	reread  bool             // blocks left unchecked by an earlier run were read again
	again   bool             // the chain must be read again now
}

func (c *chainSync) open(ctx context.Context, in folder) (err error) {
	var reread *uint64
	if block, ok := c.options.Reread[c.chain.ID]; ok {
		reread = &block
	}
	if c.store, err = openStore(in, c.chain, reread, c.options.NoSync); err != nil {
		return err
	}
	c.store.held = c.held
	c.store.begin(max(1, c.options.Provider.Quorum))
	c.report.From = c.store.next()
	n, err := c.options.dial(ctx, c.chain.ID, c.options.URLs[c.chain.ID], c.options.Provider)
	if err != nil {
		return err // n may be a nil pointer
	}
	c.nodes = n
	return nil
}

func (c *chainSync) close() error {
	if c.nodes != nil {
		c.nodes.Close()
	}
	if c.store == nil {
		return nil
	}
	return c.store.close()
}

// left returns the number of blocks left to read.
func (c *chainSync) left() int64 {
	return max(0, int64(c.head.Number)+1-int64(c.store.next()))
}

// prepare asks for the head and forgets blocks dropped from the chain. The order of its requests
// matters: if the head is still part of the chain when everything is read, so is everything asked
// for in between.
func (c *chainSync) prepare(ctx context.Context) (err error) {
	if c.head, err = c.findHead(ctx); err != nil {
		return err
	}
	if err := c.forgetUnsettled(ctx); err != nil {
		return err
	}
	if err := c.forgetReorganised(ctx); err != nil {
		return err
	}
	if err := c.setFinality(); err != nil {
		return err
	}
	c.report.From = min(c.report.From, c.store.next())
	return c.anchor(ctx)
}

// findHead finds the head and forgets later blocks.
func (c *chainSync) findHead(ctx context.Context) (head provider.Block, err error) {
	if end, ok := c.options.Ends[c.chain.ID]; ok {
		head, err = c.findEnd(ctx, end)
	} else {
		head, err = c.findNewest(ctx)
	}
	if err != nil {
		return head, err
	}
	if n := c.store.pointsBefore(head.Number + 1); n < len(c.store.check.Points) {
		err = c.store.keep(n)
	}
	return head, err
}

// findNewest finds a head that is not before the last block read. It may be before it if the blocks
// were read with a weaker finality.
func (c *chainSync) findNewest(ctx context.Context) (provider.Block, error) {
	check, least := &c.store.check, c.store.first()
	weaker := slices.Index(finalities, check.Finality) > slices.Index(finalities, c.options.Provider.Finality)
	if top := c.store.top(); top != nil && !weaker {
		least = top.Block
	}
	head, err := c.nodes.Head(ctx, least)
	if err == nil && head.Number < least {
		err = provider.ErrBehind
	}
	if errors.Is(err, provider.ErrBehind) {
		return head, fmt.Errorf("its nodes lag: their %s block is before block %d, where this run begins; nothing was forgotten: %w",
			c.options.Provider.Finality, least, err)
	} else if err != nil {
		return head, fmt.Errorf("find the head: %w", err)
	}
	return head, nil
}

// ErrOtherBlock means that the hash in Options.Ends does not match the chain's block.
var ErrOtherBlock = errors.New("the chain was reorganized, or is another one")

// findEnd finds the last block to read. If the contracts begin after it, that is their first block.
func (c *chainSync) findEnd(ctx context.Context, end provider.Block) (head provider.Block, err error) {
	number := max(end.Number, c.store.first())
	newest, err := c.nodes.Head(ctx, number)
	if err == nil && newest.Number < number {
		err = provider.ErrBehind
	}
	if err == nil {
		head, err = c.nodes.Block(ctx, number)
	}
	switch {
	case errors.Is(err, provider.ErrBehind):
		return head, fmt.Errorf("its nodes have no %s block %d yet: wait, or name other nodes: %w", c.options.Provider.Finality, number, err)
	case err != nil:
		return head, fmt.Errorf("find block %d: %w", number, err)
	case end.Number == number && end.Hash != (common.Hash{}) && end.Hash != head.Hash:
		return head, lasting("block %d is %s on the nodes, want %s: %w", number, head.Hash, end.Hash, ErrOtherBlock)
	}
	return head, nil
}

// setFinality records the weakest finality of the blocks read. Until forgetReorganised has run,
// some of them may be gone from the chain, so nobody may rely on them as final.
func (c *chainSync) setFinality() error {
	check := &c.store.check
	was := check.Finality
	check.Finality = c.options.Provider.Finality
	if was == check.Finality || len(check.Points) == 0 {
		return nil
	}
	return c.store.save() // even if there is nothing new to read
}

// same reports whether a block is still part of the chain.
func (c *chainSync) same(ctx context.Context, number uint64, hash common.Hash) (bool, error) {
	if number == c.head.Number {
		return hash == c.head.Hash, nil
	}
	b, err := c.nodes.Block(ctx, number)
	if err != nil {
		return false, fmt.Errorf("compare block %d, which was read before: %w", number, err)
	}
	return b.Hash == hash, nil
}

// forgetUnsettled forgets what an incomplete run may have read from a dropped part of the chain.
func (c *chainSync) forgetUnsettled(ctx context.Context) error {
	check := &c.store.check
	if check.Settled == len(check.Points) {
		return nil
	}
	settled := check.Settled
	for _, a := range check.Anchors {
		same, err := c.same(ctx, a.Block, a.Hash)
		if err != nil {
			return err
		}
		if same {
			settled = max(settled, c.store.pointsBefore(a.Block+1))
			break
		}
	}
	check.Settled = settled
	if settled < len(check.Points) {
		return c.forget(settled)
	}
	check.Anchors = nil
	return c.store.save()
}

// forgetReorganised forgets blocks that are no longer part of the chain.
func (c *chainSync) forgetReorganised(ctx context.Context) error {
	points := c.store.check.Points
	for n := len(points); n > 0; n-- {
		same, err := c.same(ctx, points[n-1].Block, points[n-1].Hash)
		if err != nil {
			return err
		}
		if same {
			return c.forget(n)
		}
	}
	origin := c.store.check.Origin
	if len(points) == 0 || origin == nil {
		return nil
	}
	same, err := c.same(ctx, origin.Block, origin.Hash)
	if err != nil {
		return err
	}
	if !same {
		return lasting("the nodes serve another chain than before, with the same id: none of the %d blocks that the state remembers is part of it, "+
			"not even block %d; if they are right, read it again with --reread %d", len(points)+1, origin.Block, c.chain.ID)
	}
	return c.forget(0)
}

// forget forgets all points but the first n.
func (c *chainSync) forget(n int) error {
	top := c.store.top()
	if n == len(c.store.check.Points) {
		return nil
	}
	u := Undone{Blocks: top.Block, Events: top.Events}
	if err := c.store.keep(n); err != nil {
		return err
	}
	if top = c.store.top(); top != nil {
		u.Events -= top.Events
	}
	u.Blocks -= c.store.next() - 1
	if was := c.report.Undone; was != nil {
		u.Blocks, u.Events = u.Blocks+was.Blocks, u.Events+was.Events
	}
	c.report.Undone = &u
	return nil
}

// anchor records blocks that show later whether the chain was reorganized while it was read.
func (c *chainSync) anchor(ctx context.Context) error {
	check, next := &c.store.check, c.store.next()
	if len(check.Points) == 0 {
		first, err := c.nodes.Block(ctx, c.store.first())
		if err != nil {
			return fmt.Errorf("find the first block: %w", err)
		}
		check.Origin = &anchor{first.Number, first.Hash}
	}
	check.Anchors = nil
	if next > c.head.Number {
		return nil
	}
	check.Anchors = []anchor{{c.head.Number, c.head.Hash}}
	if c.head.Number-next < anchorDepth {
		return nil
	}
	b, err := c.nodes.Block(ctx, c.head.Number-anchorDepth)
	if err != nil {
		return fmt.Errorf("find a block before the head: %w", err)
	}
	check.Anchors = append(check.Anchors, anchor{b.Number, b.Hash})
	return nil
}

// read reads the chain up to the head, again after a reorganization.
func (c *chainSync) read(ctx context.Context) error {
	for try := 1; ; try++ {
		if err := c.readLogs(ctx); err != nil {
			return err
		}
		settled, err := c.settle(ctx)
		if err != nil {
			return err
		}
		if settled {
			return nil
		}
		if try == tries {
			return fmt.Errorf("reorganized %d times during the read; try again, or use a safer --finality", try)
		}
		if err := c.prepare(ctx); err != nil {
			return err
		}
	}
}

func (c *chainSync) readLogs(ctx context.Context) error {
	c.next, c.committed = c.store.next(), time.Now()
	if c.next > c.head.Number {
		return nil
	}
	err := c.nodes.Logs(ctx, c.addresses(), c.decoder.topics(), c.next, c.head.Number, func(p provider.Blocks) error { return c.part(ctx, p) })
	if err == nil && c.next != c.head.Number+1 {
		err = fmt.Errorf("logs were read up to block %d, want %d", c.next-1, c.head.Number)
	}
	return errors.Join(err, c.store.commit())
}

func (c *chainSync) addresses() (all []common.Address) {
	for _, a := range c.store.contracts {
		all = append(all, common.Address(a))
	}
	return all
}

func (c *chainSync) part(ctx context.Context, p provider.Blocks) error {
	if p.From != c.next || p.To < p.From || p.Last.Number != p.To {
		return fmt.Errorf("got the logs of blocks %d to %d with block %d, want those from block %d", p.From, p.To, p.Last.Number, c.next)
	}
	events, tokens := c.parted[:0], int64(0)
	hashes := map[uint64]common.Hash{} // hashes of blocks whose logs lack the time
	for i := range p.Logs {
		log := &p.Logs[i]
		e, more, ok, err := c.decoder.decode(log)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if said := int64(log.BlockTimestamp); 0 < said && said <= p.Last.Time {
			e.Time = milliseconds(said)
		} else {
			hashes[e.Block] = log.BlockHash
		}
		tokens += more
		events = append(events, e)
	}
	c.parted = events
	if err := c.setTimes(ctx, events, hashes); err != nil {
		return err
	}
	if err := c.store.append(events, tokens, p.Last); err != nil {
		return err
	}
	clear(events) // they reference the node's answer
	c.report.Events += uint64(len(events))
	c.next = p.To + 1
	c.options.Progress.Add(int64(p.To-p.From) + 1)
	if time.Since(c.committed) < c.options.every {
		return nil
	}
	c.committed = time.Now()
	return c.store.commit()
}

func (c *chainSync) setTimes(ctx context.Context, events []source.Event, hashes map[uint64]common.Hash) error {
	if len(hashes) == 0 {
		return nil
	}
	times, err := c.nodes.Times(ctx, hashes)
	if err != nil {
		return fmt.Errorf("ask for times of blocks: %w", err)
	}
	for i := range events {
		if events[i].Time != source.NoTime {
			continue
		}
		seconds, ok := times[events[i].Block]
		if !ok {
			return fmt.Errorf("the time of block %d is missing", events[i].Block)
		}
		events[i].Time = milliseconds(seconds)
	}
	return nil
}

func milliseconds(seconds int64) int64 { return seconds * 1000 }

// settle reports whether everything read is part of the chain: it is if the earlier head still is.
func (c *chainSync) settle(ctx context.Context) (bool, error) {
	check := &c.store.check
	if check.Settled == len(check.Points) {
		return true, nil
	}
	top := c.store.top()
	if top.Hash != c.head.Hash {
		return false, nil
	}
	b, err := c.nodes.Block(ctx, c.head.Number)
	if err != nil {
		return false, fmt.Errorf("compare the head: %w", err)
	}
	if b.Hash != c.head.Hash {
		return false, nil
	}
	check.Settled, check.Anchors = len(check.Points), nil
	return true, c.store.save()
}
