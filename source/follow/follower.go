package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/badge"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/profile"
	"github.com/followpress/followpress/source/replay"
)

// A Follower makes rounds of the newest blocks of chains. One goroutine at a time may call Next; the
// other methods may be called from any.
type Follower struct {
	o Options

	state  sync.Mutex // o.State
	first  bool
	status sync.Mutex
	now    Status
}

// Open checks the options and begins to follow the chains. It asks no node: what is wrong with nodes
// is told by Status, and Next waits for them. Close must be called after a success.
func Open(o Options) (*Follower, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &Follower{o: o, first: true}
	for _, c := range o.Deployment.Chains {
		f.now.Chains = append(f.now.Chains, ChainStatus{Name: c.Name, Head: source.Head{Chain: c.ID}})
	}
	return f, nil
}

// Next waits for the next round: new heads, with a snapshot if the graph has changed. The first round
// has a snapshot; without a state on disk all chains are read before it. A round begins once the last
// one was taken, and Options.Gather after its first event. A snapshot stays readable as long as it is
// referred to, and never changes.
//
// Nodes that fail are asked again until they answer. An error is final: the context ended, the state
// cannot be read or written, or the nodes serve another chain than the state has.
func (f *Follower) Next(ctx context.Context) (source.Round, error) {
	if !f.first {
		select {
		case <-ctx.Done():
			return source.Round{}, context.Cause(ctx)
		case <-time.After(f.o.Confirm):
		}
	}
	f.first = false
	dir, err := os.MkdirTemp("", "followpress-live-")
	if err != nil {
		return source.Round{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	w, err := snapshot.Create(filepath.Join(dir, "snapshot"), snapshot.WriteOptions{Compression: "none", NoSync: true})
	if err != nil {
		return source.Round{}, err
	}
	meta, err := f.Finalized(ctx, w)
	if err != nil {
		return source.Round{}, errors.Join(err, w.Close())
	}
	if err := w.Commit(meta); err != nil {
		return source.Round{}, err
	}
	files, err := snapshot.Open(filepath.Join(dir, "snapshot"))
	if err != nil {
		return source.Round{}, err
	}
	var heads []source.Head
	for _, c := range f.Status().Chains {
		heads = append(heads, c.Head)
	}
	return source.Round{Heads: heads, Snapshot: files}, nil
}

// Status says how the Follower gets on.
func (f *Follower) Status() Status {
	f.status.Lock()
	defer f.status.Unlock()
	s := f.now
	s.Chains = append([]ChainStatus(nil), s.Chains...)
	return s
}

// Renew has the tables of Options.Tables read again for the next round, which has a snapshot then.
func (f *Follower) Renew() {}

// Finalized writes all tables of the snapshot of finalized blocks, as the contracts have confirmed
// them: with Commit of the Meta they are the bytes that `snapshot chain` makes. It reads finalized
// blocks that the state does not have yet. An error leaves the state, and rounds, as they are.
func (f *Follower) Finalized(ctx context.Context, w *snapshot.Writer) (snapshot.Meta, error) {
	f.state.Lock()
	defer f.state.Unlock()
	report, err := f.o.State.Sync(ctx, chain.Options{URLs: f.o.URLs, Provider: f.o.Provider, NoSync: f.o.NoSync, Progress: f.o.Progress})
	if err != nil {
		return snapshot.Meta{}, err
	}
	f.status.Lock()
	for i, c := range report.Chains {
		asOf, _ := time.Parse(time.RFC3339, c.AsOf)
		f.now.Chains[i].Head = source.Head{Chain: c.Chain, Block: c.To, Time: asOf.UnixMilli(), Finalized: c.To}
		f.now.Chains[i].Seen = time.Now()
	}
	f.status.Unlock()
	asOf, err := f.o.State.AsOf()
	if err != nil {
		return snapshot.Meta{}, err
	}
	events := replay.New(f.o.Deployment)
	for e, err := range f.o.State.Events() {
		if err == nil {
			err = errors.Join(events.Add(e), ctx.Err())
		}
		if err != nil {
			return snapshot.Meta{}, err
		}
	}
	for t, file := range f.o.Tables.Files {
		if err := w.CopyTable(string(t), file); err != nil {
			return snapshot.Meta{}, fmt.Errorf("table %s of %s: %w", t, file, err)
		}
	}
	g, err := events.Write(ctx, w)
	if err != nil {
		return snapshot.Meta{}, err
	}
	if err := f.o.Tables.write(w, g); err != nil {
		return snapshot.Meta{}, err
	}
	return snapshot.Meta{AsOf: asOf, ListOps: &g.ListOps}, nil
}

// write writes the tables that do not come from files.
func (t *Tables) write(w *snapshot.Writer, g *source.Graph) error {
	if t.Files[snapshot.TableAccounts] == "" {
		var profiles []source.Profiles
		if t.State != "" {
			profiles = append(profiles, profile.Profiles(t.State))
		}
		if err := source.WriteAccounts(w, g, profiles...); err != nil {
			return err
		}
	}
	if t.State == "" || len(t.BadgeEvents) == 0 {
		return nil
	}
	events, err := badge.Events(t.State, t.BadgeEvents)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := w.WriteEvent(e); err != nil {
			return err
		}
	}
	for b, err := range badge.Badges(t.State, t.BadgeEvents) {
		if err == nil {
			err = w.WriteBadge(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends all requests, and waits for them. The state stays open.
func (f *Follower) Close() error { return nil }
