//go:build !linux

package lock

import "time"

// sinceBoot is Go's monotonic clock: a lease may last too long if the machine sleeps and its wall
// clock is set back meanwhile.
func sinceBoot(now time.Time) time.Time { return now }
