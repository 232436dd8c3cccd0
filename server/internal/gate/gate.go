// Package gate admits work: it bounds how many requests do a thing at a time, and how many bytes they hold.
package gate

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// ErrBusy says that too many requests wait already, or that nothing was free in time.
var ErrBusy = errors.New("too many requests are waiting")

// A Gate bounds how much is taken of one thing: bytes, requests, or shares of the processor. What does not
// fit is refused by TryTake, and waits in Take. It is safe for concurrent use; nobody changes its fields.
type Gate struct {
	Size    int64
	AnySize bool  // claims larger than Size are let in when half of it is free: one slow client could keep them out otherwise
	Line    *Gate // bounds how many wait in Take; nil for no bound
	Within  *Gate // what is taken here is taken there too, without waiting; nil for none

	taken   atomic.Int64 // may exceed Size
	waiting atomic.Int64 // length of queue

	mu    sync.Mutex
	queue list.List     // of *claim, in the order of their arrival
	short chan struct{} // closed when a claim waits; nil if nobody called Wanted
}

// A claim waits.
type claim struct {
	n       int64
	passed  int // claims that were granted before it while it was the first
	granted chan struct{}
}

// mostPassed is how many smaller claims may overtake the first one while that does not fit.
// So a large claim neither blocks the others nor waits forever.
const mostPassed = 16

// TryTake takes n, or reports false without waiting.
func (g *Gate) TryTake(n int64) bool {
	if g.Crowded() || !g.enter(n) {
		return false
	}
	if g.Within != nil && !g.Within.TryTake(n) {
		g.leave(n)
		return false
	}
	return true
}

// Take waits until n fits, and takes it. It returns ErrBusy if ctx ends first, or if too many wait already.
// It must not be called if Within is set.
func (g *Gate) Take(ctx context.Context, n int64) error {
	if g.TryTake(n) {
		return nil
	}
	if g.Line != nil {
		if !g.Line.TryTake(1) {
			return ErrBusy
		}
		defer g.Line.Give(1)
	}
	c := &claim{n: n, granted: make(chan struct{})}
	g.mu.Lock()
	element := g.queue.PushBack(c)
	g.waiting.Add(1)
	g.grant()
	g.tell()
	g.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-c.granted: // just now
		g.taken.Add(-n)
	default:
		g.queue.Remove(element)
		g.waiting.Add(-1)
	}
	g.grant()
	return ErrBusy
}

// Count takes n that is held already, whether it fits or not.
func (g *Gate) Count(n int64) { g.taken.Add(n) }

// Give gives n back.
func (g *Gate) Give(n int64) {
	g.leave(n)
	if g.Within != nil {
		g.Within.Give(n)
	}
}

// Taken is how much is taken.
func (g *Gate) Taken() int64 { return g.taken.Load() }

// IsHalfTaken reports whether who can do without should.
func (g *Gate) IsHalfTaken() bool { return g.Taken() > g.Size/2 }

// Crowded reports whether a claim waits.
func (g *Gate) Crowded() bool { return g.waiting.Load() > 0 }

// Wanted returns a channel that is closed as soon as a claim waits. Holders that can do
// without what they took then give it back.
func (g *Gate) Wanted() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.short == nil {
		g.short = make(chan struct{})
	}
	short := g.short
	g.tell()
	return short
}

// tell closes the channel of Wanted if a claim waits.
func (g *Gate) tell() {
	if g.queue.Len() > 0 && g.short != nil {
		close(g.short)
		g.short = nil
	}
}

// enter takes n if it fits.
func (g *Gate) enter(n int64) bool {
	for {
		taken := g.taken.Load()
		fits := taken+n <= g.Size || g.AnySize && n > g.Size && taken <= g.Size/2
		if !fits {
			return false
		}
		if g.taken.CompareAndSwap(taken, taken+n) {
			return true
		}
	}
}

// leave gives n back here. A claim that begins to wait meanwhile sees that itself: it counts as waiting
// before it looks.
func (g *Gate) leave(n int64) {
	g.taken.Add(-n)
	if g.Crowded() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.grant()
	}
}

// grant grants the claims that fit now. If nothing is free, it looks at the first one only: thousands may wait.
func (g *Gate) grant() {
	var first *claim // that does not fit
	for element := g.queue.Front(); element != nil && (first == nil || g.Taken() < g.Size && first.passed < mostPassed); {
		c, next := element.Value.(*claim), element.Next()
		switch {
		case g.enter(c.n):
			g.queue.Remove(element)
			g.waiting.Add(-1)
			close(c.granted)
			if first != nil {
				first.passed++
			}
		case first == nil:
			first = c
		}
		element = next
	}
}
