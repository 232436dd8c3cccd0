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

// List calls found with each file whose key begins with prefix and comes after a key ("" for all),
// in the order of keys and never concurrently. It reads each file for its ETag, and follows links.
// It stops at the first error of found and returns it. What cannot be read is left out, and at the
// end the error is an UnreadableError.
func (l *Local) List(ctx context.Context, prefix, after site.Key, found func(object.Info) error) error {
	w := walk{bucket: l, prefix: string(prefix), after: string(after), found: found, buffer: make([]byte, 32<<10)}
	err := w.folder(ctx, "")
	if err == nil && w.unreadable != nil {
		err = w.unreadable
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", l.path, err)
	}
	return nil
}

// An UnreadableError says what a listing has left out because it cannot be read, such as a folder of
// somebody else. Everything else was listed.
type UnreadableError struct {
	Keys []site.Key // those of folders end in a slash
	Errs []error    // the reason for each
}

func (e *UnreadableError) Error() string { return errors.Join(e.Errs...).Error() }

// Unwrap returns the reasons.
func (e *UnreadableError) Unwrap() []error { return e.Errs }

// A walk goes through a bucket in the order of keys. The order of folders differs: "a-b" comes
// before "a/b", although "a" comes before "a-b".
type walk struct {
	bucket        *Local
	prefix, after string
	found         func(object.Info) error
	buffer        []byte           // of files, which may be large
	unreadable    *UnreadableError // nil for nothing
}

func (w *walk) leaveOut(key string, err error) {
	if w.unreadable == nil {
		w.unreadable = &UnreadableError{}
	}
	w.unreadable.Keys, w.unreadable.Errs = append(w.unreadable.Keys, site.Key(key)), append(w.unreadable.Errs, err)
}

// keys returns the keys in a folder, which is empty or ends in a slash, as those that it has do.
func (w *walk) keys(below string) ([]string, error) {
	entries, err := os.ReadDir(w.bucket.name(site.Key(below)))
	switch {
	case IsAbsent(err): // deleted meanwhile, or the bucket does not exist yet
		return nil, nil
	case err != nil && below != "":
		w.leaveOut(below, err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	keys := make([]string, 0, len(entries))
	for _, entry := range entries {
		key := below + entry.Name()
		kind, err := w.kind(key, entry)
		switch {
		case errors.Is(err, errLoop):
			return nil, err
		case err != nil && w.mayHold(key+"/"):
			w.leaveOut(key, err)
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

var errLoop = errors.New("is a link to a folder that contains it")

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
	if IsAbsent(err) {
		return fs.ModeIrregular, nil
	} else if err != nil {
		return fs.ModeIrregular, err
	}
	for above := name; info.IsDir() && above != filepath.Clean(w.bucket.path); {
		above = filepath.Dir(above)
		if around, err := os.Stat(above); err == nil && os.SameFile(info, around) {
			return 0, fmt.Errorf("%s %w: remove it", key, errLoop)
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
	if errors.Is(err, object.ErrNotFound) {
		return nil
	} else if err != nil {
		w.leaveOut(string(key), err)
		return nil
	}
	return w.found(object.InfoOfFile(key, site.MD5(hash.Sum(nil)), info))
}
