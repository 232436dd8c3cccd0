package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/followpress/followpress/cmd/internal/command"
)

// Each command says in a few lines what it does, with an example, and explains each flag
// with its variable.
func TestEachCommandHasHelp(t *testing.T) {
	parser, err := kong.New(&verbs{}, kong.Name("followpress"))
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range parser.Model.Children {
		if verb.Help == "" || verb.Group == nil {
			t.Errorf("%s: got help %q in group %v, want both", verb.Name, verb.Help, verb.Group)
		}
		if _, example, _ := strings.Cut(verb.Detail, "\n\t"); verb.Name != "version" && !strings.Contains(example, "followpress "+verb.Name) {
			t.Errorf("%s: got %q, want an example", verb.Name, verb.Detail)
		}
		if words := len(strings.Fields(verb.Detail)); words > 70 {
			t.Errorf("%s: got %d words before the flags, want four lines", verb.Name, words)
		}
		var help, stderr bytes.Buffer
		if status := command.Run("followpress", about, &verbs{}, []string{verb.Name, "--help"}, &help, &stderr); status != command.Done || stderr.Len() > 0 {
			t.Errorf("%s --help: got status %d, %s", verb.Name, status, &stderr)
		}
		text := strings.Join(strings.Fields(help.String()), " ")
		for _, flag := range verb.Flags {
			variable := "$FOLLOWPRESS_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
			if shown := strings.Contains(text, "--"+flag.Name) && strings.Contains(text, variable) && flag.Help != ""; shown == flag.Hidden {
				t.Errorf("%s: --%s and %s are explained: got %t, want %t", verb.Name, flag.Name, variable, shown, !flag.Hidden)
			}
		}
	}
}
