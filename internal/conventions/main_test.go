// Package conventions tests promises of the whole tree: imports between packages, names in docs,
// the commands of docs/start.md and docs/data.md, first words of comments, and the scripts of .ci.
package conventions

import (
	"os"
	"testing"
)

// TestMain runs the tests at the root of the tree, because paths are relative to it.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
