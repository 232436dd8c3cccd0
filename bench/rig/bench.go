package rig

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/followpress/followpress/bench/measure"
)

// A Bench holds the flags, the work folder and the results of a benchmark.
type Bench struct {
	measure.Results
	Snapshot string // a folder
	Bin      string // the folder of the built commands
	Tools    string // folder of the other tools
	Work     string
	Objects  int    // approximate number of objects of a synthetic site; 0 if no snapshot is needed
	Rounds   int    // repetitions of each measurement, since machines are noisy; 0 means 3
	Notes    string // below the table
	results  string // the file for the rounds
}

// longest limits servers and tools that hang.
const longest = 3 * time.Hour

// Main parses the flags, runs the parts in order, prints a table, and ends the process. Define
// further flags first.
func (b *Bench) Main(parts ...func(context.Context) error) {
	flag.StringVar(&b.Snapshot, "snapshot", "", "folder of the snapshot; none makes a synthetic one")
	flag.StringVar(&b.Bin, "bin", "", "folder with the built commands")
	flag.StringVar(&b.Tools, "tools", ".tools", "folder with the servers and tools to compare with")
	flag.StringVar(&b.Work, "work", "", "folder to work in, which is left as it is then; none makes a temporary one")
	flag.IntVar(&b.Rounds, "rounds", cmp.Or(b.Rounds, 3), "how often each thing is measured; the median counts, the rest is its noise")
	flag.StringVar(&b.results, "results", "", "file for the rounds, in the Go benchmark format; none writes no file")
	flag.IntVar(&b.Objects, "objects", b.Objects, "about how many objects the site of a synthetic snapshot has")
	flag.Parse()
	if b.Rounds < 1 {
		fmt.Fprintln(os.Stderr, "bench: --rounds must be 1 or more")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	err := b.run(ctx, parts)
	if ctx.Err() != nil {
		err = errors.New("stopped")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run removes its files only at the end: file systems are slow for a while after large removals.
func (b *Bench) run(ctx context.Context, parts []func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if b.Work == "" {
		if b.Work, err = os.MkdirTemp("", "followpress-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.Work)) }()
	}
	if b.Snapshot == "" && b.Objects > 0 {
		b.Snapshot = b.Path("snapshot")
		if err := measure.Snapshot(ctx, b.Snapshot, b.Objects); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	fmt.Println("| measure | ours | other | ratio | target | note |\n|---|---|---|---|---|---|")
	defer func() { fmt.Printf("\n%s", b.Notes) }()
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	if b.results == "" {
		return nil
	}
	return b.Write(b.results)
}

// Path returns the path of a name in the work folder.
func (b *Bench) Path(name string) string { return filepath.Join(b.Work, name) }

// Built returns the path of a built command.
func (b *Bench) Built(name string) string { return filepath.Join(b.Bin, name) }

// Generate makes the site of a snapshot in the work folder.
func (b *Bench) Generate(ctx context.Context, snapshot, out string) (measure.Usage, error) {
	return measure.Run(exec.CommandContext(ctx, b.Built("followpress"), "generate", "--snapshot", snapshot, "--out", b.Path(out)))
}

// CompareRates adds the rates of two warm servers, measured in turns.
func (b *Bench) CompareRates(ctx context.Context, name string, load Load, ours, other, target string) error {
	rates, _, err := b.loads(ctx, load, ours, other)
	if err == nil {
		b.Compare(name, "/s", rates, target)
	}
	return err
}

// CompareLoads is like CompareRates, and also adds the p99 of the answers, which has its own
// target.
func (b *Bench) CompareLoads(ctx context.Context, name string, load Load, ours, other, target, p99 string) error {
	rates, latencies, err := b.loads(ctx, load, ours, other)
	if err == nil {
		b.Compare(name, "/s", rates, target)
		b.Compare(name+", p99", "ms", latencies, p99)
	}
	return err
}

// loads sends a load to two servers in turns, and returns the rates and the p99 of each round.
func (b *Bench) loads(ctx context.Context, load Load, ours, other string) (rates, latencies []measure.Pair, err error) {
	measured := func(int) (measure.Pair, error) {
		theirs, err := load.Most(ctx, b.Work, other)
		if err != nil {
			return measure.Pair{}, err
		}
		own, err := load.Most(ctx, b.Work, ours)
		latencies = append(latencies, measure.Pair{Ours: own.P99, Other: theirs.P99})
		return measure.Pair{Ours: own.Rate, Other: theirs.Rate}, err
	}
	if _, err := measured(0); err != nil { // warm up
		return nil, nil, err
	}
	rates, err = measure.Rounds(b.Rounds, measured)
	return rates, latencies[1:], err
}

// Latency adds the p99 of the answers under a load at a fixed rate. It fails if an answer is an
// error.
func (b *Bench) Latency(ctx context.Context, name, addr string, load Load, target string) error {
	results, err := load.Repeat(ctx, b.Work, addr, b.Rounds)
	if err != nil {
		return err
	}
	p99, p50, rate := make([]float64, len(results)), make([]float64, len(results)), make([]float64, len(results))
	for i, result := range results {
		if result.Errors > 0 {
			return fmt.Errorf("%s: %d errors", name, result.Errors)
		}
		p99[i], p50[i], rate[i] = result.P99, result.P50, result.Rate
	}
	b.Figure(name+", p99", "ms", p99, target,
		"p50 "+measure.Text("ms", p50...), "reached "+measure.Text("/s", rate...))
	return nil
}
