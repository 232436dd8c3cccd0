package folder

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
	"github.com/followpress/followpress/storage/internal/object"
)

// List calls found for each file whose key begins with prefix and is greater than after ("" for all), in key order
// and never concurrently. It reads each file for its ETag, and follows links. It stops at the first error of found,
// and at the first file or folder that it cannot read.
func (l *Local) List(ctx context.Context, prefix, after site.Key, found func(object.Info) error) error {
	w := walk{bucket: l, prefix: string(prefix), after: string(after), found: found, buffer: make([]byte, 32<<10)}
	if err := w.folder(ctx, ""); err != nil {
		return fmt.Errorf("list %s: %w", l.path, err)
	}
	return nil
}

// A walk visits a bucket in key order, which differs from folder order: "a-b" comes before "a/b", although "a" comes
// before "a-b".
type walk struct {
	bucket        *Local
	prefix, after string
	found         func(object.Info) error
	buffer        []byte // for hashing files, which may be large
}

// keys returns the sorted keys in a folder. Folder names, given and returned, end in a slash; the bucket itself is
// "".
func (w *walk) keys(below string) ([]string, error) {
	entries, err := os.ReadDir(w.bucket.name(site.Key(below)))
	switch {
	case IsAbsent(err): // deleted in the meantime, or the bucket does not exist yet
		return nil, nil
	case errors.Is(err, fs.ErrPermission) && below == "lost+found/": // The file system of a disk has it.
		return nil, nil
	case err != nil:
		return nil, advise(err)
	}
	keys := make([]string, 0, len(entries))
	for _, entry := range entries {
		key := below + entry.Name()
		kind, err := w.kind(key, entry)
		switch {
		case errors.Is(err, errLoop), err != nil && w.mayHold(key+"/"):
			return nil, err
		case kind.IsDir() && key != workFolder:
			keys = append(keys, key+"/")
		case kind.IsRegular():
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// folder lists the files below a key, which is empty or ends in a slash.
func (w *walk) folder(ctx context.Context, below string) error {
	keys, err := w.keys(below)
	if err != nil {
		return err
	}
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

// advise says what to do about a file or folder of another user.
func advise(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; let this user read it, or name a folder without it", err)
	}
	return err
}

var errLoop = errors.New("is a link to a folder that contains it")

// mayHold reports whether a folder may contain matching keys.
func (w *walk) mayHold(folder string) bool {
	return (strings.HasPrefix(folder, w.prefix) || strings.HasPrefix(w.prefix, folder)) &&
		(folder > w.after || strings.HasPrefix(w.after, folder))
}

// kind returns the type of an entry; for a link, the type of its target.
func (w *walk) kind(key string, entry fs.DirEntry) (fs.FileMode, error) {
	if entry.Type() != fs.ModeSymlink {
		return entry.Type(), nil
	}
	name := w.bucket.name(site.Key(key))
	info, err := os.Stat(name)
	if IsAbsent(err) {
		return fs.ModeIrregular, nil
	} else if err != nil {
		return fs.ModeIrregular, err
	}
	for above := name; info.IsDir() && above != filepath.Clean(w.bucket.path); {
		above = filepath.Dir(above)
		if around, err := os.Stat(above); err == nil && os.SameFile(info, around) {
			return 0, fmt.Errorf("%s %w; remove it", key, errLoop)
		}
	}
	return info.Mode().Type(), nil
}

func (w *walk) file(key site.Key) error {
	hash := md5.New()
	info, err := w.bucket.use(key, func(file io.Reader, _ int64) error {
		// Hide WriterTo and ReaderFrom, which would allocate a buffer per file.
		_, err := io.CopyBuffer(struct{ io.Writer }{hash}, struct{ io.Reader }{file}, w.buffer)
		if err != nil {
			return fmt.Errorf("read %s: %w", key, err)
		}
		return nil
	})
	if errors.Is(err, object.ErrNotFound) {
		return nil
	} else if err != nil {
		return advise(err)
	}
	return w.found(object.InfoOfFile(key, site.MD5(hash.Sum(nil)), info))
}
