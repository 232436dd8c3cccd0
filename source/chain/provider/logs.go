package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"golang.org/x/sync/errgroup"
)

const (
	mostHeld    = 64 << 20 // bytes of logs waiting for earlier ones, from which no more are fetched
	logBytes    = 350      // memory of a log without its data
	slowEnough  = 3        // attempts at a range before it is halved for being slow
	lastInsists = 5        // attempts at a single block that the node refuses
)

// Logs fetches the logs of contracts in an inclusive range of blocks, with one of the given first
// topics. Requests run concurrently. Logs calls done with consecutive blocks, in order, from the
// calling goroutine; together they cover the range without gaps. Logs stops with the error of done;
// blocks passed to done stay valid.
func (c *Chain) Logs(ctx context.Context, addresses []common.Address, topics []common.Hash, from, to uint64, done func(Blocks) error) error {
	if from > to {
		return nil
	}
	if len(addresses) == 0 {
		return errors.New("no contracts to read logs of") // a node would return the logs of all contracts
	}
	r := &reading{c: c, question: question{addresses, topics}, next: from, to: to}
	r.changed.L = &r.mu
	g, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, r.wake)()
	for range c.workers() {
		g.Go(func() error { return r.work(ctx) })
	}
	err := r.deliver(ctx, done)
	if err != nil {
		r.stop()
		g.Go(func() error { return err }) // ends running requests
	}
	if failed := g.Wait(); err == nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = failed
	}
	return err
}

// A reading is a call of Logs.
type reading struct {
	c *Chain
	question

	mu      sync.Mutex
	changed sync.Cond // a field below changed, or the context ended
	jobs    []*job    // in block order; the first is the next to deliver
	next    uint64    // first block after the jobs
	to      uint64    // last block
	cut     bool      // all blocks are, or were, in jobs
	held    int       // bytes of answered jobs
	stopped bool
}

// A job is a range of blocks to ask for.
type job struct {
	from, to uint64
	most     uint64 // size limit after the job was too large; 0 for none
	state    state
	blocks   Blocks
}

type state int

const (
	waiting state = iota
	underWay
	answered
)

// size returns the number of blocks of a job. It overflows to 0 for all possible blocks.
func (j *job) size() uint64 { return j.to - j.from + 1 }

func (r *reading) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.changed.Broadcast()
}

// wake makes all goroutines check the context. It holds the lock, so that none misses the signal.
func (r *reading) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed.Broadcast()
}

// deliver calls done for answered jobs in block order.
func (r *reading) deliver(ctx context.Context, done func(Blocks) error) error {
	for {
		blocks, ok, err := r.first(ctx)
		if err != nil || !ok {
			return err
		}
		if err := done(blocks); err != nil {
			return err
		}
	}
}

// first waits for the first job and removes it. ok is false after the last one.
func (r *reading) first(ctx context.Context) (p Blocks, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case ctx.Err() != nil:
			return Blocks{}, false, context.Cause(ctx)
		case len(r.jobs) == 0 && r.cut:
			return Blocks{}, false, nil
		case len(r.jobs) > 0 && r.jobs[0].state == answered:
			p = r.jobs[0].blocks
			r.jobs = slices.Delete(r.jobs, 0, 1)
			r.held -= p.bytes()
			r.changed.Broadcast()
			return p, true, nil
		}
		r.changed.Wait()
	}
}

// work fetches jobs until none are left.
func (r *reading) work(ctx context.Context) error {
	for {
		j, sized := r.take(ctx)
		if j == nil {
			return nil
		}
		blocks, err := r.fetch(ctx, j, sized)
		for s, size := range sized {
			s.dropped(size)
		}
		if err != nil && (kindOf(err) != asked || j.size() == 1) {
			return fmt.Errorf("chain %d: logs of blocks %d to %d: %w", r.c.id, j.from, j.to, err)
		}
		r.finish(j, blocks, err)
	}
}

