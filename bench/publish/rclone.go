package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// Settings of rclone. Each avoids requests or reads that are unnecessary when copying
// to a new bucket or comparing by digests.
var (
	rcloneBoth = []string{"--s3-no-check-bucket", "--s3-no-head"}
	rcloneNew  = []string{"--no-check-dest", "--no-traverse", "--ignore-checksum"}
	rcloneNext = []string{"--checksum", "--fast-list"}
)

func (b *bench) rcloneCopy(ctx context.Context, s *rig.S3, site, to string, transfers int) *exec.Cmd {
	return b.rcloneCommand(ctx, s, "copy", site, to, transfers, rcloneNew)
}

func (b *bench) rcloneSync(ctx context.Context, s *rig.S3, site string, transfers int) *exec.Cmd {
	return b.rcloneCommand(ctx, s, "sync", site, bucket, transfers, rcloneNext)
}

func (b *bench) rcloneCommand(ctx context.Context, s *rig.S3, verb, site, to string, transfers int, settings []string) *exec.Cmd {
	n := strconv.Itoa(transfers)
	arguments := []string{verb, b.Path(site), ":s3:" + to, "--transfers", n, "--checkers", n}
	return s.Command(ctx, filepath.Join(b.Tools, "rclone"), slices.Concat(arguments, rcloneBoth, settings)...)
}

// tune finds the best number of concurrent transfers for the server, with a smaller site.
func (b *bench) tune(ctx context.Context, kind servers.Kind) error {
	if err := warm(b.Path(tenth)); err != nil {
		return err
	}
	var tried []string
	best := 0.0
	_, err := b.serve(ctx, kind, string(kind)+"-tune", func(s *rig.S3) error {
		for _, transfers := range []int{32, 64, 128} {
			to := "transfers-" + strconv.Itoa(transfers)
			if err := s.MakeBucket(ctx, to); err != nil {
				return err
			}
			usage, err := measure.Run(b.rcloneCopy(ctx, s, tenth, to, transfers))
			if err != nil {
				return err
			}
			tried = append(tried, fmt.Sprintf("%d: %.1f s", transfers, usage.Seconds))
			if best == 0 || usage.Seconds < best {
				best, b.transfers[kind] = usage.Seconds, transfers
			}
		}
		return nil
	})
	b.tuning = append(b.tuning, fmt.Sprintf("%s: `--transfers %d` (a tenth of the objects took with %s)",
		kind, b.transfers[kind], strings.Join(tried, ", ")))
	return err
}

// aboutRclone describes the settings of rclone, with reasons.
func (b *bench) aboutRclone(context.Context) error {
	b.Notes = fmt.Sprintf(`rclone with equal numbers of checkers and transfers, the fastest found: %s.
Always %s: there are no other writers, and the server checks the MD5 of each body. First %s: the bucket is empty.
Then %s: one listing instead of one for each folder. The files were in memory for both tools.
`, strings.Join(b.tuning, "; "), code(rcloneBoth), code(rcloneNew), code(rcloneNext))
	return nil
}

func code(settings []string) string { return "`" + strings.Join(settings, " ") + "`" }
