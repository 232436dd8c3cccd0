package lock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/publisher/internal/requests"
)

// An Instant is a time by both clocks of a machine. The wall clock can be set; the monotonic one
// stops during sleep, except on Linux.
type Instant struct{ Monotonic, Wall time.Time }

// MachineTime returns the current time of this machine.
func MachineTime() Instant {
	now := time.Now()
	return Instant{sinceBoot(now), now.Round(0)}
}

func (i Instant) add(d time.Duration) Instant { return Instant{i.Monotonic.Add(d), i.Wall.Add(d)} }

// until returns the time until then, by the clock that reaches it first.
func (i Instant) until(then Instant) time.Duration {
	return min(then.Monotonic.Sub(i.Monotonic), then.Wall.Sub(i.Wall))
}

// A lease is the time for which a lock is held without another heartbeat. Its end cuts off all
// requests: a process that was stopped, and continues while another publisher has the lock, must
// not send another byte. Methods may be called concurrently.
type lease struct {
	length time.Duration
	now    func() Instant

	mu    sync.Mutex
	until Instant
	timer *time.Timer
	ended context.Context // ends with the lease; renew replaces it
	end   context.CancelFunc
}

func newLease(length time.Duration, from Instant, now func() Instant) *lease {
	l := &lease{length: length, now: now}
	l.ended, l.end = context.WithCancel(context.Background())
	l.timer = time.AfterFunc(length, l.check)
	l.renew(from)
	return l
}

// renew makes the lease begin at from, which must not be after the heartbeat was sent.
func (l *lease) renew(from Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = from.add(l.length)
	l.timer.Reset(l.left())
	if l.ended.Err() != nil {
		l.ended, l.end = context.WithCancel(context.Background())
	}
}

// check is called by the timer when the lease may have ended.
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
	l.until = Instant{}
	l.end()
}

// Held reports whether the lease has not ended. It reads the clock instead of relying on the timer,
// which fires late when a stopped process continues.
func (l *lease) Held() bool {
	return l.Remaining() > 0
}

// Remaining returns the time until the lease ends.
func (l *lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left()
}

// left is Remaining for a caller that holds the mutex.
func (l *lease) left() time.Duration { return l.now().until(l.until) }

// Context returns a child of parent that ends with the lease, or requests.ErrNotHeld if the lease
// has ended.
func (l *lease) Context(parent context.Context) (context.Context, context.CancelFunc, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left() <= 0 {
		return nil, nil, requests.ErrNotHeld
	}
	ctx, cancel := context.WithCancel(parent)
	leased := &leasedContext{Context: ctx, lease: l}
	stop := context.AfterFunc(l.ended, func() {
		leased.cut.Store(true)
		cancel()
	})
	return leased, func() { stop(); cancel() }, nil
}

// A leasedContext reads the lease's clock in Err, so that it does not depend on the timer. Once
// ended, it stays ended: a heartbeat renews the lease for other requests only.
type leasedContext struct {
	context.Context
	lease *lease
	cut   atomic.Bool // whether the lease has ended
}

// Err returns requests.ErrNotHeld if the lease has ended, or the error of the context.
func (c *leasedContext) Err() error {
	if c.cut.Load() {
		return requests.ErrNotHeld
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !c.lease.Held() {
		c.cut.Store(true)
		return requests.ErrNotHeld
	}
	return nil
}
