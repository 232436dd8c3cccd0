//go:build !linux

package lock

import "time"

// sinceBoot returns Go's monotonic clock: a lease may last too long if the machine sleeps while its
// wall clock is set back.
func sinceBoot(now time.Time) time.Time { return now }
