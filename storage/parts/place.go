package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/publicdir"
	"github.com/followpress/followpress/internal/regular"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
	"github.com/followpress/followpress/storage/internal/s3"
)

// A folder is a store in a local folder.
type folder string

func (f folder) String() string { return string(f) }

// leftover begins the names of files being written. Neither "cat part-*" nor a reader takes them for parts.
const leftover = ".part-"

func (f folder) isLeftover(name string) bool { return strings.HasPrefix(name, leftover) }

func (f folder) list(_ context.Context, found func(name string) error) error {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("list the parts: %w", err)
	}
	for _, entry := range entries {
		if err := found(entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (f folder) get(_ context.Context, name string) ([]byte, error) {
	body, err := os.ReadFile(filepath.Join(string(f), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, object.ErrNotFound
	} else if err != nil {
		return nil, fmt.Errorf("get %s: %w", name, err)
	}
	return body, nil
}

// read opens the file for each call, because a site may have tens of thousands.
func (f folder) read(_ context.Context, name string, want *object.Version, offset int64, into []byte) (n int64, is object.Version, err error) {
	file, err := regular.Open(afero.NewOsFs(), filepath.Join(string(f), name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, is, object.ErrNotFound
	} else if err != nil {
		return 0, is, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return 0, is, err
	}
	is = object.Version{ID: info.ModTime().Format(time.RFC3339Nano), Size: info.Size()}
	if want != nil && is != *want {
		return 0, is, errReplaced
	}
	n, err = object.Fill(io.NewSectionReader(file, offset, is.Size-offset), into)
	if err == nil && n < min(int64(len(into)), is.Size-offset) {
		err = errReplaced
	}
	return n, is, err
}

var errReplaced = fmt.Errorf("replaced during the read: %w", ErrBroken)

// put writes a temporary file and renames it, so that a part is complete or missing.
func (f folder) put(ctx context.Context, name string, body []byte) (err error) {
	if err := publicdir.Make(afero.NewOsFs(), string(f)); err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	file, err := os.CreateTemp(string(f), leftover+"*")
	if err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	_, err = file.Write(body)
	if err == nil {
		err = file.Sync() // otherwise the rename could become durable before the content
	}
	err = errors.Join(err, file.Chmod(0o644), file.Close(), ctx.Err())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(string(f), name))
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", name, errors.Join(err, ignoreAbsent(os.Remove(file.Name()))))
	}
	return nil
}

func (f folder) remove(_ context.Context, names []string) error {
	for _, name := range names {
		if err := ignoreAbsent(os.Remove(filepath.Join(string(f), name))); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

func (f folder) sync() error {
	folder, err := os.Open(string(f))
	if err != nil {
		return ignoreAbsent(err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// A bucket is a store in a bucket, whose own methods take keys.
type bucket struct{ *s3.Bucket }

// isLeftover reports false, because objects appear only when complete.
func (b bucket) isLeftover(string) bool { return false }

func (b bucket) list(ctx context.Context, found func(name string) error) error {
	return b.List(ctx, "", "", func(info object.Info) error { return found(string(info.Key)) })
}

func (b bucket) get(ctx context.Context, name string) ([]byte, error) {
	return b.Get(ctx, site.Key(name))
}

func (b bucket) read(ctx context.Context, name string, want *object.Version, offset int64, into []byte) (n int64, is object.Version, err error) {
	n, is, err = b.FillRange(ctx, site.Key(name), offset, into)
	switch {
	case want != nil && (errors.Is(err, s3.ErrRange) || err == nil && is != *want): // the part had this range before
		err = errReplaced
	case errors.Is(err, s3.ErrRange):
		err = fmt.Errorf("%w: %w", err, ErrBroken)
	}
	return n, is, err
}

func (b bucket) put(ctx context.Context, name string, body []byte) error {
	return b.PutLarge(ctx, site.Key(name), "application/x-tar", body)
}

func (b bucket) remove(ctx context.Context, names []string) error {
	keys := make([]site.Key, len(names))
	for i, name := range names {
		keys[i] = site.Key(name)
	}
	return b.Delete(ctx, keys)
}

func (b bucket) sync() error { return nil }
