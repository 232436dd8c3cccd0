// Package measure has shared parts of the benchmarks: running commands, measuring in rounds, and
// tables of figures with their spread, as Markdown and as JSON.
//
// The API may change in any release.
package measure

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/followpress/followpress/fixtures/graph"
)

// Usage is the resource usage of a process.
type Usage struct {
	Seconds float64 // elapsed
	CPU     float64 // seconds of all cores
	Memory  float64 // peak in MiB; for a small process, that of its parent at the start
}

// Run runs a command; an error contains its output.
func Run(c *exec.Cmd) (Usage, error) {
	syscall.Sync() // do not count the writes of earlier commands
	start := time.Now()
	if output, err := c.CombinedOutput(); err != nil {
		return Usage{}, fmt.Errorf("%s: %w\n%s", filepath.Base(c.Path), err, output)
	}
	usage := UsageOf(c.ProcessState)
	usage.Seconds = time.Since(start).Seconds()
	return usage, nil
}

// UsageOf returns the usage of a process that has ended, without Seconds.
func UsageOf(state *os.ProcessState) Usage {
	usage := Usage{CPU: (state.UserTime() + state.SystemTime()).Seconds()}
	if system, ok := state.SysUsage().(*syscall.Rusage); ok {
		usage.Memory = float64(system.Maxrss) / 1024 // Linux counts KiB
	}
	return usage
}

// The size of a real network (Epinions). All snapshots have its proportions.
const (
	Objects  = 359_474
	accounts = 75_879
	lists    = 61_572
	records  = 511_524
)

// Snapshot makes a synthetic snapshot whose site has about the given number of objects. The folder
// must not exist.
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
