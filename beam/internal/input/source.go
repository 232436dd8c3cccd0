package input

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
)

// A Source is the location of a snapshot. Workers get it as JSON and open it with their own
// credentials.
type Source struct {
	Location string // path of a folder that all workers have, file:///FOLDER or s3://BUCKET/PREFIX
	Endpoint string // for s3://; "" means Amazon S3
	Region   string // for s3://; "" means the environment's
}

// s3 returns the options for the server.
func (s Source) s3() storage.S3Options {
	return storage.S3Options{Endpoint: s.Endpoint, Region: s.Region}
}

// open returns the files of the snapshot. Missing files cause errors on reading.
func (s Source) open(ctx context.Context) (afero.Fs, error) {
	at, err := s.parse()
	if err != nil {
		return nil, err
	}
	if at.Folder == "" {
		return storage.OpenFiles(ctx, at, s.s3())
	}
	return afero.NewBasePathFs(afero.NewOsFs(), at.Folder), nil
}

func (s Source) parse() (storage.Location, error) {
	switch {
	case s.Location == "":
		return storage.Location{}, errors.New("the snapshot has no name; use a folder, or s3://BUCKET/PREFIX")
	case strings.Contains(s.Location, "://"):
		return storage.ParseLocation(s.Location)
	}
	folder, err := filepath.Abs(s.Location)
	return storage.Location{Folder: folder}, err
}

// A file is a file of a table. Workers get it as JSON.
type file struct {
	Name   string
	Number uint32 // index in the table, from 0
	Size   int64
	ETag   string // "" in a folder
}

// filesOf lists the files of a table.
func filesOf(files afero.Fs, t snapshot.Table) ([]file, error) {
	names, err := snapshot.TableFiles(files, t)
	if err != nil {
		return nil, err
	}
	var all []file
	for i, name := range names {
		f := file{Name: name, Number: uint32(i)}
		if f.Size, f.ETag, err = version(files, name); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func version(files afero.Fs, name string) (size int64, etag string, err error) {
	info, err := files.Stat(name)
	if err != nil {
		return 0, "", fmt.Errorf("inspect %s: %w", name, err)
	}
	if stored, ok := info.Sys().(storage.Info); ok {
		etag = stored.ETag
	}
	return info.Size(), etag, nil
}

// check returns an error unless a worker has the same file as the launcher.
func (f file) check(files afero.Fs) error {
	size, etag, err := version(files, f.Name)
	switch {
	case err != nil:
		return err
	case etag != f.ETag:
		return fmt.Errorf("%s was replaced since the run began", f.Name)
	case size != f.Size:
		return fmt.Errorf("%s has %d bytes, but had %d when the run began; it was replaced, or this machine has another folder", f.Name, size, f.Size)
	}
	return nil
}
