package chain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/bundle"
	"github.com/followpress/followpress/source/chain/provider"
)

// History is what the state has of each chain, for the log of all events: only what is final, and what
// contracts, or a quorum of hosts, have confirmed, because a log never takes anything back.
func (s *State) History() ([]bundle.Source, error) {
	var all []bundle.Source
	for _, c := range s.deployment.Chains {
		in := s.folder(c)
		check, err := readCheckpoint(in, c)
		if err != nil {
			return nil, err
		}
		if len(check.Points) > 0 && check.Finality != provider.Finalized {
			return nil, fmt.Errorf("chain %d (%s) was read up to its %s block, which may still be replaced: read it with --finality %s before its events are published",
				c.ID, c.Name, check.Finality, provider.Finalized)
		}
		of := bundle.Source{Chain: bundle.Chain{ID: c.ID, Contracts: check.Contracts}}
		if check.Origin != nil {
			of.First = &bundle.Block{Block: check.Origin.Block, Hash: check.Origin.Hash.Hex()}
		}
		points := check.Points[:min(check.Verified, check.Settled)]
		for _, p := range points {
			of.Points = append(of.Points, bundle.Mark{Block: p.Block, Hash: p.Hash, Time: milliseconds(p.Time), Events: p.Events})
		}
		of.Events = func(yield func(source.Event, error) bool) {
			if len(points) == 0 {
				return
			}
			if _, err := read(in, c, points[len(points)-1], func(e source.Event) bool { return yield(e, nil) }); err != nil {
				yield(source.Event{}, err)
			}
		}
		all = append(all, of)
	}
	return all, nil
}

// adoptingFolder has the chains of a log until all of them are there.
const adoptingFolder = chainsFolder + ".new"

