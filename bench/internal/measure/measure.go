// Package measure has what the benchmarks share: running commands, comparing two of
// them in alternating rounds, and the table of results.
package measure

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/followpress/followpress/fixtures/graph"
)

// Usage is the resource usage of a process.
type Usage struct {
	Seconds float64 // by the clock
	CPU     float64 // seconds of all cores
	Memory  float64 // at its peak, in MiB; of a small process what its parent had when it began
}

// Run runs a command; an error contains its output.
func Run(c *exec.Cmd) (Usage, error) {
	syscall.Sync() // do not measure the writes of earlier commands
	start := time.Now()
	if output, err := c.CombinedOutput(); err != nil {
		return Usage{}, fmt.Errorf("%s: %w\n%s", filepath.Base(c.Path), err, output)
	}
	usage := UsageOf(c.ProcessState)
	usage.Seconds = time.Since(start).Seconds()
	return usage, nil
}

// UsageOf is the usage of a process that has ended, without Seconds.
func UsageOf(state *os.ProcessState) Usage {
	usage := Usage{CPU: (state.UserTime() + state.SystemTime()).Seconds()}
	if system, ok := state.SysUsage().(*syscall.Rusage); ok {
		usage.Memory = float64(system.Maxrss) / 1024 // Linux counts KiB
	}
	return usage
}

// A Pair is a figure of ours and one to compare it with.
type Pair struct{ Ours, Other float64 }

// Ratio is our figure divided by the other.
func (p Pair) Ratio() float64 { return p.Ours / p.Other }

// Middle repeats a measurement and returns the pair with the median ratio, since
// machines are noisy.
func Middle(rounds int, measure func(round int) (Pair, error)) (Pair, error) {
	pairs := make([]Pair, rounds)
	for i := range pairs {
		var err error
		if pairs[i], err = measure(i); err != nil {
			return Pair{}, err
		}
		fmt.Fprintf(os.Stderr, "  %.2f / %.2f = %.2f\n", pairs[i].Ours, pairs[i].Other, pairs[i].Ratio())
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return cmp.Compare(a.Ratio(), b.Ratio()) })
	return pairs[rounds/2], nil
}

// A Table has a row for each measure.
type Table struct{ rows []string }

// Compare adds a row whose ratio has the target. The format is that of a figure.
func (t *Table) Compare(measure, format string, p Pair, target string) {
	t.row(measure, fmt.Sprintf(format, p.Ours), fmt.Sprintf(format, p.Other), fmt.Sprintf("%.2f", p.Ratio()), target)
}

// Figure adds a row without another tool: the figure itself has the target.
func (t *Table) Figure(measure, figure, beside, target string) {
	t.row(measure, figure, beside, "", target)
}

// row adds a row and shows it.
func (t *Table) row(measure, ours, other, ratio, target string) {
	t.rows = append(t.rows, fmt.Sprintf("| %s | %s | %s | %s | %s |", measure, ours, other, ratio, target))
	fmt.Fprintf(os.Stderr, "%s: %s %s %s\n", measure, ours, other, ratio)
}

// String is the table in Markdown.
func (t *Table) String() string {
	return "| measure | ours | other | ratio | target |\n|---|---|---|---|---|\n" + strings.Join(t.rows, "\n") + "\n"
}

// Seconds is how a row shows a time.
const Seconds = "%.1f s"

// The size of a real network (Epinions), whose proportions all snapshots have.
const (
	Objects  = 359_474
	accounts = 75_879
	lists    = 61_572
	records  = 511_524
)

// Snapshot makes a synthetic snapshot, whose site has about that many objects, in a
// folder that must not exist.
func Snapshot(ctx context.Context, dir string, objects int) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	part := func(n int) int { return int(int64(n) * int64(objects) / Objects) }
	options := graph.Options{Accounts: part(accounts), Lists: part(lists), Records: part(records), Seed: 1}
	_, err := graph.Write(ctx, options, func(name string) (io.WriteCloser, error) {
		return os.Create(filepath.Join(dir, name))
	})
	return err
}
