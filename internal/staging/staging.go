// Package staging replaces a folder or a file in one step by a new one written next to it.
package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/afero"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/internal/publicdir"
)

// Options of a Staging.
type Options struct {
	Target      string        // absolute path without links (Resolve) of the file or folder to replace
	Folder      bool          // the target is a folder, not a file
	What        string        // one word for messages, such as site or snapshot
	Suffix      string        // suffix of the work folder, .{name}{suffix}
	NoSync      bool          // do not sync the new target to disk
	CleanUpTime time.Duration // how long a cancelled run may clean up

	// What messages advise if the folder that holds the target, or the target itself, does not let
	// folders be moved: "name …".
	IfNotMovable, IfNotReplaceable string
}

// A Staging is a work folder next to a target. The new target is written there and then replaces
// the old one in one step. It contains:
//
//	lock   locked by the running process; the kernel unlocks it when the process ends
//	next   the new target; after the replacement, the old one
//	temp   a temporary file, until its name is removed
//	last   the old target, briefly, on file systems that cannot exchange two folders
//
// A killed run leaves the folder behind; the next run cleans up. Only one goroutine may use a
// Staging.
type Staging struct {
	Options
	dir            string
	existingParent string // the innermost folder above the target that existed before the run
	lock           *os.File
}

// The system calls that replace a target and make that durable. Tests replace them.
var swap, move, syncPath = exchange, rename, syncOne

// ErrBusy means that another run writes to the same output.
var ErrBusy = errors.New("another run is writing")

// ErrLeftBehind means that a cancelled run had no time to clean up. The next run does.
var ErrLeftBehind = errors.New("the next run removes it")

// Open locks the target, prepares the work folder, and cleans up after a killed run. An error wraps
// ErrBusy if another run has the lock. Close must be called after a success.
func Open(ctx context.Context, o Options) (*Staging, error) {
	s := &Staging{Options: o, dir: filepath.Join(filepath.Dir(o.Target), "."+filepath.Base(o.Target)+o.Suffix)}
	if err := s.acquire(ctx); err != nil {
		return nil, fmt.Errorf("prepare to write %s: %w", s.Target, err)
	}
	if err := s.recover(ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

func (s *Staging) acquire(ctx context.Context) error {
	parent := filepath.Dir(s.Target)
	s.existingParent = parent
	for !isFolder(s.existingParent) && s.existingParent != filepath.Dir(s.existingParent) {
		s.existingParent = filepath.Dir(s.existingParent)
	}
	if err := publicdir.Make(afero.NewOsFs(), parent); err != nil {
		return err
	}
	// Another run may end right now and remove the folder: then try again.
	for ctx.Err() == nil {
		err := os.Mkdir(s.dir, 0o755)
		switch {
		case errors.Is(err, fs.ErrExist) && !isFolder(s.dir) && Exists(s.dir):
			return fmt.Errorf("%s, the work folder for the new %s, is not a folder: remove it", s.dir, s.What)
		case err != nil && !errors.Is(err, fs.ErrExist):
			return err
		}
		// Do not follow a link: its target may be anywhere, or not exist.
		lock, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o644)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return errors.Join(err, s.removeDir())
		}
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = ErrBusy
			}
			return errors.Join(err, lock.Close())
		}
		held, errHeld := lock.Stat()
		named, errNamed := os.Stat(lock.Name())
		if errHeld == nil && errNamed == nil && os.SameFile(held, named) {
			s.lock = lock
			return nil
		}
		// It was removed between opening and locking, so this lock excludes nobody.
		if err := lock.Close(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *Staging) recover(ctx context.Context) error {
	if _, err := os.Lstat(s.Target); errors.Is(err, fs.ErrNotExist) && s.isTarget(s.last()) {
		if err := os.Rename(s.last(), s.Target); err != nil {
			return fmt.Errorf("restore the old %s: %w", s.What, err)
		}
	}
	return errors.Join(removeTree(ctx, s.Next()), removeTree(ctx, s.last()), s.removeProbe(), os.RemoveAll(s.temp()))
}

// isTarget reports whether a path in the work folder may be an old target: something of the same kind, and not what
// probeReplace makes there.
func (s *Staging) isTarget(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.IsDir() != s.Folder || !s.Folder && !info.Mode().IsRegular() {
		return false
	}
	return !Exists(filepath.Join(path, probeEntry))
}

// probeEntry is in the folder that probeReplace tries to replace. No target has an entry of this name.
const probeEntry = ".followpress-probe"

