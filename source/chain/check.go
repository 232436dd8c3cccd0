package chain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

const (
	// mostSingly limits the values to ask for if each needs its own call. Operations and
	// tokens are always counted.
	mostSingly  = 2000
	mostRepairs = 2 // rereads of the same blocks, from other hosts
	mostMoving  = 3 // tries with a newest block that is reorganized or whose state is gone
)

// A difference is a value for which a contract contradicts the logs.
type difference struct {
	subject
	host       string
	block      uint64 // block after which the contract was asked
	said, logs []byte
}

func (d difference) String() string {
	return fmt.Sprintf("%s: %s after block %d by %s, and %s by logs", d.subject, d.show(d.said), d.block, d.host, d.show(d.logs))
}

// A comparison is the result of comparing one host's view of a chain's contracts with the logs.
type comparison struct {
	host, origin string
	together     bool   // see provider.State.Together
	block        uint64 // block after which the contracts were asked
	asked        []subject
	refused      int              // values that contracts did not answer
	moved        map[subject]bool // values changed since the block; their state at the block is unknown
	differences  []difference
}

// errUnknown means that the contracts cannot be asked for counts.
var errUnknown = errors.New("the contracts cannot be asked")

// compare compares the contracts with the logs up to the head. If a host lacks the state of the
// head, or contradicts the logs, it is asked after its newest block, together with the logs in
// between: some nodes always answer after their newest block. The error wraps errUnknown if no
// host, apart from those in except, answers enough.
func (c *chainSync) compare(ctx context.Context, l *ledger, due []subject, except []string) (comparison, error) {
	now, err := c.ask(ctx, c.head, l, nil, due, except)
	switch {
	case err == nil && len(now.differences) == 0:
		return now, nil
	case err != nil && !errors.Is(err, errUnknown):
		return comparison{}, err
	}
	doubted := due
	if err == nil {
		doubted = nil
		for _, d := range now.differences {
			doubted = append(doubted, d.subject)
		}
	}
	later, failed := c.askLater(ctx, l, doubted, except)
	switch {
	case ctx.Err() != nil:
		return comparison{}, ctx.Err()
	case failed != nil && err != nil:
		return comparison{}, fmt.Errorf("%w; %w", err, failed)
	case failed == nil && err == nil:
		// A later block proves nothing about values that changed since.
		stands := later.moved
		for _, d := range later.differences {
			stands[d.subject] = true
		}
		now.differences = slices.DeleteFunc(now.differences, func(d difference) bool { return !stands[d.subject] })
	case failed == nil:
		now = later
	}
	return now, nil // without later blocks, the first answer stands
}

// askLater compares the contracts after the newest block.
func (c *chainSync) askLater(ctx context.Context, l *ledger, due []subject, except []string) (comparison, error) {
	var last error
	for range mostMoving {
		newest, err := c.nodes.Newest(ctx)
		if err != nil {
			return comparison{}, err
		}
		if newest.Number <= c.head.Number {
			return comparison{}, fmt.Errorf("%w after a later block: there is none after block %d", errUnknown, c.head.Number)
		}
		between, hash := newLedger(), common.Hash{}
		err = c.nodes.Logs(ctx, c.addresses(), c.decoder.topics(), c.head.Number+1, newest.Number, func(p provider.Blocks) error {
			hash = p.Last.Hash
			for i := range p.Logs {
				e, _, ok, err := c.decoder.decode(&p.Logs[i])
				if err != nil {
					return err
				}
				if ok {
					between.add(&e)
				}
			}
			return nil
		})
		if err != nil {
			return comparison{}, err
		}
		found, err := c.ask(ctx, newest, l, between, due, except)
		if err == nil && hash == newest.Hash {
			if b, err := c.nodes.Block(ctx, newest.Number); err != nil {
				return comparison{}, err
			} else if b.Hash == hash {
				return found, nil
			}
		}
		if last = err; err == nil {
			last = fmt.Errorf("%w: the newest blocks are reorganised", errUnknown)
		}
	}
	return comparison{}, last
}

// ask compares the contracts after a block with the logs of l and, unless it is nil, of later. It
// treats a host that does not answer a count like one without the state. The cause of an ended
// context is not an answer: perhaps a host of another chain did not answer.
func (c *chainSync) ask(ctx context.Context, at provider.Block, l, later *ledger, due []subject, except []string) (comparison, error) {
	var untold error
	for {
		found, err := c.askOne(ctx, at, l, later, due, except)
		switch {
		case ctx.Err() != nil:
			return comparison{}, ctx.Err()
		case !errors.Is(err, errUnknown):
			return found, err
		case errors.Is(err, provider.ErrNoState):
			return comparison{}, cmp.Or(untold, err)
		}
		untold, except = err, slices.Concat(except, []string{found.origin})
	}
}

