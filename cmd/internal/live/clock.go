package live

import (
	"context"
	"time"
)

// longestBackoff caps the wait after failures, unless the interval is longer.
const longestBackoff = time.Hour

// every calls do at once and then at each tick until ctx ends, one call at a time: ticks during a call
// are skipped. After n failures in a row it waits 2^(n-1) intervals, at most longestBackoff. Intervals
// follow the monotonic clock, so setting the clock has no effect.
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

// backoff returns the wait beyond the next tick, after this number of failures in a row.
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
