package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
)

// Each command says in a few lines what it does, with an example, and explains each flag
// with its variable.
func TestEachCommandHasHelp(t *testing.T) {
	for _, leaf := range commands(t) {
		name, verb := leaf.Path, leaf.Node
		if verb.Help == "" || verb.ClosestGroup() == nil {
			t.Errorf("%s: got help %q in group %v, want both", name, verb.Help, verb.ClosestGroup())
		}
		if _, example, _ := strings.Cut(verb.Detail, "\n\t"); name != "version" && !strings.Contains(example, "followpress "+name) {
			t.Errorf("%s: got %q, want an example", name, verb.Detail)
		}
		if words := len(strings.Fields(verb.Detail)); words > 70 {
			t.Errorf("%s: got %d words before the flags, want four lines", name, words)
		}
		var help, stderr bytes.Buffer
		if status := command.Run("followpress", about, &verbs{}, append(strings.Fields(name), "--help"), &help, &stderr); status != command.Done || stderr.Len() > 0 {
			t.Errorf("%s --help: got status %d, %s", name, status, &stderr)
		}
		text := strings.Join(strings.Fields(help.String()), " ")
		for _, flag := range verb.Flags {
			variables := len(flag.Envs) > 0 && strings.Contains(text, "$"+flag.Envs[0])
			if flag.Name == "help" || flag.Name == "version" {
				variables = len(flag.Envs) == 0
			}
			if !strings.Contains(text, "--"+flag.Name) || !variables || flag.Help == "" || flag.Hidden {
				t.Errorf("%s: --%s and %q are explained: got no, want yes", name, flag.Name, flag.Envs)
			}
		}
	}
}
