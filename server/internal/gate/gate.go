// Package gate admits work: a Gate bounds the requests that do one thing at a time, or the bytes
// that they hold.
package gate

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// ErrBusy means that too many requests wait already, or that nothing became free in time.
var ErrBusy = errors.New("too many requests are waiting")

// A Gate bounds how much of one resource is taken: bytes, requests, or processor shares. A claim
// that does not fit fails in TryTake and waits in Take. A Gate is safe for concurrent use; its
// fields must not change.
type Gate struct {
	Size    int64
	AnySize bool  // a claim larger than Size is granted when half of Size is free; otherwise one slow client could block it
	Line    *Gate // bounds the claims waiting in Take; nil for no bound
	Within  *Gate // also taken from here, without waiting; nil for none

	taken   atomic.Int64 // may exceed Size
	waiting atomic.Int64 // length of queue

	mu    sync.Mutex
	queue list.List     // holds *claim, in order of arrival
	short chan struct{} // closed when a claim waits; nil before the first call of Wanted
}

// A claim waits in the queue.
type claim struct {
	n       int64
	passed  int // number of claims granted before this one while it was first
	granted chan struct{}
}

// mostPassed is the number of smaller claims that may overtake the first one while it does not fit.
// So a large claim neither blocks others nor waits forever.
const mostPassed = 16

// TryTake takes n if it fits, without waiting, and reports whether it did.
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

// Take waits until n fits, and takes it. It returns ErrBusy if ctx ends first or if too many claims
// wait already. Gates with Within must not call it.
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
	case <-c.granted: // granted just as ctx ended
		g.taken.Add(-n)
	default:
		g.queue.Remove(element)
		g.waiting.Add(-1)
	}
	g.grant()
	return ErrBusy
}

// Count takes n whether it fits or not, for what the caller already holds.
func (g *Gate) Count(n int64) { g.taken.Add(n) }

// Give gives n back.
func (g *Gate) Give(n int64) {
	g.leave(n)
	if g.Within != nil {
		g.Within.Give(n)
	}
}

// Taken returns the amount taken.
func (g *Gate) Taken() int64 { return g.taken.Load() }

// IsHalfTaken reports whether more than half is taken: optional work then holds off.
func (g *Gate) IsHalfTaken() bool { return g.Taken() > g.Size/2 }

// Crowded reports whether a claim waits.
func (g *Gate) Crowded() bool { return g.waiting.Load() > 0 }

// Wanted returns a channel that is closed as soon as a claim waits. Holders of optional claims then
// give them back.
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

// tell closes the Wanted channel if a claim waits.
func (g *Gate) tell() {
	if g.queue.Len() > 0 && g.short != nil {
		close(g.short)
		g.short = nil
	}
}

// enter takes n if it fits, and reports whether it did.
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

// leave gives n back to this gate and grants waiting claims. A concurrent claim registers before it
// checks, so it cannot be missed.
func (g *Gate) leave(n int64) {
	g.taken.Add(-n)
	if g.Crowded() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.grant()
	}
}

// grant grants the claims that fit now. If nothing is free, it checks only the first: thousands may
// wait.
func (g *Gate) grant() {
	var first *claim // the first claim that does not fit
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
