package storage

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
)

// List calls found with each file whose key begins with prefix and comes after a key ("" for all),
// in the order of keys and never concurrently. It reads each file for its ETag, and follows links.
// It stops at the first error of found and returns it.
func (l *Local) List(ctx context.Context, prefix, after site.Key, found func(Info) error) error {
	w := walk{l, string(prefix), string(after), found, make([]byte, 32<<10)}
	if err := w.folder(ctx, ""); err != nil {
		return fmt.Errorf("list %s: %w", l.path, err)
	}
	return nil
}

// A walk goes through a bucket in the order of keys. The order of folders differs: "a-b" comes
// before "a/b", although "a" comes before "a-b".
type walk struct {
	bucket        *Local
	prefix, after string
	found         func(Info) error
	buffer        []byte // of files, which may be large
}

// folder lists the files below a key, which is empty or ends in a slash.
func (w *walk) folder(ctx context.Context, below string) error {
	entries, err := os.ReadDir(w.bucket.name(site.Key(below)))
	if isAbsent(err) { // deleted meanwhile, or the bucket does not exist yet
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

// mayHold reports whether a folder may contain matching keys.
func (w *walk) mayHold(folder string) bool {
	return (strings.HasPrefix(folder, w.prefix) || strings.HasPrefix(w.prefix, folder)) &&
		(folder > w.after || strings.HasPrefix(w.after, folder))
}

// kind returns the type of an entry, or of the target of a link.
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
			return 0, fmt.Errorf("%s is a link to a folder that contains it: remove it", key)
		}
	}
	return info.Mode().Type(), nil
}

func (w *walk) file(key site.Key) error {
	hash := md5.New()
	info, err := w.bucket.use(key, func(file io.Reader, _ int64) error {
		// Without their other methods, which would make a buffer for each file.
		_, err := io.CopyBuffer(struct{ io.Writer }{hash}, struct{ io.Reader }{file}, w.buffer)
		if err != nil {
			return fmt.Errorf("read %s: %w", key, err)
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return w.found(localInfo(key, site.MD5(hash.Sum(nil)), info))
}