// Adopt fills a state, into which nothing was read yet, with the events of a log: of each chain up to the
// last block that the log has completely. Nothing of it counts as verified. A call that was cut off
// leaves the state empty.
func (s *State) Adopt(ctx context.Context, log *bundle.Log, noSync bool) (err error) {
	if IsState(s.root.Name()) {
		return fmt.Errorf("the state %s has events already: name an empty folder", s.root.Name())
	}
	if err := errors.Join(s.held(), s.root.RemoveAll(adoptingFolder), s.root.MkdirAll(adoptingFolder, 0o755)); err != nil {
		return err
	}
	all := map[uint64]*adopting{}
	defer func() {
		for _, a := range all {
			err = errors.Join(err, a.store.close())
		}
		if err != nil {
			err = errors.Join(err, s.root.RemoveAll(adoptingFolder))
		}
	}()
	if err := s.adoptable(log.Index); err != nil {
		return err
	}
	for i, c := range s.deployment.Chains {
		at := slices.IndexFunc(log.Index.Chains, func(l bundle.Chain) bool { return l.ID == c.ID })
		a := &adopting{log: &log.Index.Chains[at], decoder: newDecoder(c), tokens: map[source.Word]bool{}}
		in := folder{s.root, filepath.Join(adoptingFolder, filepath.Base(s.folder(c).name))}
		if a.store, err = openStore(in, s.deployment.Chains[i], nil, noSync); err != nil {
			return err
		}
		a.store.held = s.held
		all[c.ID] = a
	}
	for e, err := range log.Events(ctx) {
		if err == nil {
			err = all[e.Contract.Chain].add(&e) // bundle has refused other chains
		}
		if err != nil {
			return err
		}
	}
	for _, a := range all {
		if err := a.finish(); err != nil {
			return err
		}
	}
	if err := s.root.Rename(adoptingFolder, chainsFolder); err != nil || noSync {
		return err
	}
	dir, err := s.root.Open(".") // a power failure must not undo the name, once others rely on it
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// adoptable is an error if a log is not one of the deployment.
func (s *State) adoptable(x *bundle.Index) error {
	for _, c := range s.deployment.Chains {
		at := slices.IndexFunc(x.Chains, func(l bundle.Chain) bool { return l.ID == c.ID })
		if at < 0 {
			return fmt.Errorf("the log has no chain %d (%s): it is of another deployment; name the deployment that it was made with", c.ID, c.Name)
		}
		if want := contractTexts(c); !slices.Equal(x.Chains[at].Contracts, want) {
			return fmt.Errorf("the log has events of other contracts on chain %d: %q, want %q; name the deployment that it was made with", c.ID, x.Chains[at].Contracts, want)
		}
	}
	if len(x.Chains) != len(s.deployment.Chains) {
		return fmt.Errorf("the log is of %d chains, and the deployment of %d: name the deployment that it was made with", len(x.Chains), len(s.deployment.Chains))
	}
	return nil
}

// An adopting chain gets the events of a log.
type adopting struct {
	log     *bundle.Chain
	decoder *decoder
	store   *store
	tokens  map[source.Word]bool // that are there
	one     [1]source.Event
}

func (a *adopting) add(e *source.Event) error {
	p := a.log.Point
	if p == nil || e.Block > p.Block {
		return nil // read from the chain later
	}
	if err := a.check(e); err != nil {
		return fmt.Errorf("the log of events: chain %d, block %d, log %d: %w: nothing of it is kept; read it from another place", e.Contract.Chain, e.Block, e.Index, err)
	}
	more := int64(0)
	if e.Kind == source.Transfer {
		had, has := a.tokens[e.Subject], [20]byte(e.Value) != [20]byte{}
		a.tokens[e.Subject] = has
		if has && !had {
			more = 1
		} else if had && !has {
			more = -1
		}
	}
	a.one[0] = *e
	return a.store.append(a.one[:], more, provider.Block{Number: e.Block})
}

// check refuses events that no contract of the chain can have emitted.
func (a *adopting) check(e *source.Event) error {
	if !slices.Contains(a.decoder.kinds[e.Contract.Address], e.Kind) {
		return fmt.Errorf("the contract %s does not emit it", e.Contract.Address)
	}
	if e.Block < a.store.first() {
		return fmt.Errorf("the first block of the contracts is %d", a.store.first())
	}
	if e.Kind == source.Transfer && len(e.Value) != len(common.Address{}) {
		return fmt.Errorf("the new owner has %d bytes, want those of an address", len(e.Value))
	}
	if e.Kind == source.AccountMetadata && [12]byte(e.Subject[:12]) != [12]byte{} {
		return fmt.Errorf("the account %s is no address", e.Subject)
	}
	return nil
}

// finish writes the checkpoint.
func (a *adopting) finish() error {
	p := a.log.Point
	if p == nil {
		return nil
	}
	if a.store.events != p.Events {
		return fmt.Errorf("the log of events: chain %d has %d events up to block %d, and the index says %d: nothing of it is kept; read it from another place",
			a.log.ID, a.store.events, p.Block, p.Events)
	}
	at, err := time.Parse(time.RFC3339, p.Time)
	if err != nil {
		return err
	}
	check := &a.store.check
	check.Finality, check.Settled = provider.Finalized, 1
	check.Quorum = 1 // who published it; with 0, Sync would read it again at once where nobody can confirm it
	check.Origin = &anchor{a.log.First.Block, common.HexToHash(a.log.First.Hash)}
	a.store.written = &point{Block: p.Block, Hash: common.HexToHash(p.Hash), Time: at.Unix()}
	return a.store.commit()
}

// ErrRefused says that a log is not what the contracts say.
var ErrRefused = errors.New("the log of events is refused")

func refused(c source.Chain, format string, args ...any) error {
	return fmt.Errorf("%w: chain %d (%s): %w: nothing of it is kept; read it from another place, or read the chains without it", ErrRefused, c.ID, c.Name, fmt.Errorf(format, args...))
}

// Confirm compares what Adopt has taken with the chains: the blocks that the log names, and by counts and
// values, all that the events add up to with what the contracts say. An error wraps ErrRefused if they
// contradict; the state is empty then. After another error, it can be called again. It does nothing if
// something of the state is verified already: the rest is for Sync.
func (s *State) Confirm(ctx context.Context, o Options) (err error) {
	if err := errors.Join(s.checkOptions(&o), s.held()); err != nil {
		return err
	}
	chains := make([]*chainSync, len(s.deployment.Chains))
	for i, c := range s.deployment.Chains {
		chains[i] = &chainSync{options: o, held: s.held, chain: c, decoder: newDecoder(c), report: PerChain{Chain: c.ID, Name: c.Name}, doubted: map[subject]bool{}}
	}
	o.Progress.Stage("check", 0)
	err = s.confirm(ctx, chains)
	for _, c := range chains {
		err = errors.Join(err, c.close())
	}
	if errors.Is(err, ErrRefused) {
		err = errors.Join(err, s.root.RemoveAll(chainsFolder))
	}
	return err
}

func (s *State) confirm(ctx context.Context, chains []*chainSync) error {
	group, joined := errgroup.WithContext(ctx)
	all := make([]*ledger, len(chains))
	for i, c := range chains {
		group.Go(func() (err error) {
			if err := c.open(joined, s.folder(c.chain)); err != nil {
				return err
			}
			if err := c.sameBlocks(joined); err != nil {
				return err
			}
			all[i], err = c.ledger()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	of := ledgers{}
	for i, c := range chains {
		if c.store.check.Verified > 0 {
			return nil
		}
		of[c.chain.ID] = all[i]
	}
	group, joined = errgroup.WithContext(ctx)
	for _, c := range chains {
		group.Go(func() error { return c.confirmAdopted(joined, of) })
	}
	return group.Wait()
}

// sameBlocks compares the blocks of the checkpoint with those of the nodes.
func (c *chainSync) sameBlocks(ctx context.Context) error {
	top, origin := c.store.top(), c.store.check.Origin
	if top == nil || c.store.check.Verified > 0 {
		return nil
	}
	first, err := c.nodes.Block(ctx, origin.Block)
	if err != nil {
		return fmt.Errorf("find block %d: %w", origin.Block, err)
	}
	if c.head, err = c.nodes.Block(ctx, top.Block); err != nil {
		return fmt.Errorf("find block %d, up to which the log goes: %w", top.Block, err)
	}
	switch {
	case first.Hash != origin.Hash:
		return refused(c.chain, "block %d is %s, and by the log %s", first.Number, first.Hash, origin.Hash)
	case c.head.Hash != top.Hash || c.head.Time != top.Time:
		return refused(c.chain, "block %d is %s of %s, and by the log %s of %s", c.head.Number, c.head.Hash, time.Unix(c.head.Time, 0).UTC().Format(time.RFC3339),
			"0x"+hex.EncodeToString(top.Hash[:]), time.Unix(top.Time, 0).UTC().Format(time.RFC3339))
	}
	return nil
}

// confirmAdopted compares what was adopted of a chain with its contracts. Before it is refused, another
// host is asked, if there is one: a node may have lost logs.
func (c *chainSync) confirmAdopted(ctx context.Context, all ledgers) error {
	l, due := all[c.chain.ID], all.subjects(c.chain)
	if c.store.top() == nil || len(due) == 0 {
		return nil
	}
	found, err := c.compare(ctx, l, due, nil)
	if err == nil && len(found.differences) > 0 {
		if other, again := c.compare(ctx, l, due, []string{found.origin}); again == nil && len(other.differences) == 0 {
			found = other
		}
	}
	switch {
	case errors.Is(err, errUnknown) && c.options.Unchecked:
		return nil
	case errors.Is(err, errUnknown):
		return fmt.Errorf("%s: nobody can tell whether the log of events is right: %w; add a node that answers eth_call (--rpc %d=…), or take it as it is (--unchecked)", c.chain.Name, err, c.chain.ID)
	case err != nil:
		return fmt.Errorf("%s: %w", c.chain.Name, err)
	case len(found.differences) > 0:
		more := ""
		if n := len(found.differences); n > 1 {
			more = fmt.Sprintf(" (and %d more)", n-1)
		}
		return refused(c.chain, "it lacks events, or has some that never were: %s%s", found.differences[0], more)
	case len(found.moved) > 0:
		return nil // Sync can tell
	}
	return c.store.verify(true)
}
