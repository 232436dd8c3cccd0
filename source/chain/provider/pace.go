package provider

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"golang.org/x/time/rate"
)

// How a node is asked: takeSlot and freeSlot bound how many questions are asked at a time, requestBegins
// and requestEnds surround each request, and noteOutcome tells how a question went. After an answer
// (countAnswer) the pace may rise; after a failure (restAfter) the node rests, and after a rate limit it
// is asked at a lower pace too (slowDown). giveUp is for nodes that refuse everything.

// Waits after failures, and what changes the pace of requests.
const (
	firstRest    = 500 * time.Millisecond
	longestRest  = 20 * time.Second
	slowestPace  = 0.2              // requests per second, after any number of rate limits
	paceAfter    = 0.9              // the part of what a node was found to allow that is asked of it
	measured     = time.Second      // the shortest time that the pace is measured over
	quicker      = 0.1              // by this part the pace is made higher; by twice as much each further time
	quickerEvery = 10 * time.Second // when there was no rate limit for so long
	idle         = 2 * time.Second  // without a request, though the node did not rest; the pace is measured anew then
)

// takeSlot waits for a slot. It returns false if the node has to rest by then.
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

// resting is for how long the node is not to be asked.
func (n *node) resting() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(0, time.Until(n.rest))
}

// lastFailure is why the node rests.
func (n *node) lastFailure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.why
}

// requestBegins counts a request. The pace is not measured over times without any.
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

// noteOutcome says how a question that began at a time went. A node that refuses the question rests
// only if it is to be asked again.
func (n *node) noteOutcome(begun time.Time, err error, again bool) {
	var f *failure
	if !errors.As(err, &f) {
		n.countAnswer(begun)
		return
	}
	if f.kind == asked && !again {
		return // an answer all the same
	}
	n.restAfter(begun, f)
}

// countAnswer notes that a request that began at a time was answered.
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

// restAfter lets the node rest after a request that began at a time and had a passing failure.
// Requests that were under way at the time of another failure do not make the rest longer.
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
	if f.after > wait { // a node that asks for no rest, or for one that is over, gets that of its failures
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
		level = slog.LevelWarn // it explains to a person why nothing moves
	}
	n.log.Log(context.Background(), level, "trying again", "host", n.host, "in", wait.Round(time.Millisecond), "error", f.err)
}

// slowDown sets the pace to a little less than what the node was found to allow: its answers since
// the last change, over the time since then, rests included.
func (n *node) slowDown(now time.Time) {
	limit := n.limiter.Limit()
	elapsed := now.Sub(n.paced)
	switch {
	case n.since > 0 && elapsed >= measured:
		limit = min(limit, rate.Limit(paceAfter*float64(n.since)/elapsed.Seconds()))
	case limit == rate.Inf:
		limit = rate.Limit(paceAfter * float64(max(1, n.since)) / measured.Seconds())
	default: // nothing can be said but that it is too fast
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

// giveUp says that the node refuses everything. It is not asked any more, unless it has answered
// before: then its refusal may pass, but not if its requests are used up. It reports whether it is
// broken.
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

// lastAnswer is when the last answer came.
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
