// Command bench compares the commands with the tools that people would use instead, on
// one machine in one run, and prints a table. `make bench` builds what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/followpress/followpress/bench/internal/measure"
	"github.com/followpress/followpress/bench/internal/rig"
)

func main() {
	snapshot := flag.String("snapshot", "", "folder of the snapshot; none makes a synthetic one of the size of Epinions")
	bin := flag.String("bin", "", "folder with the built followpress")
	work := flag.String("work", "", "folder to work in; none makes a temporary one")
	flag.Parse()
	if err := run(context.Background(), *snapshot, *bin, *work); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A bench keeps the figures of a run.
type bench struct {
	bin, work, snapshot string
	table               measure.Table
}

func run(ctx context.Context, snapshot, bin, work string) (err error) {
	if work == "" {
		if work, err = os.MkdirTemp("", "followpress-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	}
	b := &bench{bin: bin, work: work, snapshot: snapshot}
	if b.snapshot == "" {
		b.snapshot = b.path("snapshot")
		if err := measure.Snapshot(ctx, b.snapshot, measure.Objects); err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context) error{b.folder, b.tar, b.requests, b.search} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\n%s", &b.table)
	return nil
}

func (b *bench) path(name string) string { return filepath.Join(b.work, name) }

// rounds is the number of alternating rounds: machines are noisy, so the round with the
// median ratio counts.
const rounds = 3

// folder measures folders. Every round writes new ones and nothing is removed
// before the end: file systems are slow for a while after removing so much.
func (b *bench) folder(ctx context.Context) error {
	var memory float64
	fresh, err := measure.Middle(rounds, func(round int) (p measure.Pair, err error) {
		site := b.siteName(round)
		usage, err := b.generate(ctx, site)
		if err != nil {
			return p, err
		}
		memory, p.Ours = max(memory, usage.Memory), usage.Seconds
		p.Other, err = timed(ctx, "cp", "-r", b.path(site), b.path("copy-of-"+site))
		return p, err
	})
	if err != nil {
		return err
	}
	again, err := measure.Middle(rounds, func(round int) (p measure.Pair, err error) {
		usage, err := b.generate(ctx, b.siteName(round))
		return measure.Pair{Ours: usage.Seconds, Other: fresh.Ours}, err
	})
	if err != nil {
		return err
	}
	b.table.Row("generate to a fresh folder / `cp -r`", measure.Seconds(fresh.Ours), measure.Seconds(fresh.Other), fresh.Ratio(), "≤ 0.8")
	b.table.Row("generate over an unchanged site / first run", measure.Seconds(again.Ours), measure.Seconds(again.Other), again.Ratio(), "≤ 0.25")
	b.table.Row("peak memory of generate to a folder", fmt.Sprintf("%.0f MiB", memory), "", 0, "≤ 256 MiB")
	return nil
}

// siteName is the folder of a round; the first one's is served later.
func (b *bench) siteName(round int) string {
	if round == 0 {
		return "site"
	}
	return fmt.Sprintf("site-%d", round)
}

func (b *bench) tar(ctx context.Context) error {
	p, err := measure.Middle(rounds, func(round int) (p measure.Pair, err error) {
		usage, err := b.generate(ctx, fmt.Sprintf("site-%d.tar", round))
		if err != nil {
			return p, err
		}
		p.Ours = usage.Seconds
		p.Other, err = timed(ctx, "tar", "cf", b.path(fmt.Sprintf("other-%d.tar", round)), "-C", b.path("site"), ".")
		return p, err
	})
	b.table.Row("generate to a tar / `tar cf`", measure.Seconds(p.Ours), measure.Seconds(p.Other), p.Ratio(), "≤ 0.5")
	return err
}

func (b *bench) generate(ctx context.Context, out string) (measure.Usage, error) {
	return measure.Run(exec.CommandContext(ctx, filepath.Join(b.bin, "followpress"), "generate", "--snapshot", b.snapshot, "--out", b.path(out)))
}

func timed(ctx context.Context, name string, args ...string) (float64, error) {
	usage, err := measure.Run(exec.CommandContext(ctx, name, args...))
	return usage.Seconds, err
}

// requests compares details of one list, which the handler then has in its cache,
// with nginx serving the file.
func (b *bench) requests(ctx context.Context) error {
	nginx, err := rig.Nginx(ctx, b.work, b.path("site"))
	if err != nil {
		return err
	}
	defer nginx.Stop()
	ours, err := b.startFallback(ctx)
	if err != nil {
		return err
	}
	defer ours.Stop()
	token, _, err := rig.LargestList(b.path("site"))
	if err != nil {
		return err
	}
	details := rig.Load{Paths: []string{"/api/v1/lists/" + token + "/details"}, Time: 5 * time.Second}
	p, err := measure.Middle(rounds, func(int) (p measure.Pair, err error) {
		if p.Other, err = details.Most(ctx, b.work, nginx.Addr); err != nil {
			return p, err
		}
		p.Ours, err = details.Most(ctx, b.work, ours.Addr)
		return p, err
	})
	b.table.Row("details of one list, hot, 50 connections / nginx", fmt.Sprintf("%.0f/s", p.Ours), fmt.Sprintf("%.0f/s", p.Other), p.Ratio(), "≥ 0.5")
	return err
}

func (b *bench) startFallback(ctx context.Context) (*rig.Process, error) {
	addr, err := rig.FreeAddr()
	if err != nil {
		return nil, err
	}
	return rig.Start(ctx, addr, exec.CommandContext(ctx, filepath.Join(b.bin, "followpress"), "serve", "--site", b.path("site"), "--addr", addr))
}

// search requests terms that need a scan of the whole largest list, one request after
// the other.
func (b *bench) search(ctx context.Context) error {
	ours, err := b.startFallback(ctx)
	if err != nil {
		return err
	}
	defer ours.Stop()
	token, follows, err := rig.LargestList(b.path("site"))
	if err != nil {
		return err
	}
	var took []time.Duration
	for i := range 5_000 {
		begun := time.Now()
		if err := rig.Get(fmt.Sprintf("http://%s/api/v1/lists/%s/searchFollowing?term=zz%d", ours.Addr, token, i)); err != nil {
			return err
		}
		if i >= 100 { // warm by then
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	b.table.Row(fmt.Sprintf("term search over the largest list (%d follows), warm, p99", follows),
		p99.Round(10*time.Microsecond).String(), "p50 "+p50.Round(10*time.Microsecond).String(), 0, "≤ 2 ms")
	return nil
}
