package lock

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/publisher/internal/requests"
)

// After the end of the lease nothing is sent, and requests in flight are canceled.
func TestLeaseEnds(t *testing.T) {
	l := newLease(50*time.Millisecond, MachineTime(), MachineTime)
	ctx, cancel, err := l.Context(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("request after the end of the lease: got it running, want it cut off")
	}
	if _, _, err := l.Context(context.Background()); !errors.Is(err, requests.ErrNotHeld) {
		t.Errorf("request after the end of the lease: got %v, want ErrNotHeld", err)
	}
	l.renew(MachineTime().add(time.Hour))
	again, cancel, err := l.Context(context.Background())
	if err != nil || again.Err() != nil {
		t.Errorf("after a heartbeat: got %v, %v, want no error", err, again.Err())
	}
	cancel()
}

// A request cut off by the end of the lease can be retried, even if a heartbeat renews the lease
// before the request returns; the renewal does not let the request continue.
func TestLeaseIsRenewedAfterItsEnd(t *testing.T) {
	for name, end := range map[string]func(context.Context, *lease){
		"by the timer": func(ctx context.Context, _ *lease) { <-ctx.Done() },
		"by the clock": func(_ context.Context, l *lease) { // as after a stop, before the timer fires
			l.timer.Stop()
			time.Sleep(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLease(time.Minute, MachineTime(), MachineTime)
				defer l.release()
				ctx, cancel, err := l.Context(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer cancel()
				end(ctx, l)
				first := ctx.Err()
				l.renew(MachineTime())
				if again := ctx.Err(); !errors.Is(first, requests.ErrNotHeld) || !requests.Retryable(first) || !errors.Is(again, first) {
					t.Errorf("context of a request: got %v, and %v after a heartbeat, want ErrNotHeld both times, which is retryable", first, again)
				}
			})
		})
	}
}

// A lease ends by the clock that reaches its end first: the monotonic one stops while a machine
// sleeps, and the wall clock can be set.
func TestLeaseEndsByEitherClock(t *testing.T) {
	begun := MachineTime()
	for name, passed := range map[string]Instant{
		"the machine has slept":       {begun.Monotonic, begun.Wall.Add(2 * time.Minute)},
		"the wall clock was set back": {begun.Monotonic.Add(2 * time.Minute), begun.Wall.Add(-time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			now := begun
			l := newLease(time.Minute, begun, func() Instant { return now })
			defer l.release()
			if !l.Held() {
				t.Error("lease that begins: got it ended, want it held")
			}
			if now = passed; l.Held() {
				t.Error("lease of a minute after two: got it held, want it ended")
			}
		})
	}
}

// Whatever lease a lock claims, others wait at most MaxLease.
func TestLeaseOfALock(t *testing.T) {
	for said, want := range map[float64]time.Duration{
		30: 30 * time.Second, 0: 0, -1: 0, MaxLease.Seconds(): MaxLease, MaxLease.Seconds() + 1: MaxLease, 1e300: MaxLease, math.Inf(1): MaxLease, math.Inf(-1): 0,
	} {
		if got := (Body{Lease: said}).LeaseTime(); got != want {
			t.Errorf("a lease of %g s: got %v, want %v", said, got, want)
		}
	}
}

// A machine's clock counts the time that passes, no faster than Go's.
func TestMachineTimePasses(t *testing.T) {
	before, begun := MachineTime(), time.Now()
	time.Sleep(20 * time.Millisecond)
	passed := MachineTime().Monotonic.Sub(before.Monotonic)
	if most := time.Since(begun); passed < 20*time.Millisecond || passed > most+time.Second {
		t.Errorf("time that passed: got %v, want 20ms to %v", passed, most)
	}
}
