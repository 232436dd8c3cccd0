package generator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// A staging is the work folder beside an output, ".{name}.followpress". The new site is written there
// and then replaces the live one in one step. It contains:
//
//	lock   locked by the running run; the kernel unlocks it when the process ends
//	next   the new site; after the replacement, the old one
//	last   the old site, for a moment, on file systems that cannot exchange two folders
//
// A killed run leaves the folder behind; the next run cleans up.
type staging struct {
	target         string // the output
	folder         bool   // the output is a folder, not a file
	noSync         bool
	dir            string
	existingParent string // the innermost folder above the output that existed before the run
	lock           *os.File
}

// ErrBusy says that another run writes to the same output.
var ErrBusy = errors.New("another run is writing to it")

// ErrLeftBehind says that a cancelled run had no time to clean up. The next run does.
var ErrLeftBehind = errors.New("the next run removes it")

// cleanUpTime is how long a cancelled run may clean up.
var cleanUpTime = 5 * time.Second

// open locks the output and prepares the work folder. The target must be an absolute path without
// links.
func (s *staging) open(ctx context.Context) error {
	s.dir = filepath.Join(filepath.Dir(s.target), "."+filepath.Base(s.target)+".followpress")
	if err := s.acquire(ctx); err != nil {
		return fmt.Errorf("prepare to write %s: %w", s.target, err)
	}
	if err := s.recover(ctx); err != nil {
		return errors.Join(err, s.close(ctx))
	}
	return nil
}

