package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	longRest  = 3 * time.Second // beyond this, ask another node rather than wait
	sameAgain = 2               // failures of a question at a node before another node is asked
	agreeing  = 4               // attempts to get the same answer from two hosts

	dialPatience = 30 * time.Second // shorter for the first answer, since a URL may be wrong
)

// asking controls how a question is asked.
type asking struct {
	except []string // origins to skip
	insist int      // attempts per node even if it refuses this question

	patience time.Duration // replaces that of the options if shorter; 0 for none
}

// workers returns the number of concurrent questions.
func (c *Chain) workers() int {
	return c.o.Concurrency * c.o.Quorum
}

// attempt asks a node once. If the node has no free slot or is resting, it returns errResting. A
// node that refuses the question rests if again is set.
func (c *Chain) attempt(ctx context.Context, n *node, again bool, question func() error) error {
	if ok, err := n.takeSlot(ctx); err != nil {
		return err
	} else if !ok {
		return errResting
	}
	defer n.freeSlot()
	begun := time.Now()
	err := n.check(ctx, c.id)
	if err == nil {
		err = question()
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if k := kindOf(err); k != fatal && (k != refused && k != spent || !n.giveUp(err)) {
		n.noteOutcome(begun, err, again)
	}
	if f := (*failure)(nil); !errors.As(err, &f) || f.kind == asked && !again {
		c.hear(n.host, nil)
	} else {
		c.hear(n.host, err)
	}
	return err
}

// hear reports the outcome of an attempt at a node.
func (c *Chain) hear(host string, err error) {
	if c.o.Heard != nil {
		c.o.Heard(c.id, host, err)
	}
}

var errResting = errors.New("the node is paused after failures")

// ask asks nodes until one answers, and returns that node. After a temporary failure it waits and
// asks the same node again, then others. It gives up after Options.Patience without an answer.
func (c *Chain) ask(ctx context.Context, how asking, question func(context.Context, *node) error) (*node, error) {
	failures, refusals := map[*node]int{}, map[*node]int{}
	var began time.Time // time of the first failure
	for {
		n, err := c.choose(how, failures, refusals)
		if err != nil {
			return nil, err
		}
		if wait := n.resting(); wait > 0 {
			if began.IsZero() {
				began = time.Now()
			}
			if err := c.rest(ctx, n, how, began, wait); err != nil {
				return nil, err
			}
			continue
		}
		err = c.attempt(ctx, n, how.insist > 0, func() error { return question(ctx, n) })
		switch {
		case err == nil:
			return n, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, errResting):
			continue
		}
		if began.IsZero() {
			began = time.Now()
		}
		failures[n]++
		switch kindOf(err) {
		case fatal:
			return nil, err
		case asked:
			if refusals[n]++; errors.As(err, new(*valueError)) {
				refusals[n] = max(refusals[n], how.insist) // asking again would not help
			}
			if how.insist == 0 || c.allRefused(how, refusals) {
				return nil, err
			}
		}
	}
}

// allRefused reports whether each node has refused the question as often as how allows.
func (c *Chain) allRefused(how asking, refusals map[*node]int) bool {
	return !slices.ContainsFunc(c.nodes, func(n *node) bool {
		return n.isBroken() == nil && !slices.Contains(how.except, n.origin) && refusals[n] < how.insist
	})
}

// choose returns the node to ask next: the first one with the fewest failures that need not rest
// for long.
func (c *Chain) choose(how asking, failures, refusals map[*node]int) (*node, error) {
	var best *node
	var least [3]time.Duration
	var broken []error
	for i := range c.nodes {
		n := c.nodes[(i+int(c.first.Load()))%len(c.nodes)]
		if slices.Contains(how.except, n.origin) {
			continue
		}
		if err := n.isBroken(); err != nil {
			broken = append(broken, err)
			continue
		}
		rest := n.resting()
		rank := [3]time.Duration{0, time.Duration(failures[n]/sameAgain + refusals[n]), 0}
		if rest > longRest {
			rank[0], rank[2] = 1, rest
		}
		if best == nil || slices.Compare(rank[:], least[:]) < 0 {
			best, least = n, rank
		}
	}
	if best == nil {
		return nil, fmt.Errorf("no usable node, %w", errors.Join(broken...))
	}
	return best, nil
}

// rest waits until a node may be asked again, unless that exceeds the patience with a question
// whose first failure was at began.
func (c *Chain) rest(ctx context.Context, n *node, how asking, began time.Time, wait time.Duration) error {
	patience := min(c.o.Patience, cmp.Or(how.patience, c.o.Patience))
	why := n.lastFailure()
	if kindOf(why) == limited {
		for _, other := range c.nodes { // waiting for a turn is not a failure
			began = later(began, other.lastAnswer())
		}
	}
	if tried := time.Since(began); tried+wait > patience {
		if f := (*failure)(nil); errors.As(why, &f) && f.after >= 0 && tried < wait {
			return fail(passing, fmt.Errorf("%w (it asks to wait %s, longer than the patience of %s)", why, wait.Round(time.Second), patience))
		}
		return fail(passing, fmt.Errorf("%w (tried for %s)", why, tried.Round(time.Second)))
	}
	return sleep(ctx, wait)
}

func sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// agree asks as many hosts as the quorum requires and compares their answers. If they differ, it
// asks again a few times: a node may have been at another block.
func agree[T any](ctx context.Context, c *Chain, how asking, question func(context.Context, *node) (T, error), difference func(a, b T) string) (T, error) {
	var none T
	for try := 1; ; try++ {
		var first T
		var different error
		hosts := []*node(nil)
		excepted := how.except
		for range c.o.Quorum {
			var answer T
			asking := how
			asking.except = excepted
			n, err := c.ask(ctx, asking, func(ctx context.Context, n *node) (err error) {
				answer, err = question(ctx, n)
				return err
			})
			if err != nil {
				return none, err
			}
			if len(hosts) == 0 {
				first = answer
			} else if text := difference(first, answer); text != "" {
				different = fmt.Errorf("%w: %s and %s: %s", ErrDisagree, hosts[0].host, n.host, text)
				break
			}
			hosts, excepted = append(hosts, n), append(slices.Clone(excepted), n.origin)
		}
		if different == nil {
			return first, nil
		}
		if try == agreeing {
			return none, different
		}
		c.o.Log.Warn("retrying", "error", different)
		if err := sleep(ctx, firstRest<<try); err != nil {
			return none, err
		}
	}
}
