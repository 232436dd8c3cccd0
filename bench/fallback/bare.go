package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/followpress/followpress/bench/rig"
)

// bare compares details from a folder with a net/http handler that only sends as many bytes: the
// limit for any handler. Warm answers come from the cache. With a cache of one byte, every request
// reads a file, and so does the bare handler.
func (b *bench) bare(ctx context.Context) error {
	for _, c := range []struct {
		name, target, p99 string
		ours, bare        []string
	}{
		{"details of %d lists from a folder, warm / a bare handler with one body", "≥ 0.92", "≤ 1.3", nil,
			[]string{"--body", filepath.Join(b.Path("site"), "api/v1/lists", b.lists[0], "details")}},
		{"details of %d lists from a folder, cache off / a bare handler that reads the file", "≥ 0.75", "", []string{"--cache-bytes=1"},
			[]string{"--site", b.Path("site")}},
	} {
		lists := b.lists[:min(some, len(b.lists))]
		ours, err := b.listen(ctx, "fallback", append(c.ours, "--site", b.Path("site")))
		if err != nil {
			return err
		}
		defer ours.Stop()
		bare, err := b.listen(ctx, "bare", c.bare)
		if err != nil {
			return err
		}
		defer bare.Stop()
		if err := b.CompareLoads(ctx, fmt.Sprintf(c.name, len(lists)), rig.Details(lists), ours.Addr, bare.Addr, c.target, c.p99); err != nil {
			return err
		}
	}
	return nil
}

// listen starts a built server.
func (b *bench) listen(ctx context.Context, name string, args []string) (*rig.Process, error) {
	return rig.Start(ctx, func(addr string) (*exec.Cmd, error) {
		return exec.CommandContext(ctx, b.Built(name), append(args, "--addr", addr)...), nil
	})
}
