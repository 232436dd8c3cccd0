package report

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
)

// isSnapshot reports whether a location is the folder of a snapshot.
func isSnapshot(at string) bool {
	info, err := os.Stat(filepath.Join(at, "meta.json"))
	return err == nil && info.Mode().IsRegular()
}

// checkKinds rejects a snapshot compared to a site, whose flags are unknown.
func (c *Command) checkKinds() error {
	if from := isSnapshot(c.From); from != isSnapshot(c.To) {
		flag, at := "from", c.From
		if !from {
			flag, at = "to", c.To
		}
		return fmt.Errorf("--%s=%s is a snapshot, and the other side is a site; generate a site from the snapshot with the same flags, and compare that", flag, at)
	}
	return nil
}

// open opens a site, or renders a snapshot.
func (c *Command) open(ctx context.Context, at string, progress *command.Progress) (storage.Site, error) {
	if !isSnapshot(at) {
		return command.OpenSite(ctx, at, c.Server())
	}
	folder, err := snapshot.Open(at)
	if err != nil {
		return nil, err
	}
	rendered, _, err := generator.Open(ctx, folder, generator.Options{Config: site.Config{API: site.APIEFP}, Progress: progress})
	if err = errors.Join(err, folder.Close()); err != nil {
		return nil, err
	}
	return rendered, nil
}
