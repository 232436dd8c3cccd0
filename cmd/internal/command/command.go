// Package command holds what the commands share: flags set by environment variables, exit
// statuses, signals and progress.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/followpress/followpress/internal/plain"
)

// Exit statuses.
const (
	Done   = 0
	Failed = 1
	Usage  = 2 // wrong flags or arguments
)

// A Grammar is a struct of kong flags that can run.
type Grammar interface {
	Run(ctx context.Context, stdout, stderr io.Writer) error
}

// Main runs a program with the arguments of the process and ends the process.
func Main(name, about string, grammar any, options ...kong.Option) {
	os.Exit(Run(name, about, grammar, os.Args[1:], os.Stdout, os.Stderr, options...))
}

// Run parses args into the grammar, runs it and returns the exit status. The grammar is
// a pointer to a Grammar, or to a struct of commands; then "help VERB" means "VERB --help".
// SIGINT or SIGTERM cancels the context; a second one ends the process.
func Run(name, about string, grammar any, args []string, stdout, stderr io.Writer, options ...kong.Option) int {
	forgetEmpty()
	status := -1
	parser := NewParser(name, about, grammar, append(options, kong.Writers(stdout, stderr), kong.Exit(func(code int) { status = code }))...)
	if len(args) > 0 && args[0] == "help" && len(parser.Model.Children) > 0 {
		args = append(slices.Clone(args[1:]), "--help")
	}
	if len(args) == 1 && args[0] == "--version" && len(parser.Model.Children) > 0 {
		args = []string{"version"}
	}
	parsed, err := parser.Parse(args)
	if status >= 0 { // --help or --version was answered
		return status
	}
	if err != nil {
		return wrongUsage(err, args, stderr)
	}
	if verb := parsed.Selected(); verb != nil {
		name, grammar = verb.FullPath(), verb.Target.Addr().Interface()
	}

	stderr = messages(parsed, stderr)
	ctx, caught := untilSignal(context.Background())
	err = grammar.(Grammar).Run(ctx, stdout, stderr)
	if sig := caught(); sig != nil && errors.Is(err, context.Canceled) {
		tellError(stderr, name, "stopped by "+sig.String())
		return 128 + int(sig.(syscall.Signal))
	}
	if err != nil {
		tellError(stderr, name, oneLine(err.Error())+setBy(parsed, err.Error()))
		return Failed
	}
	return Done
}

// NewParser makes the parser that Run uses.
func NewParser(name, about string, grammar any, options ...kong.Option) *kong.Kong {
	var common struct {
		HelpAll helpAll `env:"-" hidden:"" help:"Show all flags, with their variables."` // --help names it
	}
	options = append(slices.Clone(options), kong.Embed(&common))
	if _, single := grammar.(Grammar); single { // a program with commands has a command version
		var version struct {
			Version kong.VersionFlag `env:"-" help:"Show the version."`
		}
		options = append(options, kong.Embed(&version))
	}
	parser, err := kong.New(grammar, append(options,
		kong.Name(name), kong.Description(about), kong.PostBuild(ownVariables), kong.DefaultEnvars(envPrefix),
		kong.Vars{"version": Version(name)}, kong.WithBeforeApply(refuseEmpty),
		kong.Help(printHelp), kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
	)...)
	if err != nil {
		panic("command: " + err.Error()) // a mistake in a struct tag
	}
	return parser
}

// ownVariables names the variables of output files after the command, such as
// FOLLOWPRESS_GENERATE_OUT, so that no command overwrites the file of another.
func ownVariables(k *kong.Kong) error {
	for _, leaf := range Leaves(k.Model) {
		for _, flag := range leaf.Node.Flags {
			if flag.Name == "out" || flag.Name == "report" {
				words := append([]string{envPrefix}, append(strings.Fields(leaf.Path), flag.Name)...)
				flag.Envs = []string{strings.ToUpper(strings.Join(words, "_"))}
				flag.Tag.Envs = flag.Envs
			}
		}
	}
	return nil
}

