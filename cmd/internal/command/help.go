package command

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// helpAll is the flag that shows the flags that --help leaves to it: those of a group, but for the ones with the
// tag `first`.
type helpAll bool

// BeforeReset prints the help and ends the parsing, as kong's --help does.
func (helpAll) BeforeReset(parsed *kong.Context) error {
	if err := parsed.PrintUsage(false); err != nil {
		return err
	}
	parsed.Exit(Done)
	return nil
}

// printHelp is --help, which shows what most people need first, and --help-all.
func printHelp(options kong.HelpOptions, parsed *kong.Context) error {
	verb := parsed.Selected()
	if all := Given(parsed)["help-all"]; all || verb == nil || len(verb.Children) > 0 {
		return kong.DefaultHelpPrinter(options, parsed)
	}
	var groups []string
	left := map[string]int{}
	for _, flag := range parsed.Flags() {
		if flag.Group == nil || flag.Hidden || flag.Tag.Has("first") {
			continue
		}
		flag.Hidden = true
		title := strings.TrimSuffix(flag.Group.Title, ":")
		if left[title] == 0 {
			groups = append(groups, title)
		}
		left[title]++
	}
	options.ValueFormatter = func(value *kong.Value) string { return value.Help } // without its variable
	if err := kong.DefaultHelpPrinter(options, parsed); err != nil || len(groups) == 0 {
		return err
	}
	for i, title := range groups {
		groups[i] = fmt.Sprintf("  %s (%d)\n", title, left[title])
	}
	_, err := fmt.Fprintf(parsed.Stdout, "\nMore flags, which %s --help-all shows, with the variable of each flag:\n%s",
		verb.FullPath(), strings.Join(groups, ""))
	return err
}
