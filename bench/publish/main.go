// Command publish compares followpress publish with rclone, with the same site and the
// same servers in one run, and prints a table. `make bench-publish` builds what it
// needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/followpress/followpress/bench/internal/measure"
	"github.com/followpress/followpress/bench/internal/rig"
	"github.com/followpress/followpress/fixtures/servers"
	"github.com/followpress/followpress/site"
)

func main() {
	var o options
	flag.StringVar(&o.snapshot, "snapshot", "", "folder of the snapshot; none makes a synthetic one for --objects")
	flag.StringVar(&o.bin, "bin", "", "folder with the built followpress")
	flag.StringVar(&o.tools, "tools", ".tools", "folder with minio, versitygw and rclone")
	flag.StringVar(&o.work, "work", "", "folder to work in, which is left as it is then; none makes a temporary one")
	flag.IntVar(&o.size, "objects", measure.Objects/10, "about how many objects the site of a synthetic snapshot has")
	flag.IntVar(&o.rounds, "rounds", 1, "how often to measure, in turns; the round with the middle ratio counts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	err := run(ctx, o)
	if ctx.Err() != nil {
		err = errors.New("stopped")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	snapshot, bin, tools, work string
	size, rounds               int
}

// A bench keeps the figures of a run.
type bench struct {
	options
	table     measure.Table
	transfers map[servers.Kind]int // of rclone, tuned for the server
	tuning    []string             // how they were found
	objects   int                  // of the site
	last      report               // of the publish before
	memory    float64              // the most of any publish
}

// longest is the time limit for servers and tools that hang.
const longest = 3 * time.Hour

// run leaves everything it makes until the end: file systems are slow for a while
// after removing so much.
func run(ctx context.Context, o options) (err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if o.rounds < 1 {
		return errors.New("--rounds must be 1 or more")
	}
	if o.work == "" {
		if o.work, err = os.MkdirTemp("", "followpress-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.work)) }()
	}
	b := &bench{options: o, transfers: map[servers.Kind]int{}}
	if o.snapshot == "" {
		b.snapshot = b.path("snapshot")
		if err := measure.Snapshot(ctx, b.snapshot, o.size); err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context) error{b.generate, b.minio, b.versitygw} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\n%s\n%s", &b.table, b.aboutRclone())
	return nil
}

// bucket is the bucket that the site is published to.
const bucket = "site"

func (b *bench) serve(ctx context.Context, kind servers.Kind, name string, use func(*rig.S3) error) (measure.Usage, error) {
	return rig.ServeS3(ctx, kind, b.tools, b.path(name), use)
}

func (b *bench) path(name string) string { return filepath.Join(b.work, name) }

// The sites.
const (
	full     = "site"
	tagged   = "site-tagged"   // 1 % of the lists have a record with another tag
	followed = "site-followed" // 1 % of the lists follow somebody more
	tenth    = "site-tenth"    // for finding the best settings of rclone
)

// generate makes each site in a folder of its own, so that all files of a changed
// one are new: that is what a nightly job has.
func (b *bench) generate(ctx context.Context) error {
	if err := errors.Join(
		alter(b.snapshot, b.path("snapshot-tagged"), addTag),
		alter(b.snapshot, b.path("snapshot-followed"), addFollow),
	); err != nil {
		return err
	}
	for name, snapshot := range map[string]string{
		full: b.snapshot, tagged: b.path("snapshot-tagged"), followed: b.path("snapshot-followed"),
	} {
		if err := b.generateOne(ctx, snapshot, name); err != nil {
			return err
		}
	}
	body, err := os.ReadFile(filepath.Join(b.path(full), string(site.RootKey)))
	if err != nil {
		return err
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return err
	}
	b.objects = root.Counts.Objects
	if err := measure.Snapshot(ctx, b.path("snapshot-tenth"), b.objects/10); err != nil {
		return err
	}
	return b.generateOne(ctx, b.path("snapshot-tenth"), tenth)
}

func (b *bench) generateOne(ctx context.Context, snapshot, name string) error {
	usage, err := measure.Run(exec.CommandContext(ctx, filepath.Join(b.bin, "followpress"), "generate", "--snapshot", snapshot, "--out", b.path(name)))
	fmt.Fprintf(os.Stderr, "%s: generated in %.1f s\n", name, usage.Seconds)
	return err
}

// minio measures with a server that unpacks many objects from one request.
func (b *bench) minio(ctx context.Context) error {
	first, err := b.first(ctx, servers.MinIO)
	if err != nil {
		return err
	}
	if !b.last.Bulk {
		return errors.New("publish to MinIO did not send many objects at once")
	}
	b.row("first publish to MinIO, bulk upload / `rclone copy`", first, "≤ 0.6")

	changed, err := b.next(ctx, servers.MinIO, tagged)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("1 %% of the lists with another tag (%d objects) / `rclone sync --checksum`", b.last.Plan.Put), changed, "≤ 0.05")
	if changed, err = b.next(ctx, servers.MinIO, followed); err != nil {
		return err
	}
	b.row(fmt.Sprintf("1 %% of the lists follow somebody more (%d objects) / the same", b.last.Plan.Put), changed, "")

	unchanged, err := b.unchanged(ctx, servers.MinIO)
	if err != nil {
		return err
	}
	b.table.Row("publish of an unchanged site", fmt.Sprintf("%.3f s", unchanged), "", 0, "≤ 0.2 s")
	b.table.Row(fmt.Sprintf("peak memory of publish (%d objects)", b.objects), fmt.Sprintf("%.0f MiB", b.memory), "", 0, "≤ 200 MiB")
	return nil
}

// versitygw measures with a server that takes one object per request.
func (b *bench) versitygw(ctx context.Context) error {
	first, err := b.first(ctx, servers.VersityGW)
	if err != nil {
		return err
	}
	if b.last.Bulk {
		return errors.New("publish to versitygw sent many objects at once")
	}
	b.row("first publish to versitygw, an object a request / `rclone copy`", first, "≤ 0.75")
	return nil
}

func (b *bench) row(name string, p measure.Pair, target string) {
	b.table.Row(name, measure.Seconds(p.Ours), measure.Seconds(p.Other), p.Ratio(), target)
}
