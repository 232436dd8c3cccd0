package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
)

// List gives the files whose keys begin with prefix and come after a key, in the order
// of keys. It reads them all for their digests. Links are followed, as Read does.
func (l *Local) List(ctx context.Context, prefix, after site.Key, found func(Info) error) error {
	w := walk{l, string(prefix), string(after), found}
	if err := w.folder(ctx, ""); err != nil {
		return fmt.Errorf("list %s: %w", l.path, err)
	}
	return nil
}

// A walk goes through a bucket in the order of keys. That of folders is another one:
// "a-b" comes before "a/b", though "a" comes before "a-b".
type walk struct {
	bucket        *Local
	prefix, after string
	found         func(Info) error
}

// folder lists what is below a key that is empty or ends in a slash.
func (w *walk) folder(ctx context.Context, below string) error {
	entries, err := os.ReadDir(w.bucket.name(site.Key(below)))
	if isAbsent(err) { // gone meanwhile, or no bucket yet
		return nil
	} else if err != nil {
		return err
	}
	keys := make([]string, 0, len(entries))
	for _, entry := range entries {
		key := below + entry.Name()
		kind, err := w.kind(key, entry)
		switch {
		case err != nil:
			return err
		case kind.IsDir() && key != workFolder:
			keys = append(keys, key+"/")
		case kind.IsRegular():
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		if strings.HasSuffix(key, "/") {
			if w.mayHold(key) {
				err = w.folder(ctx, key)
			}
		} else if strings.HasPrefix(key, w.prefix) && key > w.after {
			err = w.file(site.Key(key))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayHold reports whether a folder may have keys that were asked for.
func (w *walk) mayHold(folder string) bool {
	return (strings.HasPrefix(folder, w.prefix) || strings.HasPrefix(w.prefix, folder)) &&
		(folder > w.after || strings.HasPrefix(w.after, folder))
}

// kind is what an entry is, or what it links to. Other entries are no objects.
func (w *walk) kind(key string, entry fs.DirEntry) (fs.FileMode, error) {
	if entry.Type() != fs.ModeSymlink {
		return entry.Type(), nil
	}
	name := w.bucket.name(site.Key(key))
	info, err := os.Stat(name)
	if isAbsent(err) {
		return fs.ModeIrregular, nil
	} else if err != nil {
		return 0, err
	}
	for above := name; info.IsDir() && above != filepath.Clean(w.bucket.path); {
		above = filepath.Dir(above)
		if around, err := os.Stat(above); err == nil && os.SameFile(info, around) {
			return 0, fmt.Errorf("%s is a link to a folder that it is in: remove it", key)
		}
	}
	return info.Mode().Type(), nil
}

func (w *walk) file(key site.Key) error {
	body, info, err := w.bucket.read(key)
	if errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return w.found(localInfo(key, body, info))
}