// take waits for a job and marks it as running. It also returns the sizes to update with the job's
// outcome. A nil job means that none are left.
func (r *reading) take(ctx context.Context) (j *job, sized map[*sizes]uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ctx.Err() == nil && !r.stopped && (len(r.jobs) > 0 || !r.cut) {
		if i, ok := r.waiting(); ok {
			if size, sized, ok := r.c.nextSize(r.alone()); ok {
				return r.begin(i, size), sized
			}
		}
		r.changed.Wait()
	}
	return nil, nil
}

// waiting returns the index of the first job that may start. A new job comes after the last.
func (r *reading) waiting() (i int, ok bool) {
	i = slices.IndexFunc(r.jobs, func(j *job) bool { return j.state == waiting })
	if i < 0 {
		i = len(r.jobs)
		ok = !r.cut && i < 2*r.c.workers()
	} else {
		ok = true
	}
	return i, ok && (i == 0 || r.held < mostHeld)
}

// alone reports whether this reading has no running request.
func (r *reading) alone() bool {
	return !slices.ContainsFunc(r.jobs, func(j *job) bool { return j.state == underWay })
}

// begin marks a job as running, and splits it if it is larger than size.
func (r *reading) begin(i int, size uint64) *job {
	if i == len(r.jobs) {
		r.jobs = append(r.jobs, &job{from: r.next, to: r.to})
		if r.to-r.next < size {
			r.cut = true
		} else {
			r.jobs[i].to = r.next + size - 1
			r.next += size
		}
	}
	j := r.jobs[i]
	if j.most > 0 {
		size = min(size, j.most)
	}
	r.split(i, size, j.most)
	j.state = underWay
	return j
}

// split cuts a job after size blocks, if it is larger.
func (r *reading) split(i int, size, rest uint64) {
	if j := r.jobs[i]; j.to-j.from >= size {
		r.jobs = slices.Insert(r.jobs, i+1, &job{from: j.from + size, to: j.to, most: rest})
		j.to = j.from + size - 1
	}
}

// finish stores the answer of a job, or splits the job if it was too large.
func (r *reading) finish(j *job, b Blocks, tooLarge error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changed.Broadcast()
	if tooLarge == nil {
		j.state, j.blocks = answered, b
		r.held += b.bytes()
		return
	}
	half := (j.size() + 1) / 2
	j.state, j.most = waiting, half
	if now := r.c.likely(1)[0].sizes.now(); now > half && now < j.size() {
		j.most = now // the size that worked before a larger one was tried
	}
	r.split(slices.Index(r.jobs, j), j.most, half)
}

// bytes returns their approximate memory.
func (p *Blocks) bytes() int {
	n := len(p.Logs) * logBytes
	for i := range p.Logs {
		n += len(p.Logs[i].Data)
	}
	return n
}

// likely returns the nodes that a question will probably be put to.
func (c *Chain) likely(n int) []*node {
	var all []*node
	var except []string
	for range n {
		best, err := c.choose(asking{except: except}, nil, nil)
		if err != nil {
			break // the question will fail
		}
		all, except = append(all, best), append(except, best.origin)
	}
	if len(all) == 0 {
		all = c.nodes[:1]
	}
	return all
}

// nextSize returns the size of the next request, and the sizes that must hear of its outcome. ok is
// false while another request is finding out the first size.
func (c *Chain) nextSize(alone bool) (size uint64, sized map[*sizes]uint64, ok bool) {
	sized = map[*sizes]uint64{}
	size = c.o.MaxRange
	for _, n := range c.likely(c.o.Quorum) {
		own, ok := n.sizes.next(alone)
		if !ok {
			for s, size := range sized {
				s.dropped(size)
			}
			return 0, nil, false
		}
		sized[n.sizes] = own
		size = min(size, own)
	}
	return size, sized, true
}