// askOne is ask at the first host, apart from those in except, that has the state. It names the
// host even with an error.
func (c *chainSync) askOne(ctx context.Context, at provider.Block, l, later *ledger, due []subject, except []string) (comparison, error) {
	found := comparison{block: at.Number, moved: map[subject]bool{}}
	first := slices.IndexFunc(due, func(s subject) bool { return !s.counts() })
	if first < 0 {
		first = len(due)
	}
	for _, some := range [][]subject{due[:first], due[first:]} {
		if len(some) == 0 {
			continue
		}
		if found.origin != "" && !found.together && len(some) > mostSingly {
			some = sample(some)
		}
		state, err := c.nodes.Call(ctx, callsOf(some), at, except)
		if errors.Is(err, provider.ErrNoState) {
			return comparison{}, fmt.Errorf("%w: %w", errUnknown, err)
		} else if err != nil {
			return comparison{}, err
		}
		if err := found.take(state, some, l, later); err != nil {
			return found, err
		}
	}
	return found, nil
}

func callsOf(due []subject) []provider.Call {
	calls := make([]provider.Call, len(due))
	for i, s := range due {
		calls[i] = s.call()
	}
	return calls
}

func sample(due []subject) []subject {
	some := make([]subject, 0, mostSingly)
	for _, i := range rand.Perm(len(due))[:mostSingly] {
		some = append(some, due[i])
	}
	return some
}

func (f *comparison) take(state provider.State, due []subject, l, later *ledger) error {
	f.host, f.origin, f.together = state.Host, state.Origin, state.Together
	f.asked = append(f.asked, due...)
	for i, s := range due {
		said, ok := s.answer(state.Results[i])
		logs := l.says(s, later)
		switch {
		case later.changed(s):
			f.moved[s] = true
		case ok && !bytes.Equal(said, logs):
			f.differences = append(f.differences, difference{s, state.Host, f.block, said, logs})
		case ok:
		case s.counts():
			return fmt.Errorf("%w: %s did not tell after block %d: %s (is that its address?)", errUnknown, state.Host, f.block, s)
		default:
			f.refused++
		}
	}
	return nil
}

// check compares the events of all chains with their contracts, and reads contradicted blocks
// again. Only then is anything marked as verified.
func (*State) check(chains []*chainSync, each func(func(*chainSync, context.Context) error) error) error {
	if !slices.ContainsFunc(chains, func(c *chainSync) bool { return !c.store.verified() }) {
		for _, c := range chains {
			c.report.Check = &Check{How: CheckedEarlier}
		}
		return nil
	}
	all := ledgers{}
	for {
		for _, c := range chains {
			if l := all[c.chain.ID]; l == nil || c.again {
				var err error
				if all[c.chain.ID], err = c.ledger(); err != nil {
					return err
				}
			}
		}
		again := false
		err := each(func(c *chainSync, ctx context.Context) error { return c.check(ctx, all) })
		for _, c := range chains {
			again = again || c.again
		}
		if err != nil || !again {
			return err
		}
		err = each(func(c *chainSync, ctx context.Context) error {
			if !c.again {
				return nil
			}
			if err := c.prepare(ctx); err != nil {
				return err
			}
			return c.read(ctx)
		})
		if err != nil {
			return err
		}
	}
}

// ledger adds up the logs read of a chain.
func (c *chainSync) ledger() (*ledger, error) {
	l := newLedger()
	top := c.store.top()
	if top == nil {
		return l, nil
	}
	_, err := read(c.store.folder, c.chain, point{}, *top, func(e source.Event) bool {
		l.add(&e)
		return true
	})
	return l, err
}

// check compares the events of a chain with its contracts. It forgets contradicted blocks and
// sets c.again.
func (c *chainSync) check(ctx context.Context, all ledgers) error {
	c.again = false
	l, due := all[c.chain.ID], all.subjects(c.chain)
	found := comparison{}
	if len(due) > 0 {
		var err error
		if found, err = c.compare(ctx, l, due, nil); errors.Is(err, errUnknown) {
			return c.unchecked(err)
		} else if err != nil {
			return err
		}
	}
	wrong := found.differences
	if len(wrong) == 0 {
		var err error
		if wrong, err = c.confirm(ctx, l); err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return c.readAgain(wrong)
	}
	c.report.Check = found.report()
	if len(due) == 0 {
		c.report.Check = &Check{How: CheckedNothing}
	}
	if len(found.moved) > 0 {
		return nil // the next run may be able to check
	}
	return c.store.verify(true)
}