// wrongUsage explains a parser error in one line. Without arguments, a program with commands
// shows its help instead.
func wrongUsage(err error, args []string, stderr io.Writer) int {
	var failed *kong.ParseError
	if !errors.As(err, &failed) {
		panic("command: " + err.Error()) // kong returns no other error
	}
	parsed := failed.Context
	name, text, lists := parsed.Model.Name, err.Error(), "flags"
	switch verb := parsed.Selected(); {
	case verb != nil && len(verb.Children) > 0:
		name, text, lists = verb.FullPath(), strings.Replace(text, "unexpected argument", "unknown command", 1), "commands"
	case verb != nil:
		name, text = verb.FullPath(), strings.TrimPrefix(text, verb.Path()+": ") // kong puts it before some errors
		if strings.HasPrefix(text, "unexpected argument") && strings.HasPrefix(path.Base(text), "part-") {
			text += "; quote …/part-*, or the shell expands it"
		}
	case len(parsed.Model.Children) == 0:
	case len(args) == 0:
		parsed.Stdout = stderr
		if err := parsed.PrintUsage(false); err == nil {
			return Usage
		}
	default:
		text, lists = strings.Replace(text, "unexpected argument", "unknown command", 1), "commands"
	}
	text = belowZero.ReplaceAllString(text, "$1=$2: must not be negative")
	fmt.Fprintf(stderr, "%s: %s (%s --help lists the %s)\n", name, oneLine(text)+setBy(parsed, text), name, lists)
	return Usage
}

// belowZero matches the parser's error for a negative number: not a number, or an unknown short flag.
var belowZero = regexp.MustCompile(`^(--[a-z-]+): expected .* but got "(-\d[^"]*)".*`)

// setBy names the variables, or the file, that set the flags in an error; "" if none.
func setBy(parsed *kong.Context, text string) string {
	given, filed, said := Given(parsed), onPath(parsed, true), ""
	for _, flag := range parsed.Flags() {
		if given[flag.Name] || !regexp.MustCompile(`(^|[^-\w])--`+regexp.QuoteMeta(flag.Name)+`($|[^-\w])`).MatchString(text) {
			continue
		}
		if filed[flag.Name] {
			said += fmt.Sprintf(" (the file of --config sets --%s)", flag.Name)
			continue
		}
		for _, name := range flag.Envs {
			if os.Getenv(name) != "" && !strings.Contains(text, name) {
				said += fmt.Sprintf(" (%s sets --%s)", name, flag.Name)
				break
			}
		}
	}
	return said
}

// Given returns the names of the flags on the command line.
func Given(parsed *kong.Context) map[string]bool { return onPath(parsed, false) }

// onPath returns the names of the flags on the command line, or of the flags that a file sets.
func onPath(parsed *kong.Context, filed bool) map[string]bool {
	names := map[string]bool{}
	for _, at := range parsed.Path {
		if at.Flag != nil && at.Resolved == filed {
			names[at.Flag.Name] = true
		}
	}
	return names
}

// Asked reports whether the command line, a variable or a file sets a flag.
func Asked(parsed *kong.Context, name string) bool {
	for _, flag := range parsed.Flags() {
		if flag.Name == name && slices.ContainsFunc(flag.Envs, func(env string) bool { return os.Getenv(env) != "" }) {
			return true
		}
	}
	return Given(parsed)[name] || onPath(parsed, true)[name]
}

// A Leaf is a command that can run, not a group.
type Leaf struct {
	Path string // words such as "snapshot chain"
	Node *kong.Node
}

// Leaves returns the commands of a program, in the order of its help.
func Leaves(program *kong.Application) (all []Leaf) {
	for _, node := range program.Leaves(false) {
		_, path, _ := strings.Cut(node.FullPath(), " ")
		all = append(all, Leaf{path, node})
	}
	return all
}

// refuseEmpty rejects an empty value of a required flag or of --out: usually an unset shell variable.
func refuseEmpty(parsed *kong.Context, at *kong.Path) error {
	if at.Flag == nil || parsed.FlagValue(at.Flag) != "" || !at.Flag.Required && at.Flag.PlaceHolder != "OUT" {
		return nil
	}
	return fmt.Errorf("--%s is empty: is a shell variable not set?", at.Flag.Name)
}

// oneLine joins the lines of an error, since errors are one line, and escapes terminal control codes.
func oneLine(text string) string { return plain.Line(strings.ReplaceAll(text, "\n", "; ")) }

// envPrefix begins the names of variables that set flags.
const envPrefix = "FOLLOWPRESS"

// forgetEmpty treats empty variables as unset: CI systems set variables without a value to "".
func forgetEmpty() {
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, envPrefix+"_") && value == "" {
			_ = os.Unsetenv(name) // only a malformed name is an error
		}
	}
}

// untilSignal returns a context that a signal cancels. caught stops listening and returns the
// signal, or nil.
func untilSignal(parent context.Context) (ctx context.Context, caught func() os.Signal) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	result := make(chan os.Signal, 1)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals) // the next one ends the process
			result <- s
			cancel()
		case <-ctx.Done():
		}
		close(result)
	}()
	return ctx, func() os.Signal {
		signal.Stop(signals)
		cancel()
		return <-result
	}
}
