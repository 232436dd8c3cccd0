package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The table has all characters allowed in names, with their final look-alike letters.
func TestModule(t *testing.T) {
	made, err := module("/*! From confusables.txt of Unicode 14.0.0, changed\n= [\n  'x y',\n];\n", "\ufeff# confusables.txt\n# Version: 15.0.0\n\n"+
		"0430 ;\t0061 ;\tMA\t# ( а → a )\n"+ // Cyrillic а
		"0030 ;\t004F ;\tMA\t# ( 0 → O )\n"+ // folded
		"0410 ;\t0041 ;\tMA\t#\n"+ // upper case, which folded names lack
		"1D41A ;\t0061 ;\tMA\t#\n"+ // compatible with a
		"006D ;\t0072 006E ;\tMA\t#\n"+
		"0271 ;\t006D 0326 ;\tMA\t#\n"+ // back to m
		"0022 ;\t0027 0027 ;\tMA\t#\n"+ // not a letter
		"11A8 ;\t1100 ;\tMA\t#\n") // not a letter by itself
	if err != nil {
		t.Fatal(err)
	}
	want := "/*! From confusables.txt of Unicode 15.0.0, changed\n= [\n  'a \\u0430',\n  'o 0',\n  'rn m',\n  'rn\\u0326 \\u0271',\n];\n"
	if made != want {
		t.Errorf("got %s, want %s", made, want)
	}
}

func TestModuleOfNonsense(t *testing.T) {
	const line = "0430 ;\t0061 ;\tMA\n"
	for text, want := range map[string]string{
		"":               "want Unicode's confusables.txt",
		line:             "want Unicode's confusables.txt",
		"# Version: 1\n": "want Unicode's confusables.txt",
		"# Version: 1\n0430 ;\t0430 0430 ;\tMA\n": "again and again",
	} {
		if _, err := module(start, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want one about %q", text, err, want)
		}
	}
}

// The committed table is in the form that the program writes.
func TestCommitted(t *testing.T) {
	made, err := os.ReadFile("../../" + output)
	if err != nil {
		t.Fatal(err)
	}
	notice, table, _ := strings.Cut(string(made), start)
	if !ofVersion.MatchString(notice) {
		t.Errorf("got the notice %s, want one with a version", notice)
	}
	lines := strings.Split(strings.TrimSuffix(table, "];\n"), "\n")
	for _, line := range lines[:len(lines)-1] {
		if !regexp.MustCompile(`^  '[^ ']+ [^ ']+',$`).MatchString(line) {
			t.Errorf("got the line %q, want letters and their look-alikes", line)
		}
	}
}
