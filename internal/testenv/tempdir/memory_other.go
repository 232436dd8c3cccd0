//go:build !linux

package tempdir

// memory is "": there is no folder in memory that all such systems have.
func memory() string { return "" }
