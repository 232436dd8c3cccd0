// Package completion is the command that prints completion scripts for shells. The scripts
// are made from the flags and commands as kong knows them.
package completion

import (
	"context"
	_ "embed" // of the templates
	"io"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"

	"github.com/followpress/followpress/cmd/internal/command"
)

// Command is the command with its arguments.
type Command struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`

	model *kong.Application
}

// Help is what --help shows below the first line.
func (*Command) Help() string {
	return `The script completes commands, flags, the values of flags that have a choice, and files. Put the line below into ~/.bashrc, or with zsh into ~/.zshrc after compinit; for fish, write the script to ~/.config/fish/completions/followpress.fish.

	eval "$(followpress completion bash)"`
}

// AfterApply keeps the commands and flags to complete; kong calls it.
func (c *Command) AfterApply(k *kong.Kong) error {
	c.model = k.Model
	return nil
}

//go:embed completion.tmpl
var templates string

// Run prints the script.
func (c *Command) Run(_ context.Context, stdout, _ io.Writer) error {
	functions := template.FuncMap{
		"commands": command.Leaves, "names": names, "seen": seen, "flags": flags, "values": values, "file": file, "folder": folder,
		"quote": quote, "brief": brief, "zsh": func(text string) string { return zshText(brief(text)) },
	}
	return template.Must(template.New("").Funcs(functions).Parse(templates)).ExecuteTemplate(stdout, c.Shell, c.model)
}

// names are those of commands.
func names(commands []*kong.Node) string {
	var all []string
	for _, c := range commands {
		all = append(all, c.Name)
	}
	return strings.Join(all, " ")
}

// seen is fish's condition that the words of a command were typed.
func seen(path string) string {
	var all []string
	for word := range strings.FieldsSeq(path) {
		all = append(all, "__fish_seen_subcommand_from "+word)
	}
	return strings.Join(all, "; and ")
}

// flags are those that a command takes and shows.
func flags(command *kong.Node) (all []*kong.Flag) {
	for _, group := range command.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// values are the choices of a flag or an argument; none if it takes anything.
func values(v *kong.Value) string { return strings.Join(v.EnumSlice(), " ") }

// Placeholders that stand for a path.
var (
	filePlaceholders   = []string{"FILE", "SITE", "OUT"}
	folderPlaceholders = []string{"DIR"}
)

func file(f *kong.Flag) bool   { return slices.Contains(filePlaceholders, f.PlaceHolder) }
func folder(f *kong.Flag) bool { return slices.Contains(folderPlaceholders, f.PlaceHolder) }

// brief is the beginning of a description, since shells show it in one line.
func brief(text string) string { return clause.Split(text, 2)[0] }

var clause = regexp.MustCompile(`[.;:,] | \(|\.$`)

// quote makes one word of a text for any of the shells.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// zshText escapes a description for zsh's _arguments or _describe.
func zshText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `:`, `\:`).Replace(text)
}
