package templates

import "time"

// Moment returns a time as people write it, "1 November 2026, 14:05 UTC", with seconds unless they are 0.
func Moment(t time.Time) string {
	if t.Second() == 0 {
		return t.UTC().Format("2 January 2006, 15:04 UTC")
	}
	return t.UTC().Format("2 January 2006, 15:04:05 UTC")
}
