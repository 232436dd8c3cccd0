// Package conventions tests what the whole tree promises and no single package can: which package imports
// which, that docs name what exists and that docs/start.md works, how comments begin, and what the scripts
// of .ci do.
package conventions

import (
	"os"
	"testing"
)

// TestMain runs the tests at the root of the tree, where all their paths begin.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
