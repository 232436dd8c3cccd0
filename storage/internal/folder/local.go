package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/internal/publicdir"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

// workFolder holds everything that is not an object: files being written, and the lock for conditional writes. It
// equals site.Reserved.
const workFolder = ".followpress"

// lockPollInterval exceeds the duration of most conditional writes.
const lockPollInterval = 5 * time.Millisecond

// leftoverAge is the age from which a file in workFolder is a leftover of a killed process. No write takes as long.
const leftoverAge = time.Hour

// Variables for tests, because only a power failure would reveal a missing sync.
var (
	// SyncFile makes a file durable.
	SyncFile = (*os.File).Sync
	// SyncFileSystem makes a file system durable.
	SyncFileSystem = syncAround
)

// A Local is a bucket in a local folder, with the semantics of S3 but without headers. ETags are MD5s. The folder may
// be a symbolic link and contain links. Links to folders are followed. Read follows links to files, but Put replaces
// and Delete removes the link itself.
type Local struct {
	*Folder
	NoSync  bool       // makes Sync a no-op; must not change during use
	writing sync.Mutex // held together with the lock file
}

// OpenLocal returns the bucket in a folder, which need not exist yet.
func OpenLocal(path string) *Local {
	return &Local{Folder: At(path)}
}

// Pinned returns the bucket in the folder that the path resolves to now, so that all writes of a run go there even if
// a link changes. It fails if the path is a dangling link.
func (l *Local) Pinned() (*Local, error) {
	real, err := filepath.EvalSymlinks(l.path)
	if IsAbsent(err) {
		if _, err := os.Lstat(l.path); err == nil {
			return nil, fmt.Errorf("%s is a link to a missing folder; is a disk not mounted?", l.path)
		}
		return l, nil // Put creates it
	} else if err != nil {
		return nil, fmt.Errorf("follow links: %w", err)
	}
	pinned := OpenLocal(real)
	pinned.NoSync = l.NoSync
	return pinned, nil
}

// Sync makes all earlier writes durable. Until then, a power failure may undo any of them in any order; the root is
// always either the old or the new one.
func (l *Local) Sync(context.Context) error {
	if l.NoSync {
		return nil
	}
	folder, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if err := errors.Join(SyncFileSystem(folder), folder.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", l.path, err)
	}
	return nil
}

// Now returns the time of this machine in whole seconds, as servers do. File times lag by some milliseconds.
func (l *Local) Now() time.Time { return time.Now().Truncate(time.Second) }

// Requests returns nil: access to a folder costs nothing.
func (l *Local) Requests() map[object.Request]int { return nil }

// Put replaces a file atomically and returns its ETag. It returns ErrCondition if the condition does not hold, and
// ErrDamaged if the body differs from its digest.
func (l *Local) Put(ctx context.Context, o object.Object, condition object.Condition) (etag string, err error) {
	if err := o.Check(); err != nil {
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
	if err := ctx.Err(); err != nil { // the process may have been suspended while it waited
		return "", fmt.Errorf("put %s: %w", o.Key, err)
	}
	if condition != object.Always {
		body, _, err := l.read(o.Key)
		if err != nil && !errors.Is(err, object.ErrNotFound) {
			return "", err
		}
		absent := err != nil
		if absent != (condition == object.IfAbsent) || !absent && site.Sum(body).String() != string(condition) {
			return "", fmt.Errorf("put %s: %w", o.Key, object.ErrCondition)
		}
	}
	return o.MD5.String(), l.replace(o.Key, written)
}

func (l *Local) write(o object.Object) (written string, err error) {
	work := filepath.Join(l.path, workFolder)
	file, err := os.CreateTemp(work, "")
	if errors.Is(err, fs.ErrNotExist) {
		if err = publicdir.Make(afero.NewOsFs(), work); err == nil {
			file, err = os.CreateTemp(work, "")
		}
	}
	if err != nil {
		return "", fmt.Errorf("put %s: %w", o.Key, err)
	}
	_, err = file.Write(o.Body)
	if o.Key == site.RootKey && !l.NoSync && err == nil {
		err = SyncFile(file) // otherwise the rename could become durable before the content
	}
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return "", fmt.Errorf("put %s: %w", o.Key, errors.Join(err, os.Remove(file.Name())))
	}
	return file.Name(), nil
}

// replace moves a file from write to its key. The caller must hold the lock, because another process may be between
// checking a condition and replacing the file.
func (l *Local) replace(key site.Key, written string) error {
	name := l.name(key)
	err := os.Rename(written, name)
	if errors.Is(err, fs.ErrNotExist) { // no folder yet
		if err = publicdir.Make(afero.NewOsFs(), filepath.Dir(name)); err == nil {
			err = os.Rename(written, name)
		}
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}

// lock excludes other writers until unlock is called or the process ends.
func (l *Local) lock(ctx context.Context) (unlock func() error, err error) {
	l.writing.Lock() // only one goroutine at a time may use the file lock
	defer func() {
		if err != nil {
			l.writing.Unlock()
		}
	}()
	name := filepath.Join(l.path, workFolder, "lock")
	if err := publicdir.Make(afero.NewOsFs(), filepath.Dir(name)); err != nil {
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
		case <-time.After(lockPollInterval):
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("another process on this machine holds the lock of the folder: %w", ctx.Err()), file.Close())
		}
	}
}

// Delete removes files, and folders that become empty. Missing files are not errors.
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
	if _, err := os.Stat(l.path); IsAbsent(err) {
		return nil // taking the lock would create it
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := ctx.Err(); err != nil {
		return err
	}
	name := l.name(key)
	if err := os.Remove(name); err != nil && !IsAbsent(err) {
		return err
	}
	for dir := filepath.Dir(name); dir != filepath.Clean(l.path); dir = filepath.Dir(dir) {
		if unix.Rmdir(dir) != nil { // not empty, already removed, or a link (os.Remove would remove the link)
			break
		}
	}
	return nil
}

// CleanUp removes leftovers of killed processes from the work folder if they are older than an hour.
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

// Create creates the folder if it does not exist, and reports whether it did.
func (l *Local) Create(context.Context) (created bool, err error) {
	if _, err := os.Stat(l.path); err == nil {
		return false, nil
	}
	if err := publicdir.Make(afero.NewOsFs(), l.path); err != nil {
		return false, fmt.Errorf("make the folder: %w", err)
	}
	return true, nil
}

var errWebServer = fmt.Errorf("%w: a folder has no such rules; configure the web server", object.ErrUnsupported)

// AllowRead returns ErrUnsupported: a folder has no policy.
func (l *Local) AllowRead(context.Context, []string) error { return errWebServer }

// AllowOrigins returns ErrUnsupported: a folder has no CORS rules.
func (l *Local) AllowOrigins(context.Context) error { return errWebServer }
