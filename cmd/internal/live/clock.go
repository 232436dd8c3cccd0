package live

import (
	"context"
	"time"
)

// longestBackoff is the longest wait after failures, unless the interval is longer.
const longestBackoff = time.Hour

// every calls do at once and then at each tick until ctx ends, one call at a time: ticks during a call are
// left out. After n failures in a row it waits 2^(n-1) intervals, within longestBackoff. Intervals are of
// the monotonic clock, so a clock that is set changes nothing.
func every(ctx context.Context, interval time.Duration, do func(ctx context.Context) error) {
	begun, failures := time.Now(), 0
	for ctx.Err() == nil {
		if err := do(ctx); err != nil {
			failures++
		} else {
			failures = 0
		}
		next := interval - time.Since(begun)%interval + backoff(interval, failures)
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// backoff is how much longer to wait than until the next tick, after so many failures in a row.
func backoff(interval time.Duration, failures int) time.Duration {
	wait := interval
	for range failures - 1 {
		if wait *= 2; wait >= longestBackoff {
			wait = max(interval, longestBackoff)
			break
		}
	}
	return wait - interval
}
