package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

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
// headers, which a folder cannot keep. An ETag is the MD5 of the file. The folder may
// be a symbolic link, and so may what is in it: links to folders are followed. A link to
// a file is read through; Put replaces it and Delete removes it, not what it leads to.
type Local struct {
	*Folder
	NoSync  bool       // leave it to the system when what was put becomes durable
	writing sync.Mutex // held with the lock of the work folder
}

// OpenLocal makes a bucket of a folder, which need not exist yet.
func OpenLocal(path string) *Local {
	return &Local{Folder: folderAt(path)}
}

// Pinned is the bucket in the folder that the path leads to now, whatever a link on the
// way leads to later: for who writes much that belongs together.
func (l *Local) Pinned() (*Local, error) {
	real, err := filepath.EvalSymlinks(l.path)
	if isAbsent(err) {
		if _, err := os.Lstat(l.path); err == nil {
			return nil, fmt.Errorf("%s is a link to a folder that is not there: is a disk not mounted?", l.path)
		}
		return l, nil // it will be made
	} else if err != nil {
		return nil, fmt.Errorf("follow links: %w", err)
	}
	pinned := OpenLocal(real)
	pinned.NoSync = l.NoSync
	return pinned, nil
}

// Sync makes durable what was put and deleted. Until then a power failure may undo any of
// it, in any order, but that the root is put, which is whole or the one before.
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
	if err := errors.Join(syncAround(folder), folder.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", l.path, err)
	}
	return nil
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
	if err := ctx.Err(); err != nil { // it may have ended while this process was stopped
		return "", fmt.Errorf("put %s: %w", o.Key, err)
	}
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
	if o.Key == site.RootKey && !l.NoSync && err == nil {
		err = file.Sync() // its new name may become durable before its bytes do
	}
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
	if err := ctx.Err(); err != nil {
		return err
	}
	name := l.name(key)
	if err := os.Remove(name); err != nil && !isAbsent(err) {
		return err
	}
	for dir := filepath.Dir(name); dir != filepath.Clean(l.path); dir = filepath.Dir(dir) {
		if unix.Rmdir(dir) != nil { // not empty, or gone, or a link, which os.Remove would remove
			break
		}
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
