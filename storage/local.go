package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/site"
)

// workFolder is where a local bucket keeps what is not an object: files that are
// being written, and the lock of conditional writes.
const workFolder = ".followpress"

// betweenTries is longer than a conditional write takes, mostly.
const betweenTries = 5 * time.Millisecond

// leftoverAge is the age at which a file of the work folder was left by a process
// that was killed: no write takes as long.
const leftoverAge = time.Hour

// A Local is a bucket in a folder of this machine: the same semantics as S3, without
// headers, which a folder cannot keep. An ETag is the MD5 of the file.
type Local struct {
	*Folder
	path    string
	writing sync.Mutex // held with the lock of the work folder
}

// OpenLocal makes a bucket of a folder, which need not exist yet.
func OpenLocal(path string) *Local {
	return &Local{Folder: NewFolder(afero.NewBasePathFs(afero.NewOsFs(), path)), path: path}
}

// Now is the time of this machine in whole seconds, as servers tell it: the times of
// files come from a clock that is some milliseconds behind.
func (l *Local) Now() time.Time { return time.Now().Truncate(time.Second) }

// Requests are none: nobody asks a price for them.
func (l *Local) Requests() map[Request]int { return nil }

func localInfo(key site.Key, body []byte, info fs.FileInfo) Info {
	return Info{Key: key, Size: info.Size(), ETag: site.Sum(body).String(), Modified: info.ModTime()}
}

// Put replaces a file in one step if the condition holds, ErrCondition if not.
func (l *Local) Put(ctx context.Context, o Object, condition Condition) (etag string, err error) {
	if err := o.check(); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("put %s: %w", o.Key, err)
	}
	written, err := l.write(o)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(written))
		}
	}()
	unlock, err := l.lock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if condition != Always {
		body, _, err := l.read(o.Key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return "", err
		}
		absent := err != nil
		if absent != (condition == IfAbsent) || !absent && site.Sum(body).String() != string(condition) {
			return "", fmt.Errorf("put %s: %w", o.Key, ErrCondition)
		}
	}
	return o.MD5.String(), l.replace(o.Key, written)
}

// write writes a file into the work folder.
func (l *Local) write(o Object) (written string, err error) {
	work := filepath.Join(l.path, workFolder)
	file, err := os.CreateTemp(work, "")
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(work, 0o755); err == nil {
			file, err = os.CreateTemp(work, "")
		}
	}
	if err != nil {
		return "", fmt.Errorf("put %s: %w", o.Key, err)
	}
	_, err = file.Write(o.Body)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return "", fmt.Errorf("put %s: %w", o.Key, errors.Join(err, os.Remove(file.Name())))
	}
	return file.Name(), nil
}

// replace puts a file that was written in the place of another. The lock must be held:
// else it could come between the look and the act of a conditional write.
func (l *Local) replace(key site.Key, written string) error {
	name := l.name(key)
	err := os.Rename(written, name)
	if errors.Is(err, fs.ErrNotExist) { // no folder yet
		if err = os.MkdirAll(filepath.Dir(name), 0o755); err == nil {
			err = os.Rename(written, name)
		}
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}

// lock excludes the writes of others, until the process ends or unlock is called.
func (l *Local) lock(ctx context.Context) (unlock func() error, err error) {
	l.writing.Lock() // of this process only one has to ask the system
	defer func() {
		if err != nil {
			l.writing.Unlock()
		}
	}()
	name := filepath.Join(l.path, workFolder, "lock")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, fmt.Errorf("lock the folder: %w", err)
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the folder: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() error {
				defer l.writing.Unlock()
				return file.Close()
			}, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock the folder: %w", err), file.Close())
		}
		select {
		case <-time.After(betweenTries):
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock the folder: %w", ctx.Err()), file.Close())
		}
	}
}

// Delete removes files, whether they are there or not, and folders that become empty.
func (l *Local) Delete(ctx context.Context, keys []site.Key) error {
	for _, key := range keys {
		if err := l.delete(ctx, key); err != nil {
			return fmt.Errorf("delete %s: %w", key, err)
		}
	}
	return nil
}

func (l *Local) delete(ctx context.Context, key site.Key) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := os.Stat(l.path); isAbsent(err) {
		return nil // the lock would make it
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	name := l.name(key)
	if err := os.Remove(name); err != nil && !isAbsent(err) {
		return err
	}
	for dir := filepath.Dir(name); dir != filepath.Clean(l.path); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil { // not empty, or gone
			break
		}
	}
	return nil
}

// List walks over the files whose keys begin with prefix and come after a key. It
// reads them all for their digests.
func (l *Local) List(ctx context.Context, prefix, after site.Key, found func(Info) error) error {
	// Whole folders of the prefix save a walk through everything else.
	top := filepath.Join(l.path, filepath.FromSlash(string(prefix[:strings.LastIndex(string(prefix), "/")+1])))
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone meanwhile, or no bucket yet
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir() && filepath.Dir(name) == filepath.Clean(l.path) && entry.Name() == workFolder:
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		relative, err := filepath.Rel(l.path, name)
		if err != nil {
			return err
		}
		key := site.Key(filepath.ToSlash(relative))
		if !strings.HasPrefix(string(key), string(prefix)) || key <= after {
			return nil
		}
		body, info, err := l.read(key)
		if errors.Is(err, ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		return found(localInfo(key, body, info))
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", l.path, err)
	}
	return nil
}

// CleanUp removes what killed processes left in the work folder.
func (l *Local) CleanUp() error {
	work := filepath.Join(l.path, workFolder)
	entries, err := os.ReadDir(work)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clean up %s: %w", work, err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && entry.Name() != "lock" && time.Since(info.ModTime()) > leftoverAge {
			err = os.Remove(filepath.Join(work, entry.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clean up %s: %w", work, err)
		}
	}
	return nil
}

func (l *Local) name(key site.Key) string {
	return filepath.Join(l.path, filepath.FromSlash(string(key)))
}
