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

// A staging is the work folder beside an output, ".{name}.followpress", where a
// new site grows until it takes the old one's place in one step:
//
//	lock   held by the run that is at work; the kernel lets go of it when that run ends, however it ends
//	next   the new site; after the step, the old one
//	last   the old site, for a moment, on file systems that cannot exchange two folders
//
// A run that was killed leaves the folder behind; the next one cleans up.
type staging struct {
	target string // the output
	folder bool   // the output is a folder, not a file
	noSync bool
	dir    string
	above  string // the innermost folder above the output that was there before the run
	lock   *os.File
}

// ErrBusy says that another run writes to the same output.
var ErrBusy = errors.New("another run is writing to it")

// ErrLeftBehind says that a run which was cancelled had no time to clean up.
var ErrLeftBehind = errors.New("the next run removes it")

// patience is how long a cancelled run cleans up.
var patience = 5 * time.Second

// open takes the lock of the output and prepares the place for the next site. The
// target must be an absolute path without links.
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

// acquire makes the work folder and locks it.
func (s *staging) acquire(ctx context.Context) error {
	parent := filepath.Dir(s.target)
	s.above = parent
	for !isFolder(s.above) && s.above != filepath.Dir(s.above) {
		s.above = filepath.Dir(s.above)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	// Another run may end just now and take the folder with it: then try again.
	for ctx.Err() == nil {
		err := os.Mkdir(s.dir, 0o755)
		switch {
		case errors.Is(err, fs.ErrExist) && !isFolder(s.dir) && isThere(s.dir):
			return fmt.Errorf("%s, where the new site would grow, is not a folder: remove it", s.dir)
		case err != nil && !errors.Is(err, fs.ErrExist):
			return err
		}
		// A link would lead elsewhere, or nowhere for ever.
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
		// It was removed between opening and locking: what is locked is nobody's.
		if err := lock.Close(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// recover mends what a killed run left.
func (s *staging) recover(ctx context.Context) error {
	if _, err := os.Lstat(s.target); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(s.last(), s.target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("bring back the old site: %w", err)
		}
	}
	return errors.Join(removeTree(ctx, s.next()), removeTree(ctx, s.last()), s.removeProbe())
}

// replaceable finds out before the work whether commit can do its step after it. The
// site that is there stays in its place.
func (s *staging) replaceable() error {
	if s.folder {
		if err := s.probeMove(); err != nil && !errors.Is(err, unix.EXDEV) {
			return fmt.Errorf("prepare to write %s: %w", s.target, err)
		} else if err != nil {
			return fmt.Errorf("a new folder cannot be moved to where the output %s belongs: name a .tar file, or a folder on another file system: %w", s.target, err)
		}
	}
	if !isThere(s.target) {
		return nil
	}
	mounted, err := isMountPoint(s.target)
	if err != nil {
		return fmt.Errorf("look at the output: %w", err)
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
			"name a folder that did not, such as one on a volume, or a .tar file; or update this one object by object with publish --dest %s: %w",
			s.target, fileURL(s.target), err)
	} else if err != nil {
		return fmt.Errorf("the output %s cannot be replaced: %w", s.target, err)
	}
	return nil
}

// probeMove moves an empty folder from the work folder to its parent and removes it.
func (s *staging) probeMove() error {
	if err := os.Mkdir(s.next(), 0o755); err != nil {
		return err
	}
	if err := rename(s.next(), s.probe()); err != nil {
		return errors.Join(err, os.Remove(s.next()))
	}
	return s.removeProbe()
}

// probeReplace tries to move the site that is there onto a folder that is not empty.
// That must fail (rename(2)), but with another reason if the site could not be moved
// anywhere.
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
		return nil // an empty folder need not move away: the new site goes on top of it
	} else if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.last(), "full"), 0o755); err != nil {
		return err
	}
	err = rename(s.target, s.last())
	if err == nil { // a file system of its own kind; killed here, recover does it
		return rename(s.last(), s.target)
	}
	if !staysInItsPlace(err) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(s.last()))
}

// staysInItsPlace reports whether an error of a rename says that what is there cannot be
// moved. EPERM is a sticky folder or an immutable one. Any other error may be a file
// system's word for a folder that is not empty: commit will see.
func staysInItsPlace(err error) bool {
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

// settle makes what is at next ready for the step: who may use it stays as it was, and
// it is on the disk. Else a power failure after the step could leave a site of empty
// files where the old one was.
func (s *staging) settle() error {
	if info, err := os.Stat(s.target); err == nil {
		if err := os.Chmod(s.next(), info.Mode()); err != nil {
			return fmt.Errorf("put the new site in place: %w", err)
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
		return fmt.Errorf("force the new site to the disk (--no-sync does without): %w", err)
	}
	return nil
}

// commit puts what is at next in the place of the target, in one step.
func (s *staging) commit() error {
	if err := s.step(); err != nil {
		return fmt.Errorf("put the new site in place: %w", err)
	}
	if s.noSync {
		return nil
	}
	// Before the old site is removed, the disk must know the new one, and the folders
	// above it if the run made them.
	for dir := filepath.Dir(s.target); ; dir = filepath.Dir(dir) {
		if err := syncOne(dir); err != nil {
			return fmt.Errorf("the new site is in place, but may not be after a power failure: %w", err)
		}
		if dir == s.above || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (s *staging) step() error {
	err := rename(s.next(), s.target) // a file, or a folder where none or an empty one is
	if err == nil {
		return nil
	}
	if err := exchange(s.next(), s.target); err == nil {
		return nil
	} else if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	// This file system cannot exchange. Killed between these two, the next run
	// brings the old site back.
	if err := rename(s.target, s.last()); err != nil {
		return err
	}
	if err := rename(s.next(), s.target); err != nil {
		return errors.Join(err, rename(s.last(), s.target))
	}
	return nil
}

// close removes the work folder with all that is in it. After ctx is cancelled it takes
// no more than a moment; what is left then is for the next run.
func (s *staging) close(ctx context.Context) error {
	cleaning, stop := outliving(ctx, patience)
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

// outliving is a context that is cancelled some time after its parent.
func outliving(parent context.Context, by time.Duration) (ctx context.Context, stop func()) {
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

// removeDir removes the work folder, unless the next run is at work in it already.
func (s *staging) removeDir() error {
	err := os.Remove(s.dir)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isFolder says no of a link to one.
func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// onOtherDevice reports whether a path is on another file system than its folder.
func onOtherDevice(path string) (bool, error) {
	var at, above unix.Stat_t
	err := errors.Join(unix.Stat(path, &at), unix.Stat(filepath.Dir(path), &above))
	return at.Dev != above.Dev, err
}

// rename is rename(2). os.Rename refuses a new name that is a folder, even an empty one.
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

// syncOne forces a file, or the names in a folder, to the disk.
func syncOne(path string) (err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) { // a folder that may be written to and not listed
		return syncAll()
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = file.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // this file system has nothing to force, as some on networks
	}
	return err
}

// removeTree is os.RemoveAll, side by side below folders of many entries: much of
// the time goes in waiting for the disk.
func removeTree(ctx context.Context, path string) error {
	const many = 256
	if err := ctx.Err(); err != nil {
		return err
	}
	// A link is removed, and never what it points to.
	if !isFolder(path) {
		return os.RemoveAll(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return os.RemoveAll(path) // it says better what is wrong
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
