package lock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the time since the machine was started, sleep included. That of time.Now, which is
// CLOCK_MONOTONIC, would leave it out.
func sinceBoot(now time.Time) time.Time {
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return now
	}
	return time.Unix(since.Unix())
}
