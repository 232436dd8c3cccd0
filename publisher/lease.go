package publisher

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errNotHeld says that a request was not made, or cut off, because the lock was not
// held at that time. It may be held again later.
var errNotHeld = errors.New("the lock's lease has run out")

// A lease is how long a lock is held without a further heartbeat. Requests live no
// longer than it does: a process that is stopped, and goes on when somebody else has
// the lock, must not send one byte more.
type lease struct {
	length time.Duration

	mu    sync.Mutex
	until time.Time
	timer *time.Timer
	ended context.Context // ends with the lease; renew makes another one
	end   context.CancelFunc
}

func newLease(length time.Duration, from time.Time) *lease {
	l := &lease{length: length}
	l.ended, l.end = context.WithCancel(context.Background())
	l.timer = time.AfterFunc(length, l.check)
	l.renew(from)
	return l
}

// renew begins the lease again at the time from, before which the heartbeat was sent.
func (l *lease) renew(from time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = from.Add(l.length)
	l.timer.Reset(time.Until(l.until))
	if l.ended.Err() != nil {
		l.ended, l.end = context.WithCancel(context.Background())
	}
}

// look is called when the lease may have ended.
func (l *lease) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isHeld() {
		l.end()
	}
}

// release ends the lease for good.
func (l *lease) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.until = time.Time{}
	l.end()
}

// held asks the clock, not the timer: when a process goes on after a stop, its timers
// fire a little later.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isHeld()
}

// isHeld looks at both clocks: the monotonic one stands still while a machine sleeps,
// the other one may be set.
func (l *lease) isHeld() bool {
	now := time.Now()
	return now.Before(l.until) && now.Round(0).Before(l.until.Round(0))
}

// context is a child of parent that ends with the lease; errNotHeld if it has ended.
func (l *lease) context(parent context.Context) (context.Context, context.CancelFunc, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isHeld() {
		return nil, nil, errNotHeld
	}
	ctx, cancel := context.WithCancel(parent)
	stop := context.AfterFunc(l.ended, cancel)
	return &leasedContext{ctx, l}, func() { stop(); cancel() }, nil
}

// A leasedContext asks the lease itself when it is asked for its error.
type leasedContext struct {
	context.Context
	lease *lease
}

// Err is the error of the context, or that the lease has ended.
func (c *leasedContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !c.lease.held() {
		return errNotHeld
	}
	return nil
}
