package follow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/replay"
)

// A Follower makes rounds of the newest blocks of chains. Only one goroutine at a time may call
// Next; the other methods are safe for concurrent use.
type Follower struct {
	o     Options
	links []*link // in the order of the deployment
	stop  context.CancelFunc
	ctx   context.Context
	all   sync.WaitGroup // all goroutines

	state  sync.Mutex // guards o.State and unsure
	unsure bool       // the state may have lost earlier events
	kicked chan struct{}

	mu            sync.Mutex
	begun         bool           // the state was read
	position      chain.Position // position of the last confirmation
	confirmations []confirmation // for the next round
	confirmedAt   time.Time
	confirming    string
	unread        string
	renew         bool
	failed        error // final error
	news          chan struct{}

	round *round // nil before the first round
}

// Open checks the options and starts to follow the chains. It does not wait for nodes: Status
// reports their failures, and Next waits for them. After a success the caller must call Close.
func Open(o Options) (*Follower, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &Follower{o: o, kicked: make(chan struct{}, 1), news: make(chan struct{}, 1)}
	f.o.Provider.Heard = f.hear
	f.ctx, f.stop = context.WithCancel(context.Background())
	now := clock{time.Now()}
	for _, c := range o.Deployment.Chains {
		l := &link{o: &f.o, chain: c, clock: now, notify: f.notify, kick: f.kick, heard: map[string]NodeStatus{}}
		l.now = ChainStatus{Name: c.Name, Head: source.Head{Chain: c.ID}}
		f.links = append(f.links, l)
	}
	return f, nil
}

// Close ends all requests and waits for them. Only Status and Renew may run concurrently. The state
// stays open.
func (f *Follower) Close() error {
	f.stop()
	f.all.Wait()
	return nil
}

// Renew makes the next round read the tables of Options.Tables again; the round then has a
// snapshot. If they are unreadable, Status says why and the old tables stay.
func (f *Follower) Renew() {
	f.mu.Lock()
	f.renew = true
	f.mu.Unlock()
	f.notify()
}

func (f *Follower) hear(chain uint64, host string, err error) {
	for _, l := range f.links {
		if l.chain.ID == chain {
			l.hear(host, err)
		}
	}
}

func (f *Follower) notify() { signal(f.news) }
func (f *Follower) kick()   { signal(f.kicked) }

// signal wakes the waiter.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

func (f *Follower) fail(err error) {
	f.mu.Lock()
	f.failed = errors.Join(f.failed, err)
	f.mu.Unlock()
	f.notify()
}

// Next waits for the next round: new heads, with a snapshot if the graph changed. The first round
// has a snapshot; without a state on disk all chains are read before it. A round begins after the
// previous one was taken, and Options.Gather after its first event. A snapshot stays readable while
// referenced, and never changes.
//
// Failing nodes are asked again until they answer. An error is final: the context ended, the state
// or a table is unreadable, or a node belongs to another chain.
func (f *Follower) Next(ctx context.Context) (source.Round, error) {
	if f.round == nil {
		if err := f.begin(ctx); err != nil {
			return source.Round{}, err
		}
	}
	for {
		r, ok, err := f.round.next(ctx)
		if err != nil || ok {
			return r, err
		}
		select {
		case <-ctx.Done():
			return source.Round{}, context.Cause(ctx)
		case <-f.news:
		}
	}
}

// begin reads the state, filling it first if needed.
func (f *Follower) begin(ctx context.Context) error {
	tables, err := f.o.Tables.read()
	if err != nil {
		return err
	}
	if err := f.load(ctx); err != nil {
		return err
	}
	f.round = &round{Follower: f, tables: tables}
	for _, l := range f.links {
		base := f.position.Block(l.chain.ID)
		f.all.Go(func() { l.run(f.ctx, base) })
	}
	f.all.Go(func() { f.confirm(f.ctx) })
	deadline := time.After(firstTail)
	for {
		missing := false
		for _, l := range f.links {
			_, polled := l.state()
			missing = missing || !polled
		}
		if !missing {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline:
			return nil
		case <-f.news:
		}
	}
}

