//go:build !linux

package server_test

// useMemory does nothing: there is no folder in memory that all such systems have.
func useMemory() {}
