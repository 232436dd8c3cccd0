package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/followpress/followpress/bench/internal/measure"
	"github.com/followpress/followpress/bench/internal/rig"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// rendered measures publish --snapshot beside generate to a tar and publish of the tar, in a bucket of
// MinIO. Each turn changes 1 % of the lists, to and fro.
func (b *bench) rendered(ctx context.Context) error {
	var rounds []measure.Pair
	var memory []float64
	_, err := b.serve(ctx, servers.MinIO, folder(servers.MinIO, ours, 0), func(s *rig.S3) (err error) {
		// The bucket has the full site already, unless nothing else was measured.
		if _, err := measure.Run(b.command(ctx, s, "init")); err != nil {
			return err
		}
		if _, err := measure.Run(b.fromSnapshot(ctx, s, b.Snapshot)); err != nil {
			return err
		}
		snapshots := []string{b.Path("snapshot-tagged"), b.Snapshot}
		turn := 0
		next := func() (snapshot string) {
			turn++
			return snapshots[(turn-1)%2]
		}
		rounds, err = measure.Rounds(b.Rounds, func(round int) (p measure.Pair, err error) {
			direct := func() error {
				usage, err := measure.Run(b.fromSnapshot(ctx, s, next()))
				if err != nil {
					return err
				}
				p.Ours, memory = usage.Seconds, append(memory, usage.Memory)
				return b.readReport()
			}
			viaTar := func() (err error) {
				p.Other, err = b.viaTar(ctx, s, next())
				return err
			}
			turns := []func() error{direct, viaTar}
			if round%2 == 1 {
				turns = []func() error{viaTar, direct}
			}
			for _, turn := range turns {
				if err := turn(); err != nil {
					return p, err
				}
			}
			return p, nil
		})
		if err != nil {
			return err
		}
		_, err = measure.Run(b.command(ctx, s, "verify"))
		return err
	})
	if err != nil {
		return err
	}
	b.row("publish --snapshot / generate to a tar and publish it, 1 % of the lists with another tag", rounds, "≤ 0.8", b.put())
	b.Figure("peak memory of publish --snapshot", "MiB", memory, "≤ 256 MiB", fmt.Sprintf("%d objects", b.objects))
	return nil
}

// viaTar returns the seconds of generate and publish together.
func (b *bench) viaTar(ctx context.Context, s *rig.S3, snapshot string) (seconds float64, err error) {
	const out = "rendered.tar"
	generated, err := b.Generate(ctx, snapshot, out)
	if err != nil {
		return 0, err
	}
	published, err := measure.Run(b.publish(ctx, s, out))
	if err != nil {
		return 0, err
	}
	// Over an old tar, generate would compare first: a job on a new machine does not.
	return generated.Seconds + published.Seconds, os.Remove(b.Path(out))
}

func (b *bench) fromSnapshot(ctx context.Context, s *rig.S3, snapshot string) *exec.Cmd {
	return b.command(ctx, s, "publish", "--snapshot", snapshot, "--report", b.Path("report.json"))
}
