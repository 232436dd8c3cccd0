package provider

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"golang.org/x/time/rate"
)

// How a node is asked: takeSlot and freeSlot limit concurrent questions, requestBegins and
// requestEnds surround each request, and noteOutcome reports the outcome of a question. After an
// answer (countAnswer) the pace may rise; after a failure (restAfter) the node rests, and after a
// rate limit it is also asked more slowly (slowDown). giveUp is for nodes that refuse everything.

// Waits after failures, and changes of the pace.
const (
	firstRest    = 500 * time.Millisecond
	longestRest  = 20 * time.Second
	slowestPace  = 0.2              // requests per second, after any number of rate limits
	paceAfter    = 0.9              // share of the observed limit that is used
	measured     = time.Second      // minimum time for measuring the pace
	quicker      = 0.1              // increase of the pace; doubles each further time
	quickerEvery = 10 * time.Second // time without a rate limit before an increase
	idle         = 2 * time.Second  // time without a request, though not resting, after which the pace is measured again
)

// takeSlot waits for a slot. ok is false if the node must rest by then.
func (n *node) takeSlot(ctx context.Context) (ok bool, err error) {
	select {
	case n.share.slots <- struct{}{}:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if n.resting() > 0 {
		n.freeSlot()
		return false, nil
	}
	return true, nil
}

func (n *node) freeSlot() { <-n.share.slots }

// resting returns how long the node must rest.
func (n *node) resting() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(0, time.Until(n.rest))
}

// lastFailure returns the reason why the node rests.
func (n *node) lastFailure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.why
}

// requestBegins counts a request. Idle times do not count for the pace.
func (n *node) requestBegins() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); n.busy == 0 && now.Sub(later(n.ended, n.rest)) > idle {
		n.paced, n.since = now, 0
	}
	n.busy++
}

func (n *node) requestEnds() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy--
	n.ended = time.Now()
}

// noteOutcome records the outcome of a question that began at begun. A node that refuses the
// question rests only if again is set.
func (n *node) noteOutcome(begun time.Time, err error, again bool) {
	var f *failure
	if !errors.As(err, &f) {
		n.countAnswer(begun)
		return
	}
	if f.kind == asked && !again {
		return // still an answer
	}
	n.restAfter(begun, f)
}

// countAnswer records the answer to a request that began at begun.
func (n *node) countAnswer(begun time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answered = time.Now()
	n.since++
	if begun.Before(n.failedAt) {
		return
	}
	n.waits.Reset()
	if limit := n.limiter.Limit(); limit != rate.Inf && limit != rate.Limit(n.o.Rate) && time.Since(n.paced) > quickerEvery {
		n.paced, n.since = time.Now(), 0
		limit *= 1 + rate.Limit(min(1, n.growth))
		n.growth *= 2
		if n.o.Rate > 0 {
			limit = min(limit, rate.Limit(n.o.Rate))
		}
		n.limiter.SetLimit(limit)
	}
}

// restAfter makes the node rest after a request that began at begun and failed temporarily.
// Requests that were already running at another failure do not prolong the rest.
func (n *node) restAfter(begun time.Time, f *failure) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cost.Retries++
	if f.kind == limited {
		n.cost.Limited++
	}
	now := time.Now()
	if !n.failedAt.IsZero() && begun.Before(n.failedAt) && f.after < 0 {
		return
	}
	wait := n.waits.Next()
	if f.after > wait { // otherwise the rest depends on the node's failures
		wait = f.after
		n.waits.Reset()
	}
	if f.kind == limited && !begun.Before(n.failedAt) {
		n.slowDown(now)
	}
	n.failedAt, n.why = now, f
	if until := now.Add(wait); until.After(n.rest) {
		n.cost.Waited += until.Sub(later(n.rest, now))
		n.rest = until
	}
	level := slog.LevelInfo
	if n.cost.Retries == 1 {
		level = slog.LevelWarn // the log explains the wait
	}
	n.log.Log(context.Background(), level, "trying again", "host", n.host, "in", wait.Round(time.Millisecond), "error", f.err)
}

// slowDown sets the pace slightly below the observed limit: the answers since the last change, over
// the time since then, including rests.
func (n *node) slowDown(now time.Time) {
	limit := n.limiter.Limit()
	elapsed := now.Sub(n.paced)
	switch {
	case n.since > 0 && elapsed >= measured:
		limit = min(limit, rate.Limit(paceAfter*float64(n.since)/elapsed.Seconds()))
	case limit == rate.Inf:
		limit = rate.Limit(paceAfter * float64(max(1, n.since)) / measured.Seconds())
	default: // the limit is unknown, but the pace is too fast
		limit *= paceAfter
	}
	n.limiter.SetLimit(max(slowestPace, limit))
	n.paced, n.since, n.growth = now, 0, quicker
	n.log.Debug("slower", "host", n.host, "requests per second", float64(n.limiter.Limit()))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// giveUp records that the node refuses everything, and reports whether it is broken: it is then no
// longer asked. A node that has answered before may only be refusing temporarily, unless its quota
// is used up.
func (n *node) giveUp(err error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.answered.IsZero() && kindOf(err) != spent {
		return false
	}
	if n.broken == nil {
		n.log.Warn("not asked any more", "host", n.host, "error", err)
	}
	n.broken = err
	return true
}

func (n *node) isBroken() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.broken
}

// lastAnswer returns the time of the last answer.
func (n *node) lastAnswer() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.answered
}

// countHalved counts a job that was too large.
func (n *node) countHalved(j *job, err error) {
	n.log.Debug("too large", "host", n.host, "from", j.from, "to", j.to, "error", err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cost.Halved++
}

func (n *node) costs() Cost {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.cost
	c.Calls = maps.Clone(c.Calls)
	c.Sent, c.Received = n.sent.Load(), n.received.Load()
	return c
}
