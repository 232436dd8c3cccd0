package live

import "github.com/followpress/followpress/site"

// NeedsBytes is about the memory that a Live needs for graphs of this size: two of them, because the next one is made
// while the last one answers.
func NeedsBytes(c site.Counts) int64 {
	return 0
}
