// Command bench compares the commands with alternative tools, on one machine in one run, and prints
// a table. `make bench` builds the programs.
package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/followpress/followpress/bench/altered"
	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
)

func main() {
	b := &bench{rig.Bench{Objects: measure.Objects}}
	b.Main(b.folder, b.tar, b.requests, b.search)
}

type bench struct{ rig.Bench }

// folder measures folders. Every round writes new folders, and removes nothing before the end: file
// systems are slow for a while after large removals.
func (b *bench) folder(ctx context.Context) error {
	var memory []float64
	fresh, err := measure.Rounds(b.Rounds, func(round int) (p measure.Pair, err error) {
		site := b.siteName(round)
		usage, err := b.Generate(ctx, b.Snapshot, site)
		if err != nil {
			return p, err
		}
		memory, p.Ours = append(memory, usage.Memory), usage.Seconds
		p.Other, err = timed(ctx, "cp", "-r", b.Path(site), b.Path("copy-of-"+site))
		return p, err
	})
	if err != nil {
		return err
	}
	again, err := measure.Rounds(b.Rounds, func(round int) (p measure.Pair, err error) {
		usage, err := b.Generate(ctx, b.Snapshot, b.siteName(round))
		return measure.Pair{Ours: usage.Seconds, Other: fresh[round].Ours}, err
	})
	if err != nil {
		return err
	}
	b.Compare("generate to a fresh folder / `cp -r` of it", "s", fresh, "≤ 0.8")
	b.Compare("generate over an unchanged site / first run", "s", again, "≤ 0.25")
	changed, err := b.changed(ctx, fresh)
	if err != nil {
		return err
	}
	b.Compare("publish --snapshot --dest file://, 1 % of the lists changed / generate to a fresh folder", "s", changed, "≤ 0.25")
	b.Figure("peak memory of generate to a folder", "MiB", memory, "≤ 256 MiB")
	return nil
}

// changed measures a night in which a hundredth of the lists change, other lists in each round. It
// updates a folder object by object. The first publish fills the folder and is not measured.
func (b *bench) changed(ctx context.Context, fresh []measure.Pair) ([]measure.Pair, error) {
	publish := func(snapshot string) (float64, error) {
		return timed(ctx, b.Built("followpress"), "publish", "--snapshot", snapshot, "--dest", "file://"+b.Path("bucket"))
	}
	snapshot := b.Snapshot
	if _, err := publish(snapshot); err != nil {
		return nil, err
	}
	return measure.Rounds(b.Rounds, func(round int) (measure.Pair, error) {
		next := b.Path(fmt.Sprintf("snapshot-%d", round))
		if err := altered.Snapshot(snapshot, next, round, altered.AddTag); err != nil {
			return measure.Pair{}, err
		}
		snapshot = next
		seconds, err := publish(snapshot)
		return measure.Pair{Ours: seconds, Other: fresh[round].Ours}, err
	})
}

// siteName returns the folder of a round. The first folder is served later.
func (b *bench) siteName(round int) string {
	if round == 0 {
		return "site"
	}
	return fmt.Sprintf("site-%d", round)
}

func (b *bench) tar(ctx context.Context) error {
	rounds, err := measure.Rounds(b.Rounds, func(round int) (p measure.Pair, err error) {
		usage, err := b.Generate(ctx, b.Snapshot, fmt.Sprintf("site-%d.tar", round))
		if err != nil {
			return p, err
		}
		p.Ours = usage.Seconds
		p.Other, err = timed(ctx, "tar", "cf", b.Path(fmt.Sprintf("other-%d.tar", round)), "-C", b.Path("site"), ".")
		return p, err
	})
	if err != nil {
		return err
	}
	b.Compare("generate to a tar / `tar cf`", "s", rounds, "≤ 0.5")
	return nil
}

func timed(ctx context.Context, name string, args ...string) (float64, error) {
	usage, err := measure.Run(exec.CommandContext(ctx, name, args...))
	return usage.Seconds, err
}

// requests compares details of one list, which the handler has cached, with nginx serving the file.
func (b *bench) requests(ctx context.Context) error {
	nginx, err := b.Nginx(ctx)
	if err != nil {
		return err
	}
	defer nginx.Stop()
	ours, err := b.startFallback(ctx)
	if err != nil {
		return err
	}
	defer ours.Stop()
	token, _, err := rig.LargestList(b.Path("site"))
	if err != nil {
		return err
	}
	return b.CompareRates(ctx, "details of one list, 50 connections / nginx serving the file", rig.Details([]string{token}), ours.Addr, nginx.Addr, "≥ 0.5")
}

func (b *bench) startFallback(ctx context.Context) (*rig.Process, error) {
	return rig.Start(ctx, func(addr string) (*exec.Cmd, error) {
		return exec.CommandContext(ctx, b.Built("followpress"), "serve", "--site", b.Path("site"), "--addr", addr), nil
	})
}

// search requests terms that require a scan of the whole largest list, one after the other.
func (b *bench) search(ctx context.Context) error {
	ours, err := b.startFallback(ctx)
	if err != nil {
		return err
	}
	defer ours.Stop()
	token, follows, err := rig.LargestList(b.Path("site"))
	if err != nil {
		return err
	}
	const warmUp, requests = 100, 2_000
	var p50 []float64
	p99, err := measure.Repeat(b.Rounds, func(round int) (float64, error) {
		took := make([]float64, 0, requests)
		for i := range warmUp + requests {
			begun := time.Now()
			if _, err := rig.Get(fmt.Sprintf("http://%s/api/v1/lists/%s/searchFollowing?term=zz%d-%d", ours.Addr, token, round, i)); err != nil {
				return 0, err
			}
			if i >= warmUp {
				took = append(took, 1000*time.Since(begun).Seconds())
			}
		}
		slices.Sort(took)
		p50 = append(p50, took[len(took)/2])
		return took[len(took)*99/100], nil
	})
	if err != nil {
		return err
	}
	b.Figure("term search over the largest list, warm, p99", "ms", p99, "≤ 2 ms",
		fmt.Sprintf("%d follows", follows), "p50 "+measure.Text("ms", p50...))
	return nil
}