// CheckReplaceable finds out before the work whether Commit can replace the target, which stays in
// its place.
func (s *Staging) CheckReplaceable() error {
	if s.Folder {
		if err := s.probeMove(); err != nil && !errors.Is(err, unix.EXDEV) {
			return fmt.Errorf("prepare to write %s: %w", s.Target, err)
		} else if err != nil {
			return fmt.Errorf("a new folder cannot be moved to the output %s: %s: %w", s.Target, s.IfNotMovable, err)
		}
	}
	if !Exists(s.Target) {
		return nil
	}
	mounted, err := isMountPoint(s.Target)
	if err != nil {
		return fmt.Errorf("inspect the output: %w", err)
	}
	if mounted && s.Folder {
		return fmt.Errorf("%s is a mount point and cannot be replaced in one step: name a folder in it, such as %s",
			s.Target, filepath.Join(s.Target, s.What))
	} else if mounted {
		return fmt.Errorf("%s is a mount point and cannot be replaced in one step: mount its folder instead of the file", s.Target)
	}
	if err := unix.Access(s.Target, unix.W_OK); err != nil {
		return fmt.Errorf("the output %s cannot be written: %w", s.Target, err)
	}
	if !s.Folder {
		return nil
	}
	err = s.probeReplace()
	if errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("the output %s cannot be replaced in one step, which overlayfs cannot do with a folder that came with an image: %s: %w",
			s.Target, s.IfNotReplaceable, err)
	} else if err != nil {
		return fmt.Errorf("the output %s cannot be replaced: %w", s.Target, err)
	}
	return nil
}

// probeMove tries to move a folder from the work folder to its parent. It removes the folder.
func (s *Staging) probeMove() error {
	if err := os.Mkdir(s.Next(), 0o755); err != nil {
		return err
	}
	if err := rename(s.Next(), s.probe()); err != nil {
		return errors.Join(err, os.Remove(s.Next()))
	}
	return s.removeProbe()
}

// probeReplace tries to move the target onto a nonempty folder. That always fails (rename(2)); the
// error shows whether the target can be moved at all.
func (s *Staging) probeReplace() error {
	entries, err := os.Open(s.Target)
	if err != nil {
		return err
	}
	_, err = entries.Readdirnames(1)
	if err := entries.Close(); err != nil {
		return err
	}
	if errors.Is(err, io.EOF) {
		return nil // an empty folder is replaced without being moved
	} else if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.last(), probeEntry), 0o755); err != nil {
		return err
	}
	err = rename(s.Target, s.last())
	if err == nil { // an unusual file system; after a kill here, recover undoes it
		return rename(s.last(), s.Target)
	}
	if !isImmovable(err) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(s.last()))
}

