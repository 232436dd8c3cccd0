package lock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns the time since boot, including sleep. The clock of time.Now, CLOCK_MONOTONIC,
// excludes sleep.
func sinceBoot(now time.Time) time.Time {
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return now
	}
	return time.Unix(since.Unix())
}