// fetch fetches a job. A failure of kind asked means that it must be smaller.
func (r *reading) fetch(ctx context.Context, j *job, sized map[*sizes]uint64) (Blocks, error) {
	how := asking{}
	if j.size() == 1 {
		how.insist = lastInsists
	}
	tries := map[*node]*slowness{}
	return agree(ctx, r.c, how, func(ctx context.Context, n *node) (Blocks, error) {
		if _, agreed := sized[n.sizes]; !agreed && j.size() > n.sizes.now() {
			return Blocks{}, n.failure(asked, errors.New("it takes fewer blocks")) // this node replaces another one
		}
		blocks, err := r.logs(ctx, n, j)
		if tries[n] == nil {
			tries[n] = &slowness{first: time.Now()}
		}
		if err != nil && j.size() > 1 && tries[n].tooLarge(n, err) {
			err = n.failure(asked, errors.New(err.Error()))
		}
		switch {
		case err == nil:
			n.sizes.worked(j.size(), len(blocks.Logs))
		case kindOf(err) == asked:
			n.sizes.failed(j.size())
			n.countHalved(j, err)
		}
		return blocks, err
	}, difference)
}

// slowness decides whether a range is too large for a node that only answers slowly.
type slowness struct {
	first time.Time
	times int
}

func (s *slowness) tooLarge(n *node, err error) bool {
	k := kindOf(err)
	if k != slow && k != passing {
		return false
	}
	s.times++
	return s.times >= slowEnough && (k == slow || n.lastAnswer().After(s.first))
}

// logs fetches the logs of a job, and its last block, from a node.
func (r *reading) logs(ctx context.Context, n *node, j *job) (Blocks, error) {
	if err := n.follows(ctx, r.c.head.Load()); err != nil {
		return Blocks{}, err
	}
	blocks, err := r.all(ctx, n, j)
	if err == nil {
		err = r.checkBlocks(ctx, n, blocks)
	}
	return blocks, err
}

// all fetches the logs of a job. It reads a single block in another way if the node may have cut its
// answer.
func (r *reading) all(ctx context.Context, n *node, j *job) (Blocks, error) {
	var logs logsAnswer
	var last blockAnswer
	err := n.both(ctx, call{"eth_getLogs", []any{r.filter(j.from, j.to)}, &logs}, call{"eth_getBlockByNumber", []any{hexutil.Uint64(j.to), false}, &last})
	switch {
	case kindOf(err) == asked && j.size() == 1 && !errors.As(err, new(*valueError)):
		return r.block(ctx, n, j.to, 0, err)
	case err != nil:
		return Blocks{}, err
	case !last.found:
		return Blocks{}, n.failure(behind, fmt.Errorf("no block %d: %w", j.to, ErrBehind))
	case j.size() > 1 && n.mayBeCut(len(logs)):
		return Blocks{}, n.failure(asked, limitError(len(logs)))
	}
	suspect := len(logs)
	blocks, err := r.blocks(j.from, j.to, logs, last.Block)
	if err != nil {
		return blocks, n.name(fail(passing, err))
	}
	if n.mayBeCut(suspect) {
		return r.block(ctx, n, j.to, len(blocks.Logs), limitError(suspect))
	}
	return blocks, nil
}

// checkBlocks compares the hashes of the logs' blocks with those of the node's chain, as far as
// blocks may still change: a load balancer may return logs of a replaced block with newer blocks of
// another server.
func (r *reading) checkBlocks(ctx context.Context, n *node, p Blocks) error {
	hashes := map[uint64]common.Hash{}
	for i := range p.Logs {
		if l := &p.Logs[i]; !r.c.isFinal(l.BlockNumber) && l.BlockNumber != p.To {
			hashes[l.BlockNumber] = l.BlockHash
		}
	}
	times, err := n.times(ctx, slices.Sorted(maps.Keys(hashes)), hashes)
	if errors.Is(err, ErrDisagree) {
		return n.name(fail(passing, err)) // perhaps it was just replaced
	}
	for i := range p.Logs {
		if time, ok := times[p.Logs[i].BlockNumber]; ok {
			p.Logs[i].BlockTimestamp = uint64(time)
		}
	}
	return err
}
