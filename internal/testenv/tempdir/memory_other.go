//go:build !linux

package tempdir

// memory returns "", because other systems have no common folder in memory.
func memory() string { return "" }
