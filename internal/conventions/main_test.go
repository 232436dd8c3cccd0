// Package conventions tests promises of the whole tree: imports between packages, docs that name what exists, a
// docs/start.md and a docs/data.md that work, first words of comments, and the scripts of .ci.
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
