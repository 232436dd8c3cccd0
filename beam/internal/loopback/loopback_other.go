//go:build !linux

// Package loopback runs the tests of a package in a separate network on Linux.
package loopback

import (
	"os"
	"testing"
)

// Main runs the tests of a package: only Linux has namespaces.
func Main(m *testing.M) { os.Exit(m.Run()) }

// Inside returns false.
func Inside() bool { return false }
