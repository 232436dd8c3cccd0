// Package command is what the commands share: flags that the environment can set,
// exit status, signals and progress.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
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

// Main runs the command with the arguments of the process and ends the process.
func Main(name, about string, grammar Grammar) {
	os.Exit(Run(name, about, grammar, os.Args[1:], os.Stdout, os.Stderr))
}

// Run parses args into the grammar, runs it and gives the exit status. An
// interrupt (SIGINT, SIGTERM) cancels the context; a second one ends the process.
func Run(name, about string, grammar Grammar, args []string, stdout, stderr io.Writer) int {
	forgetEmpty()
	status := -1
	parser, err := kong.New(grammar,
		kong.Name(name), kong.Description(about), kong.Writers(stdout, stderr), kong.DefaultEnvars(envPrefix),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Exit(func(code int) { status = code }),
	)
	if err != nil {
		panic("command: " + err.Error()) // a mistake in a struct tag
	}
	_, err = parser.Parse(args)
	if status >= 0 { // --help was answered
		return status
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v (%s --help lists the flags)\n", name, err, name)
		return Usage
	}

	ctx, caught := untilSignal(context.Background())
	err = grammar.Run(ctx, stdout, stderr)
	if sig := caught(); sig != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintf(stderr, "%s: stopped by %v\n", name, sig)
		return 128 + int(sig.(syscall.Signal))
	}
	if err != nil {
		// Joined errors have a line each; a person is promised one.
		fmt.Fprintf(stderr, "%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
		return Failed
	}
	return Done
}

// envPrefix begins the names of variables that set flags.
const envPrefix = "FOLLOWPRESS"

// forgetEmpty makes an empty variable mean what none does: in the jobs of CI systems
// a variable that nobody has set is empty.
func forgetEmpty() {
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, envPrefix+"_") && value == "" {
			_ = os.Unsetenv(name) // only a malformed name is an error
		}
	}
}

// untilSignal is a context that a signal cancels. caught ends the watch and gives
// the signal, nil if there was none.
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
