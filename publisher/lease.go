package publisher

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// errNotHeld says that an attempt was not made, or was cut off, because the lease had ended.
// It is retryable: a heartbeat may renew the lease.
var errNotHeld = errors.New("the lock's lease has run out")

// An instant is a time by both clocks of a machine. The wall clock can be set; the monotonic one
// stops while the machine sleeps, unless it is Linux's, which counts that time too.
type instant struct{ monotonic, wall time.Time }

func machineTime() instant {
	now := time.Now()
	return instant{sinceBoot(now), now.Round(0)}
}

func (i instant) add(d time.Duration) instant { return instant{i.monotonic.Add(d), i.wall.Add(d)} }

// until is how long it takes by the clock that reaches then first.
func (i instant) until(then instant) time.Duration {
	return min(then.monotonic.Sub(i.monotonic), then.wall.Sub(i.wall))
}

// A lease is the time for which a lock is held without a further heartbeat. Its end cuts off
// all requests: a process that was stopped, and continues while another publisher has the lock,
// must not send another byte. It may be used from many goroutines.
type lease struct {
	length time.Duration
	now    func() instant

	mu    sync.Mutex
	until instant
	timer *time.Timer
	ended context.Context // ends with the lease; renew replaces it
	end   context.CancelFunc
}

func newLease(length time.Duration, from instant, now func() instant) *lease {
	l := &lease{length: length, now: now}
	l.ended, l.end = context.WithCancel(context.Background())
	l.timer = time.AfterFunc(length, l.check)
	l.renew(from)
	return l
}

// renew makes the lease begin at the time from, which must not be after the heartbeat was sent.
func (l *lease) renew(from instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = from.add(l.length)
	l.timer.Reset(l.left())
	if l.ended.Err() != nil {
		l.ended, l.end = context.WithCancel(context.Background())
	}
}

// check is called by the timer, when the lease may have ended.
func (l *lease) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.left(); left > 0 {
		l.timer.Reset(left)
	} else {
		l.end()
	}
}

// release ends the lease for good.
func (l *lease) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.until = instant{}
	l.end()
}

// held reports whether the lease has not ended. It reads the clock instead of waiting for the
// timer, which fires late when a process continues after a stop.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left() > 0
}

// left is the time until the lease ends. The caller has the mutex.
func (l *lease) left() time.Duration { return l.now().until(l.until) }

// context returns a child of parent that ends with the lease, or errNotHeld if the lease has
// ended already.
func (l *lease) context(parent context.Context) (context.Context, context.CancelFunc, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left() <= 0 {
		return nil, nil, errNotHeld
	}
	ctx, cancel := context.WithCancel(parent)
	leased := &leasedContext{Context: ctx, lease: l}
	stop := context.AfterFunc(l.ended, func() {
		leased.cut.Store(true)
		cancel()
	})
	return leased, func() { stop(); cancel() }, nil
}

// A leasedContext reads the lease's clock in Err, so that it does not depend on the timer. Once the
// lease has ended, it stays ended: a heartbeat renews the lease for other requests.
type leasedContext struct {
	context.Context
	lease *lease
	cut   atomic.Bool // whether the lease has ended
}

// Err is errNotHeld if the lease has ended, or the error of the context.
func (c *leasedContext) Err() error {
	if c.cut.Load() {
		return errNotHeld
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !c.lease.held() {
		c.cut.Store(true)
		return errNotHeld
	}
	return nil
}
