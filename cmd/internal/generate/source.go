package generate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
)

// RenderingGroup is the help title of the flags that need a snapshot.
const RenderingGroup = "How a snapshot is rendered:"

// ChooseSource resolves --snapshot and --site: a flag wins over the other's variable, which may be
// set for another command, and empties the other. Both flags, both variables, and flags of
// RenderingGroup with a site are errors.
func ChooseSource(parsed *kong.Context, snapshot, site *string) error {
	given := command.Given(parsed)
	switch {
	case *snapshot == "" || *site == "":
	case given["site"] == given["snapshot"]:
		return errors.New("--snapshot and --site exclude each other; FOLLOWPRESS_SNAPSHOT and FOLLOWPRESS_SITE set them too")
	case given["site"]:
		*snapshot = ""
	default:
		*site = ""
	}
	for _, element := range parsed.Path {
		if flag := element.Flag; *site != "" && flag != nil && !element.Resolved && flag.Group != nil && flag.Group.Title == RenderingGroup {
			return fmt.Errorf("--%s is for a snapshot; the site %s stays as generated", flag.Name, *site)
		}
	}
	return nil
}

// OpenSnapshot opens a folder, or s3://…, whose requests use ctx until closeFiles.
func OpenSnapshot(ctx context.Context, location string, server storage.S3Options) (_ afero.Fs, closeFiles func() error, err error) {
	if !strings.HasPrefix(location, "s3://") {
		if err := noSnapshot(location); err != nil {
			return nil, nil, err
		}
		folder, err := snapshot.Open(location)
		if err != nil {
			return nil, nil, err
		}
		return folder, folder.Close, nil
	}
	at, err := storage.ParseLocation(location)
	if err != nil {
		return nil, nil, err
	}
	files, err := storage.OpenFiles(ctx, at, server)
	if err != nil {
		return nil, nil, err
	}
	return files, func() error { return nil }, nil
}

// noSnapshot returns an error for a location that is certainly not a snapshot, with the flag that takes
// it. Otherwise it returns nil, and reading reports the error.
func noSnapshot(location string) error {
	holds := func(name string) bool {
		_, err := os.Stat(filepath.Join(location, name))
		return err == nil
	}
	info, err := os.Stat(location)
	switch {
	case storage.IsWeb(location):
		return fmt.Errorf("%s is a URL; a snapshot is a folder, or s3://BUCKET/PREFIX", location)
	case err != nil:
		return nil //nolint:nilerr // reading reports it
	case info.Mode().IsRegular() && strings.HasSuffix(location, ".tar"):
		return fmt.Errorf("%s is a file, and a snapshot is a folder; for a generated site use --site %[1]s (publish, preview, serve)", location)
	case info.Mode().IsRegular():
		return fmt.Errorf("%s is a file, and a snapshot is a folder; name the folder with meta.json and the tables", location)
	case holds(string(site.RootKey)) && !holds("meta.json"):
		return fmt.Errorf("%s is a site, not a snapshot; use --site %[1]s (publish, preview, serve)", location)
	}
	return nil
}
