package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/followpress/followpress/internal/siteflags"
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
		return errors.Join(kong.DefaultHelpPrinter(options, parsed), printSettings(parsed))
	}
	settings := settingsOf(parsed) // before others are hidden too
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
	if len(settings) > 0 {
		groups = append(groups, fmt.Sprintf("  Settings of the site (%d)\n", len(settings)))
	}
	_, err := fmt.Fprintf(parsed.Stdout, "\nMore flags, shown by %s --help-all with their variables:\n%s",
		verb.FullPath(), strings.Join(groups, ""))
	return err
}

func settingsOf(parsed *kong.Context) (settings []*kong.Flag) {
	for _, flag := range parsed.Flags() {
		if flag.Hidden && flag.Tag.Has(siteflags.Tag) {
			settings = append(settings, flag)
		}
	}
	return settings
}

// printSettings prints the settings of a site. Only generate describes each one.
func printSettings(parsed *kong.Context) error {
	settings := settingsOf(parsed)
	if settings == nil {
		return nil
	}
	text, names := "\nSettings of the site (members of the file of --config, variables, or flags):\n", []string{}
	for _, flag := range settings {
		help := fmt.Sprintf("%s ($%s).", strings.TrimSuffix(flag.Help, "."), flag.Envs[0])
		names = append(names, siteflags.Member(flag))
		text += "  " + siteflags.Member(flag) + ": " + cmp.Or(flag.PlaceHolder, "true|false") + "\n" + indented(help, 6)
	}
	if parsed.Selected().Name != "generate" {
		text = "\nSettings of the site, which generate --help-all explains:\n" + indented(strings.Join(names, ", "), 2)
	}
	_, err := io.WriteString(parsed.Stdout, text)
	return err
}

// indented breaks a text into lines of at most 80 bytes that begin with spaces.
func indented(text string, spaces int) (lines string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if spaces+len(line)+1+len(word) > 80 {
			lines, line = lines+strings.Repeat(" ", spaces)+line+"\n", ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return lines + strings.Repeat(" ", spaces) + line + "\n"
}
