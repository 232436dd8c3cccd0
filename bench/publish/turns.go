package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// A tool uploads a site to a bucket.
type tool string

const (
	ours   tool = "publish"
	rclone tool = "rclone"
)

// first measures filling an empty bucket, with the tools alternating.
func (b *bench) first(ctx context.Context, kind servers.Kind) ([]measure.Pair, error) {
	if err := b.tune(ctx, kind); err != nil {
		return nil, err
	}
	return b.alternate(func(round int, by tool) (float64, error) {
		name := folder(kind, by, round)
		return b.turn(ctx, kind, name, by, full, func(s *rig.S3) (*exec.Cmd, error) {
			if err := s.MakeBucket(ctx, bucket); err != nil || by == ours {
				return b.publish(ctx, s, full), err
			}
			return b.rcloneCopy(ctx, s, full, bucket, b.transfers[kind]), nil
		})
	})
}

// next measures uploading a changed site to a bucket that holds the full one, and
// restores the full one afterwards.
func (b *bench) next(ctx context.Context, kind servers.Kind, site string) ([]measure.Pair, error) {
	return b.alternate(func(_ int, by tool) (float64, error) {
		name := folder(kind, by, 0)
		took, err := b.turn(ctx, kind, name, by, site, func(s *rig.S3) (*exec.Cmd, error) {
			if by == ours {
				return b.publish(ctx, s, site), nil
			}
			return b.rcloneSync(ctx, s, site, b.transfers[kind]), nil
		})
		if err != nil {
			return 0, err
		}
		last := b.last
		_, err = b.serve(ctx, kind, name, func(s *rig.S3) error {
			_, err := measure.Run(b.publish(ctx, s, full))
			return err
		})
		b.last = last
		return took, err
	})
}

func folder(kind servers.Kind, by tool, round int) string {
	return fmt.Sprintf("%s-%s-%d", kind, by, round)
}

// alternate alternates which tool begins.
func (b *bench) alternate(measured func(round int, by tool) (float64, error)) ([]measure.Pair, error) {
	return measure.Rounds(b.Rounds, func(round int) (p measure.Pair, err error) {
		turns := []tool{ours, rclone}
		if round%2 == 1 {
			slices.Reverse(turns)
		}
		for _, by := range turns {
			took, err := measured(round, by)
			if err != nil {
				return p, err
			}
			if by == ours {
				p.Ours = took
			} else {
				p.Other = took
			}
		}
		return p, nil
	})
}

// turn measures one command and checks that the bucket holds the site afterwards.
func (b *bench) turn(ctx context.Context, kind servers.Kind, name string, by tool, site string,
	prepare func(*rig.S3) (*exec.Cmd, error)) (float64, error) {
	if err := warm(b.Path(site)); err != nil {
		return 0, err
	}
	var client measure.Usage
	served, err := b.serve(ctx, kind, name, func(s *rig.S3) error {
		c, err := prepare(s)
		if err != nil {
			return err
		}
		client, err = measure.Run(c)
		return err
	})
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(os.Stderr, "  %s, %s, %s: %.1f s; CPU %.1f s, of the server %.1f s; %.0f MiB\n",
		by, kind, site, client.Seconds, client.CPU, served.CPU, client.Memory)
	if by == ours {
		b.memory = append(b.memory, client.Memory)
		if err := b.readReport(); err != nil {
			return 0, err
		}
	}
	_, err = b.serve(ctx, kind, name, func(s *rig.S3) error {
		_, err := measure.Run(b.command(ctx, s, "verify"))
		return err
	})
	return client.Seconds, err
}

// warm reads a site, so that it is in the page cache for both tools.
func warm(site string) error {
	return filepath.WalkDir(site, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	})
}

// unchangedRuns is larger than the rounds of slow measurements.
const unchangedRuns = 5

// unchanged returns the seconds of each publish of an unchanged site.
func (b *bench) unchanged(ctx context.Context, kind servers.Kind) (took []float64, err error) {
	_, err = b.serve(ctx, kind, folder(kind, ours, 0), func(s *rig.S3) error {
		took, err = measure.Repeat(unchangedRuns, func(int) (float64, error) {
			usage, err := measure.Run(b.publish(ctx, s, full))
			return usage.Seconds, err
		})
		if err != nil {
			return err
		}
		return b.readReport()
	})
	if err == nil && b.last.Outcome != "unchanged" {
		err = fmt.Errorf("publish of an unchanged site: %s", b.last.Outcome)
	}
	return took, err
}

// A report is the part of publish's report that the benchmark reads.
type report struct {
	Outcome string
	Bulk    bool
	Plan    struct{ Put int }
}

func (b *bench) publish(ctx context.Context, s *rig.S3, site string) *exec.Cmd {
	return b.command(ctx, s, "publish", "--site", b.Path(site), "--report", b.Path("report.json"))
}

func (b *bench) command(ctx context.Context, s *rig.S3, arguments ...string) *exec.Cmd {
	return s.Command(ctx, b.Built("followpress"),
		append(arguments, "--dest", "s3://"+bucket, "--endpoint", "http://"+s.Addr)...)
}

func (b *bench) readReport() error {
	body, err := os.ReadFile(b.Path("report.json"))
	if err != nil {
		return err
	}
	b.last = report{}
	return json.Unmarshal(body, &b.last)
}