// isImmovable reports whether an error of rename means that the source cannot be moved. EPERM means
// a sticky or immutable folder. Other errors may be a file system's code for a nonempty folder;
// Commit will find out.
func isImmovable(err error) bool {
	for _, reason := range []unix.Errno{unix.EXDEV, unix.EBUSY, unix.EACCES, unix.EPERM, unix.EROFS} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// Next returns the path of the new target. Nothing is there yet.
func (s *Staging) Next() string { return filepath.Join(s.dir, "next") }

// TempFile opens an empty file for the time of the run, on the disk of the target. It has no name, so
// that a killed run leaves nothing behind.
func (s *Staging) TempFile() (*os.File, error) {
	file, err := os.OpenFile(s.temp(), os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(s.temp()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (s *Staging) last() string  { return filepath.Join(s.dir, "last") }
func (s *Staging) temp() string  { return filepath.Join(s.dir, "temp") }
func (s *Staging) probe() string { return s.dir + "-probe" }

func (s *Staging) removeProbe() error {
	if err := os.Remove(s.probe()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncNext gives the new target the permissions of the old one and makes it durable. Otherwise a
// power failure after the replacement could leave empty files.
func (s *Staging) SyncNext() error {
	if info, err := os.Stat(s.Target); err == nil {
		if err := os.Chmod(s.Next(), info.Mode()); err != nil {
			return fmt.Errorf("install the new %s: %w", s.What, err)
		}
	}
	if s.NoSync {
		return nil
	}
	var err error
	if s.Folder {
		err = syncTree(s.dir)
	} else {
		err = syncOne(s.Next())
	}
	if err != nil {
		return fmt.Errorf("sync the new %s to disk (--no-sync skips this): %w", s.What, err)
	}
	return nil
}

// Commit replaces the target by Next in one step. Before it, SyncNext must have been called.
func (s *Staging) Commit() error {
	if err := s.replace(); err != nil {
		return fmt.Errorf("install the new %s: %w", s.What, err)
	}
	if s.NoSync {
		return nil
	}
	// The new names must be durable before the old target is removed, including those of folders
	// that the run created.
	for dir := filepath.Dir(s.Target); ; dir = filepath.Dir(dir) {
		if err := syncPath(dir); err != nil {
			return fmt.Errorf("the new %s is live, but may not be after a power failure: %w", s.What, err)
		}
		if dir == s.existingParent || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (s *Staging) replace() error {
	err := move(s.Next(), s.Target) // works for a file, and for a folder if the target is absent or empty
	if err == nil {
		return nil
	}
	if err := swap(s.Next(), s.Target); err == nil {
		return nil
	} else if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	// This file system cannot exchange. After a kill between these two renames, the next run
	// restores the old target.
	if err := move(s.Target, s.last()); err != nil {
		return err
	}
	if err := move(s.Next(), s.Target); err != nil {
		return errors.Join(err, move(s.last(), s.Target))
	}
	return nil
}

// Close removes the work folder, with the old target if that was replaced. If
// ctx has ended, it takes at most CleanUpTime and leaves the rest to the next run, and the error wraps ErrLeftBehind.
func (s *Staging) Close(ctx context.Context) error {
	cleaning, stop := withGrace(ctx, s.CleanUpTime)
	defer stop()
	err := errors.Join(removeTree(cleaning, s.Next()), removeTree(cleaning, s.last()))
	if cleaning.Err() != nil {
		return errors.Join(fmt.Errorf("%s is left behind: %w (%w)", s.dir, ErrLeftBehind, context.Canceled), s.lock.Close())
	}
	if err = errors.Join(err, os.Remove(s.lock.Name()), s.lock.Close()); err == nil {
		err = s.removeDir()
	}
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

// withGrace returns a context that ends some time after its parent.
func withGrace(parent context.Context, by time.Duration) (ctx context.Context, stop func()) {
	if parent.Err() != nil {
		return context.WithTimeout(context.WithoutCancel(parent), by)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	release := context.AfterFunc(parent, func() {
		select {
		case <-time.After(by):
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { release(); cancel() }
}

// removeDir removes the work folder, unless the next run already uses it.
func (s *Staging) removeDir() error {
	err := os.Remove(s.dir)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Resolve makes an output path absolute and follows links, so that the target of a link is
// replaced instead of the link.
func Resolve(out string) (string, error) {
	path, err := filepath.Abs(out)
	if err != nil {
		return "", fmt.Errorf("output path: %w", err)
	}
	// Follow links in the part that exists; the run creates the rest.
	existing := path
	for !Exists(existing) && existing != filepath.Dir(existing) {
		existing = filepath.Dir(existing)
	}
	real, err := filepath.EvalSymlinks(existing)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("output path: %s is a link to nowhere: mount or make what it points to, or remove it", existing)
	} else if err != nil {
		return "", fmt.Errorf("output path: %w", err)
	}
	real = filepath.Join(real, strings.TrimPrefix(path, existing))
	if real == filepath.Dir(real) {
		return "", fmt.Errorf("the output cannot be %s: name a folder in it", real)
	}
	return real, nil
}

// isFolder returns false for a link to a folder.
func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// Exists reports whether there is something at a path, also a link to nowhere.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// onOtherDevice reports whether a path is on a different file system than its folder.
func onOtherDevice(path string) (bool, error) {
	var at, above unix.Stat_t
	err := errors.Join(unix.Stat(path, &at), unix.Stat(filepath.Dir(path), &above))
	return at.Dev != above.Dev, err
}

// rename is rename(2). Unlike os.Rename, it can replace an empty folder.
func rename(from, to string) error {
	for {
		err := unix.Rename(from, to)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
	}
}

// syncOne makes a file, or the names in a folder, durable.
func syncOne(path string) (err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) { // a folder that may be written to, but not read
		return syncAll()
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = file.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // the file system does not support it, as some network file systems
	}
	return err
}

// removeTree is os.RemoveAll with concurrency in folders of many entries, because most of the time is
// spent waiting for the disk.
func removeTree(ctx context.Context, path string) error {
	const many = 256
	if err := ctx.Err(); err != nil {
		return err
	}
	// Remove a link, not its target.
	if !isFolder(path) {
		return os.RemoveAll(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return os.RemoveAll(path) // its error is clearer
	}
	var group errgroup.Group
	group.SetLimit(1)
	remove := removeTree
	if len(entries) > many {
		group.SetLimit(8 * runtime.GOMAXPROCS(0))
		remove = func(ctx context.Context, path string) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return os.RemoveAll(path)
		}
	}
	for _, entry := range entries {
		group.Go(func() error { return remove(ctx, filepath.Join(path, entry.Name())) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return os.Remove(path)
}