// confirm asks all hosts about values that one host contradicted and that were read again since:
// one host may agree with itself. A count that is too low is outdated.
func (c *chainSync) confirm(ctx context.Context, l *ledger) (wrong []difference, err error) {
	var except []string
	for len(c.doubted) > 0 && len(except) < c.nodes.Hosts() {
		found, err := c.compare(ctx, l, slices.SortedFunc(maps.Keys(c.doubted), subject.compare), except)
		if errors.Is(err, errUnknown) {
			return wrong, nil // no more hosts
		} else if err != nil {
			return nil, err
		}
		for _, d := range found.differences {
			if !d.counts() || bytes.Compare(d.said, d.logs) > 0 {
				wrong = append(wrong, d)
			}
		}
		except = append(except, found.origin)
	}
	return wrong, nil
}

// readAgain forgets the blocks that may cause the differences, back to the last point without any.
// It fails if they remain although other hosts were asked.
func (c *chainSync) readAgain(wrong []difference) error {
	for _, d := range wrong {
		c.doubted[d.subject] = true
	}
	check := &c.store.check
	text := wrong[0].String()
	if n := len(wrong); n > 1 {
		text += fmt.Sprintf(" (and %d more)", n-1)
	}
	// Counts are right up to there, unless the slot was unknown.
	old := check.Verified == len(check.Points) || !check.Counted || slices.ContainsFunc(wrong, func(d difference) bool { return len(bytes.Trim(d.logs, "\x00")) == 0 })
	c.repairs++
	enough := c.repairs > max(1, min(c.nodes.Hosts()-1, mostRepairs))
	from := check.Verified
	switch {
	case !enough && from < len(check.Points):
	case !c.all && from > 0 && old:
		c.all, from = true, 0
	default:
		check.Suspect = text
		return errors.Join(fmt.Errorf("logs and contracts disagree, even after reading again: %s; the logs were dropped; try another node (--rpc %d=URL)%s",
			text, c.chain.ID, c.firstBlockHint()), c.store.save())
	}
	return c.forgetAgain(from, text)
}

// firstBlockHint suggests another possible cause if nothing of the chain was ever verified.
func (c *chainSync) firstBlockHint() string {
	if c.store.check.Verified > 0 {
		return ""
	}
	return fmt.Sprintf("; it may also be that the deployment's first_block %d is after the first event", c.store.first())
}

// forgetAgain forgets all points after the first n, so that the blocks after them are read from
// other hosts.
func (c *chainSync) forgetAgain(n int, why string) error {
	c.again = true
	c.nodes.Again()
	forgot := c.store.top().Events
	if err := c.store.keep(n); err != nil {
		return err
	}
	if top := c.store.top(); top != nil {
		forgot -= top.Events
	}
	c.report.Events -= min(c.report.Events, forgot)
	c.report.Repairs = append(c.report.Repairs, Repair{c.store.next(), c.head.Number, why})
	c.store.begin(max(1, c.options.Provider.Quorum))
	return nil
}

// unchecked decides about events that no contract could confirm.
func (c *chainSync) unchecked(why error) error {
	check, quorum := &c.store.check, c.options.Provider.Quorum
	if quorum < 2 && !c.options.Unchecked {
		check.Unchecked = true
		return errors.Join(fmt.Errorf("cannot check for missing logs: %w; add a node that answers eth_call (--rpc %d=…), "+
			"or have two hosts agree on all logs (--quorum 2), or make the snapshot as it is (--unchecked)", why, c.chain.ID), c.store.save())
	}
	// Read the events of an earlier run again, perhaps from a better node.
	if !c.reread && len(check.Points) > check.Verified && (check.Unchecked || check.Quorum < quorum) {
		c.reread = true
		return c.forgetAgain(check.Verified, "no contract was ever compared with them")
	}
	c.report.Check = &Check{How: CheckedNot, Why: why.Error()}
	if quorum >= 2 {
		c.report.Check.How, c.report.Check.Hosts = CheckedByQuorum, quorum
		return c.store.verify(false)
	}
	check.Unchecked = true
	return c.store.save()
}

func (f *comparison) report() *Check {
	r := &Check{How: CheckedByContracts, Host: f.host, Block: f.block, Refused: f.refused, Moved: len(f.moved)}
	for _, s := range f.asked {
		switch s.question {
		case supply:
		case ops:
			r.Slots++
		case owner:
			r.Tokens++
		default:
			r.Values++
		}
	}
	return r
}
