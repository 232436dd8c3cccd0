package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Each fault of the list can still be put into the code, and the result compiles.
func TestMutationsApply(t *testing.T) {
	all, err := read("mutations.txt")
	if err != nil {
		t.Fatal(err)
	}
	promises := map[string]bool{}
	for _, m := range all {
		if promises[m.promise] {
			t.Errorf("%s: duplicate", m.promise)
		}
		promises[m.promise] = true
		changed, err := m.files("../../..")
		if err != nil {
			t.Error(err)
			continue
		}
		for name, text := range changed {
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %v", m.promise, err)
			}
		}
		if len(suites([]mutation{m}, 1)) == 0 {
			t.Errorf("%s: no tests are named for %s", m.promise, m.hunks[0].file)
		}
	}
}

// A text that is missing, or occurs twice, is an error that names the problem.
func TestMutationsOfOtherCode(t *testing.T) {
	for before, want := range map[string]string{"no such" + " text": "0 times", "package main": "", "func ": "times, want once"} {
		m := mutation{promise: "p", hunks: []hunk{{"main.go", before, "x"}}}
		if _, err := m.files("."); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", before, err, want)
		}
	}
}