// acquire creates the work folder and locks it.
func (s *staging) acquire(ctx context.Context) error {
	parent := filepath.Dir(s.target)
	s.existingParent = parent
	for !isFolder(s.existingParent) && s.existingParent != filepath.Dir(s.existingParent) {
		s.existingParent = filepath.Dir(s.existingParent)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	// Another run may end right now and remove the folder: then try again.
	for ctx.Err() == nil {
		err := os.Mkdir(s.dir, 0o755)
		switch {
		case errors.Is(err, fs.ErrExist) && !isFolder(s.dir) && exists(s.dir):
			return fmt.Errorf("%s, the work folder for the new site, is not a folder: remove it", s.dir)
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

// recover cleans up after a killed run.
func (s *staging) recover(ctx context.Context) error {
	if _, err := os.Lstat(s.target); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(s.last(), s.target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("restore the old site: %w", err)
		}
	}
	return errors.Join(removeTree(ctx, s.next()), removeTree(ctx, s.last()), s.removeProbe())
}

// checkReplaceable finds out before the work whether commit can replace the target. The live site
// stays in place.
func (s *staging) checkReplaceable() error {
	if s.folder {
		if err := s.probeMove(); err != nil && !errors.Is(err, unix.EXDEV) {
			return fmt.Errorf("prepare to write %s: %w", s.target, err)
		} else if err != nil {
			return fmt.Errorf("a new folder cannot be moved to the output %s: name a .tar file, or a folder on another file system: %w", s.target, err)
		}
	}
	if !exists(s.target) {
		return nil
	}
	mounted, err := isMountPoint(s.target)
	if err != nil {
		return fmt.Errorf("inspect the output: %w", err)
	}
	if mounted && s.folder {
		return fmt.Errorf("%s is a mount point and cannot be replaced in one step: name a folder in it, such as %s",
			s.target, filepath.Join(s.target, "site"))
	} else if mounted {
		return fmt.Errorf("%s is a mount point and cannot be replaced in one step: mount its folder instead of the file", s.target)
	}
	if err := unix.Access(s.target, unix.W_OK); err != nil {
		return fmt.Errorf("the output %s cannot be written: %w", s.target, err)
	}
	if !s.folder {
		return nil
	}
	err = s.probeReplace()
	if errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("the output %s cannot be replaced in one step, which overlayfs cannot do with a folder that came with an image: "+
			"name a folder that did not, such as one on a volume, or a .tar file; or update this one object by object with followpress publish --dest %s: %w",
			s.target, fileURL(s.target), err)
	} else if err != nil {
		return fmt.Errorf("the output %s cannot be replaced: %w", s.target, err)
	}
	return nil
}

// probeMove tries to move a folder from the work folder to its parent. It removes the folder.
func (s *staging) probeMove() error {
	if err := os.Mkdir(s.next(), 0o755); err != nil {
		return err
	}
	if err := rename(s.next(), s.probe()); err != nil {
		return errors.Join(err, os.Remove(s.next()))
	}
	return s.removeProbe()
}

// probeReplace tries to move the live site onto a folder that is not empty. That must fail
// (rename(2)), but for a different reason if the live site cannot be moved at all.
func (s *staging) probeReplace() error {
	entries, err := os.Open(s.target)
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
	if err := os.MkdirAll(filepath.Join(s.last(), "full"), 0o755); err != nil {
		return err
	}
	err = rename(s.target, s.last())
	if err == nil { // an unusual file system; after a kill here, recover undoes it
		return rename(s.last(), s.target)
	}
	if !isImmovable(err) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(s.last()))
}

// isImmovable reports whether an error of rename says that the source cannot be moved. EPERM means a
// sticky folder or an immutable one. Other errors may be a file system's code for a folder that is
// not empty; commit will tell.
func isImmovable(err error) bool {
	for _, reason := range []unix.Errno{unix.EXDEV, unix.EBUSY, unix.EACCES, unix.EPERM, unix.EROFS} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

func (s *staging) next() string  { return filepath.Join(s.dir, "next") }
func (s *staging) last() string  { return filepath.Join(s.dir, "last") }
func (s *staging) probe() string { return s.dir + "-probe" }

func (s *staging) removeProbe() error {
	if err := os.Remove(s.probe()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncNext gives next the permissions of the target and makes it durable. Otherwise a power failure
// after the replacement could leave a site of empty files.
func (s *staging) syncNext() error {
	if info, err := os.Stat(s.target); err == nil {
		if err := os.Chmod(s.next(), info.Mode()); err != nil {
			return fmt.Errorf("install the new site: %w", err)
		}
	}
	if s.noSync {
		return nil
	}
	var err error
	if s.folder {
		err = syncTree(s.dir)
	} else {
		err = syncOne(s.next())
	}
	if err != nil {
		return fmt.Errorf("sync the new site to disk (--no-sync skips this): %w", err)
	}
	return nil
}

// commit replaces the target by next, in one step.
func (s *staging) commit() error {
	if err := s.replace(); err != nil {
		return fmt.Errorf("install the new site: %w", err)
	}
	if s.noSync {
		return nil
	}
	// The new names must be durable before the old site is removed, including those of folders
	// that the run created.
	for dir := filepath.Dir(s.target); ; dir = filepath.Dir(dir) {
		if err := syncOne(dir); err != nil {
			return fmt.Errorf("the new site is live, but may not be after a power failure: %w", err)
		}
		if dir == s.existingParent || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (s *staging) replace() error {
	err := rename(s.next(), s.target) // works for a file, and for a folder if the target is absent or empty
	if err == nil {
		return nil
	}
	if err := exchange(s.next(), s.target); err == nil {
		return nil
	} else if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	// This file system cannot exchange. After a kill between these two renames, the next run
	// restores the old site.
	if err := rename(s.target, s.last()); err != nil {
		return err
	}
	if err := rename(s.next(), s.target); err != nil {
		return errors.Join(err, rename(s.last(), s.target))
	}
	return nil
}

// close removes the work folder. If ctx has ended, it takes at most cleanUpTime and leaves the rest
// to the next run.
func (s *staging) close(ctx context.Context) error {
	cleaning, stop := withGrace(ctx, cleanUpTime)
	defer stop()
	err := errors.Join(removeTree(cleaning, s.next()), removeTree(cleaning, s.last()))
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
func (s *staging) removeDir() error {
	err := os.Remove(s.dir)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isFolder returns false for a link to a folder.
func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func exists(path string) bool {
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
		group.SetLimit(8 * defaultWorkers())
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
