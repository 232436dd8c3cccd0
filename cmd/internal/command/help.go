package command

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// helpAll is --help-all. --help omits the flags of groups, except flags with the tag `first`.
type helpAll bool

// BeforeReset prints the help and ends the parsing, as kong's --help does.
func (helpAll) BeforeReset(parsed *kong.Context) error {
	if err := parsed.PrintUsage(false); err != nil {
		return err
	}
	parsed.Exit(Done)
	return nil
}

// printHelp prints --help, which shows the common flags, and --help-all.
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
	_, err := fmt.Fprintf(parsed.Stdout, "\nMore flags, shown by %s --help-all with their variables:\n%s",
		verb.FullPath(), strings.Join(groups, ""))
	return err
}