// firstTail is how long the first round waits for the newest blocks.
const firstTail = 3 * time.Second

// load reads the state. It first completes one that was not filled to the end, however long nodes
// take.
func (f *Follower) load(ctx context.Context) error {
	f.state.Lock()
	defer f.state.Unlock()
	if _, err := f.o.State.Position(); err == nil {
		return f.read(ctx)
	} else if chain.Lasts(err) {
		return err
	}
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		err := f.sync(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case lasts(err):
			return err
		}
		f.o.Log.Warn("the chains cannot be read yet", "error", err)
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// A round makes rounds, and holds their inputs. Only Next uses it.
type round struct {
	*Follower
	replay  *replay.Replay
	rows    *replay.Rows
	base    confirmation
	tables  *additions
	applied map[uint64][]chain.TailBlock // by chain
	reorgs  map[uint64]uint64
	heads   []source.Head // heads of the last round
	ops     uint64        // operations in the last snapshot
}

// next makes a round; ok is false if nothing is new. Once it has taken changes, it completes the
// round even if the caller stops waiting, so nothing is lost.
func (r *round) next(ctx context.Context) (_ source.Round, ok bool, err error) {
	if r.replay != nil && r.hasEvents(r.tails()) && !sleep(ctx, r.o.Gather) || ctx.Err() != nil {
		return source.Round{}, false, context.Cause(ctx)
	}
	ctx = context.WithoutCancel(ctx)
	confirmed, renew, err := r.take()
	if err != nil {
		return source.Round{}, false, err
	}
	tails, first := r.tails(), r.replay == nil
	if err := r.apply(tails, confirmed); err != nil {
		return source.Round{}, false, err
	}
	made := source.Round{Heads: r.headsOf(tails)}
	change, err := r.update(ctx, renew, r.opsSince(made.Heads))
	if err != nil {
		return source.Round{}, false, err
	}
	if !first {
		made.Undone = r.undone(tails)
	}
	if first || change.Any || r.ops != r.rows.ListOps() {
		if made.Snapshot, err = r.snapshot(made.Heads); err != nil {
			return source.Round{}, false, err
		}
		if !first {
			made.Accounts, made.Lists = change.Accounts, change.Lists
		}
	}
	if made.Snapshot == nil && len(made.Undone) == 0 && slices.Equal(made.Heads, r.heads) {
		return source.Round{}, false, nil
	}
	r.heads, r.ops = made.Heads, r.rows.ListOps()
	for i, c := range tails {
		r.reorgs[r.links[i].chain.ID] = c.reorgs
	}
	return made, true, nil
}

// take takes all changes except those of the tails.
func (r *round) take() (confirmed []confirmation, renew bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	confirmed, r.confirmations = r.confirmations, nil
	renew, r.renew = r.renew, false
	return confirmed, renew, r.failed
}

// tails returns the current newest blocks.
func (r *round) tails() (all []tailState) {
	for _, l := range r.links {
		s, _ := l.state()
		all = append(all, s)
	}
	return all
}

// undone returns the chains whose blocks were replaced since the last round.
func (r *round) undone(tails []tailState) (chains []uint64) {
	for i, c := range tails {
		if id := r.links[i].chain.ID; c.reorgs != r.reorgs[id] {
			chains = append(chains, id)
		}
	}
	return chains
}

// update remakes the changed rows.
func (r *round) update(ctx context.Context, renew bool, opsSince int64) (replay.Change, error) {
	change, err := r.rows.Update(ctx, opsSince)
	if err != nil {
		return change, err
	}
	if err := r.tables.name(change.Primary, r.rows.Primary); err != nil || !renew {
		return change, err
	}
	accounts, done, err := r.renewTables()
	change.Any = change.Any || done
	change.Accounts = append(change.Accounts, accounts...)
	slices.SortFunc(change.Accounts, site.Address.Compare)
	change.Accounts = slices.Compact(change.Accounts)
	return change, err
}

// hasEvents reports whether the events of tails differ from those applied.
func (r *round) hasEvents(tails []tailState) bool {
	for i, s := range tails {
		if id := r.links[i].chain.ID; !slices.EqualFunc(r.after(id, s.blocks), r.applied[id], sameBlock) {
			return true
		}
	}
	return false
}

func sameBlock(a, b chain.TailBlock) bool { return a.Hash == b.Hash }

// after returns the blocks after those of the state.
func (r *round) after(id uint64, blocks []chain.TailBlock) []chain.TailBlock {
	from := r.base.at.Block(id).Number
	i, _ := slices.BinarySearchFunc(blocks, from+1, func(b chain.TailBlock, n uint64) int { return cmp.Compare(b.Number, n) })
	return blocks[i:]
}

// apply replays the confirmed events, and after them the tails.
func (r *round) apply(tails []tailState, confirmed []confirmation) error {
	for _, c := range confirmed {
		switch {
		case c.all != nil && r.rows == nil:
			r.replay, r.rows, r.reorgs = c.all, c.all.Rows(), map[uint64]uint64{}
		case c.all != nil:
			r.replay = c.all
			r.rows.Replace(c.all)
		default:
			r.replay.Undo()
			for _, e := range c.events {
				if err := r.replay.Add(e); err != nil {
					return err
				}
			}
		}
		r.replay.Mark()
		r.base, r.applied = c, map[uint64][]chain.TailBlock{}
	}
	undo := false
	for i, s := range tails {
		id := r.links[i].chain.ID
		is, was := r.after(id, s.blocks), r.applied[id]
		undo = undo || len(is) < len(was) || !slices.EqualFunc(is[:len(was)], was, sameBlock)
	}
	if undo {
		r.replay.Undo()
		r.applied = map[uint64][]chain.TailBlock{}
	}
	for i, s := range tails {
		id := r.links[i].chain.ID
		is := r.after(id, s.blocks)
		for _, b := range is[len(r.applied[id]):] {
			for _, e := range b.Events {
				if err := r.replay.Add(e); err != nil {
					return err
				}
			}
		}
		r.applied[id] = is
	}
	return nil
}

// headsOf returns the heads of the graph.
func (r *round) headsOf(tails []tailState) (heads []source.Head) {
	for i, s := range tails {
		id := r.links[i].chain.ID
		newest := r.base.at.Block(id)
		if s.head.Number > newest.Number {
			newest = s.head
		}
		heads = append(heads, source.Head{Chain: id, Block: newest.Number, Time: newest.Time * 1000, Finalized: r.base.verified[id]})
	}
	return heads
}

// asOf returns the time of a graph with these heads, in milliseconds since the Unix epoch.
func asOf(heads []source.Head) int64 {
	at := heads[0].Time
	for _, h := range heads {
		at = min(at, h.Time)
	}
	return at
}

// opsSince returns the time from which a graph has operations.
func (r *round) opsSince(heads []source.Head) int64 {
	if r.o.History == 0 {
		return replay.NoOps
	}
	return asOf(heads) - r.o.History.Milliseconds()
}

// snapshot combines the tables.
func (r *round) snapshot(heads []source.Head) (afero.Fs, error) {
	ops := r.rows.ListOps()
	meta := snapshot.Meta{AsOf: time.UnixMilli(asOf(heads)).UTC(), ListOps: &ops}
	tables := r.tables.files(r.rows.Lists(), r.rows.Records())
	if r.o.History > 0 {
		since := r.opsSince(heads)
		from := time.UnixMilli(since).UTC()
		meta.OpsFrom = &from
		var err error
		if tables[snapshot.TableOps], err = r.rows.Ops(since); err != nil {
			return nil, err
		}
	}
	return snapshot.NewMemory(meta, tables)
}

// renewTables reads the tables of the options again.
func (r *round) renewTables() (accounts []site.Address, done bool, err error) {
	fresh, err := r.o.Tables.read()
	r.mu.Lock()
	if r.unread = ""; err != nil {
		r.unread = err.Error()
	}
	r.mu.Unlock()
	if err != nil {
		r.o.Log.Warn("tables are not read again", "error", err)
		return nil, false, nil
	}
	if accounts, err = fresh.instead(r.tables); err != nil {
		return nil, false, err
	}
	r.tables = fresh
	return accounts, true, nil
}
