package follow

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/replay"
)

const (
	// idleConfirm is the time between two comparisons with the contracts if there was no event: at
	// real size one asks for hundreds of thousands of values.
	idleConfirm = 6 * time.Hour
	lookEvery   = time.Second      // between checks for final events
	kickEvery   = 30 * time.Second // a node whose block differs from the state's may stay so
)

// A confirmation holds the events that the state gained since the previous one, or a replay of all.
type confirmation struct {
	at       chain.Position
	verified map[uint64]uint64 // by chain
	events   []source.Event    // since the previous confirmation
	all      *replay.Replay    // replaces events if earlier ones changed
}

// confirm keeps the state on disk current until ctx ends: Sync reads final blocks and compares them
// with the contracts.
func (f *Follower) confirm(ctx context.Context) {
	last, tried, kicked := time.Now(), time.Time{}, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		case <-f.kicked:
			kicked = true
		}
		since := time.Since(last)
		if (!kicked || time.Since(tried) < kickEvery) && since < idleConfirm && (since < f.o.Confirm || !f.due()) {
			continue
		}
		tried, kicked = time.Now(), false
		f.state.Lock()
		err := f.sync(ctx)
		f.state.Unlock()
		if lasts(err) {
			f.fail(err)
			return
		}
		last = time.Now()
	}
}

func (f *Follower) due() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.links {
		if l.due(f.position.Block(l.chain.ID).Number) {
			return true
		}
	}
	return false
}

// sync reads final blocks into the state, and passes them to the next round. The caller holds
// f.state.
func (f *Follower) sync(ctx context.Context) error {
	f.mu.Lock()
	progress := f.o.Progress
	if f.begun {
		progress = noProgress{}
	}
	f.mu.Unlock()
	report, err := f.o.State.Sync(ctx, chain.Options{URLs: f.o.URLs, Provider: f.o.Provider, NoSync: f.o.NoSync, Progress: progress})
	if report == nil {
		return &lastingError{err}
	}
	changed := false
	for i, c := range report.Chains {
		changed = changed || c.Undone != nil || len(c.Repairs) > 0
		f.links[i].mu.Lock()
		for _, cost := range c.Cost {
			f.links[i].spent += cost.Requests
		}
		f.links[i].mu.Unlock()
	}
	f.unsure = f.unsure || changed || err != nil
	if err == nil {
		err = f.read(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.confirming = ""; err != nil {
		f.confirming = err.Error()
		return err
	}
	f.confirmedAt = time.Now()
	return nil
}

// read reads the state's new events.
func (f *Follower) read(ctx context.Context) error {
	at, err := f.o.State.Position()
	if err != nil {
		return err
	}
	c := confirmation{at: at, verified: map[uint64]uint64{}}
	for _, l := range f.links {
		if c.verified[l.chain.ID], err = f.o.State.Verified(l.chain.ID); err != nil {
			return err
		}
	}
	f.mu.Lock()
	was, begun := f.position, f.begun
	f.mu.Unlock()
	if !begun || f.unsure || !at.Extends(was) {
		c.all, err = f.replayAll(ctx)
	} else {
		for e, failed := range f.o.State.Between(was, at) {
			if err = failed; err != nil {
				break
			}
			e.Value = slices.Clone(e.Value)
			c.events = append(c.events, e)
		}
	}
	if err != nil {
		return err
	}
	f.unsure = false
	for _, l := range f.links {
		id := l.chain.ID
		l.rebase(at.Block(id), c.all == nil && l.differs(was.Block(id).Number, at.Block(id).Number, c.events))
	}
	f.mu.Lock()
	f.position, f.begun = at, true
	f.confirmations = append(f.confirmations, c)
	f.mu.Unlock()
	f.notify()
	return nil
}

// differs reports whether the tail's events differ from the state's in the blocks after one up to
// another.
func (l *link) differs(after, upto uint64, events []source.Event) bool {
	s, _ := l.state()
	n := 0
	for _, b := range s.blocks {
		if after < b.Number && b.Number <= upto {
			n += len(b.Events)
		}
	}
	for _, e := range events {
		if e.Contract.Chain == l.chain.ID && e.Block <= s.head.Number {
			n--
		}
	}
	return n != 0
}

// replayAll replays all events of the state.
func (f *Follower) replayAll(ctx context.Context) (*replay.Replay, error) {
	r := replay.New(f.o.Deployment)
	for e, err := range f.o.State.Events() {
		if err == nil {
			err = errors.Join(r.Add(e), ctx.Err())
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// A lastingError is an error of invalid options.
type lastingError struct{ error }

func (e *lastingError) Unwrap() error { return e.error }

// lasts reports whether waiting does not fix an error of sync.
func lasts(err error) bool { return chain.Lasts(err) || errors.As(err, new(*lastingError)) }

// Finalized writes all tables of the snapshot of finalized blocks, as confirmed by the contracts:
// after Commit with the returned Meta, they are the bytes that `snapshot chain` makes. It first
// reads finalized blocks missing from the state, which may take as long. It may be called before
// the first round. After an error, the state and the rounds are unchanged.
func (f *Follower) Finalized(ctx context.Context, w *snapshot.Writer) (snapshot.Meta, error) {
	f.state.Lock()
	defer f.state.Unlock()
	if err := f.sync(ctx); err != nil {
		return snapshot.Meta{}, err
	}
	asOf, err := f.o.State.AsOf()
	if err != nil {
		return snapshot.Meta{}, err
	}
	if err := f.o.Tables.copy(w); err != nil {
		return snapshot.Meta{}, err
	}
	events, err := f.replayAll(ctx)
	if err != nil {
		return snapshot.Meta{}, err
	}
	g, err := events.Write(ctx, w)
	if err != nil {
		return snapshot.Meta{}, err
	}
	if err := f.o.Tables.write(w, g); err != nil {
		return snapshot.Meta{}, err
	}
	if g.Chains, err = f.o.State.Chains(); err != nil {
		return snapshot.Meta{}, err
	}
	g.AsOf = asOf
	return g.Meta(), nil
}
