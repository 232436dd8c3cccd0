package main

import (
	"bytes"
	"regexp"
	"strconv"
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
		if status := command.Run("followpress", about, &verbs{}, append(strings.Fields(name), "--help-all"), &help, &stderr); status != command.Done || stderr.Len() > 0 {
			t.Errorf("%s --help-all: got status %d, %s", name, status, &stderr)
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

// --help fits on a screen or two, and counts the flags that only --help-all shows.
func TestHelpIsShort(t *testing.T) {
	const most = 80
	shown := regexp.MustCompile(`(?m)^ {2,6}(?:-\w, +)?--[a-z]`)
	left := regexp.MustCompile(`(?m)^  .*\((\d+)\)$`)
	for _, leaf := range commands(t) {
		ask := func(how string) string {
			var help bytes.Buffer
			if status := command.Run("followpress", about, &verbs{}, append(strings.Fields(leaf.Path), how), &help, &help); status != command.Done {
				t.Errorf("%s %s: got status %d", leaf.Path, how, status)
			}
			return help.String()
		}
		short, all := ask("--help"), ask("--help-all")
		if lines := strings.Count(short, "\n"); lines > most {
			t.Errorf("%s --help: got %d lines, want at most %d", leaf.Path, lines, most)
		}
		first, more, _ := strings.Cut(short, "\nMore flags, ")
		sum := len(shown.FindAllString(first, -1))
		for _, count := range left.FindAllStringSubmatch(more, -1) {
			n, err := strconv.Atoi(count[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if want := len(shown.FindAllString(all, -1)); sum != want {
			t.Errorf("%s --help: got %d shown and counted flags, want the %d of --help-all", leaf.Path, sum, want)
		}
	}
}
