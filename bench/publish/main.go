// Command publish compares followpress publish with rclone, with the same site and the
// same servers in one run, and prints a table. `make bench-publish` builds what it
// needs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/followpress/followpress/bench/altered"
	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

func main() {
	b := &bench{Bench: rig.Bench{Objects: measure.Objects / 10, Rounds: 1}, transfers: map[servers.Kind]int{}}
	b.Main(b.generate, b.besideRclone)
}

// A bench keeps the figures of a run.
type bench struct {
	rig.Bench
	transfers map[servers.Kind]int // rclone transfers, tuned for the server
	tuning    []string             // notes on the choice of the number of transfers
	objects   int                  // number of objects of the site
	last      report               // result of the previous publish
	memory    []float64            // peak memory of all publishes
}

// besideRclone compares publish with rclone.
func (b *bench) besideRclone(ctx context.Context) error {
	for _, part := range []func(context.Context) error{b.minio, b.versitygw, b.aboutRclone} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// bucket is the bucket that the site is published to.
const bucket = "site"

func (b *bench) serve(ctx context.Context, kind servers.Kind, name string, use func(*rig.S3) error) (measure.Usage, error) {
	return rig.ServeS3(ctx, kind, b.Tools, b.Path(name), use)
}

// The sites.
const (
	full     = "site"
	tagged   = "site-tagged"   // 1 % of the lists have a record with another tag
	followed = "site-followed" // 1 % of the lists follow one more account
	tenth    = "site-tenth"    // for choosing the settings of rclone
)

// generate makes each site in its own folder, so that all files of a changed site are new, as in a
// nightly job.
func (b *bench) generate(ctx context.Context) error {
	const nth = 50 // selects one list of each hundred
	if err := errors.Join(
		altered.Snapshot(b.Snapshot, b.Path("snapshot-tagged"), nth, altered.AddTag),
		altered.Snapshot(b.Snapshot, b.Path("snapshot-followed"), nth, altered.AddFollow),
	); err != nil {
		return err
	}
	for name, snapshot := range map[string]string{
		full: b.Snapshot, tagged: b.Path("snapshot-tagged"), followed: b.Path("snapshot-followed"),
	} {
		if err := b.generateOne(ctx, snapshot, name); err != nil {
			return err
		}
	}
	body, err := os.ReadFile(filepath.Join(b.Path(full), string(site.RootKey)))
	if err != nil {
		return err
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return err
	}
	b.objects = root.Counts.Objects
	if err := measure.Snapshot(ctx, b.Path("snapshot-tenth"), b.objects/10); err != nil {
		return err
	}
	return b.generateOne(ctx, b.Path("snapshot-tenth"), tenth)
}

func (b *bench) generateOne(ctx context.Context, snapshot, name string) error {
	usage, err := b.Generate(ctx, snapshot, name)
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
	b.row("1 % of the lists with another tag / `rclone sync --checksum`", changed, "≤ 0.05", b.put())
	if changed, err = b.next(ctx, servers.MinIO, followed); err != nil {
		return err
	}
	b.row("1 % of the lists follow somebody more / `rclone sync --checksum`", changed, "", b.put())

	unchanged, err := b.unchanged(ctx, servers.MinIO)
	if err != nil {
		return err
	}
	b.Figure("publish of an unchanged site", "s", unchanged, "≤ 0.2 s")
	b.Figure("peak memory of publish", "MiB", b.memory, "≤ 200 MiB", fmt.Sprintf("%d objects", b.objects))
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

func (b *bench) row(name string, rounds []measure.Pair, target string, notes ...string) {
	b.Compare(name, "s", rounds, target, notes...)
}

// put describes the number of objects that the last publish put.
func (b *bench) put() string { return fmt.Sprintf("%d objects", b.last.Plan.Put) }
