package generator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
	dir    string
	lock   *os.File
}

// ErrBusy says that another run writes to the same output.
var ErrBusy = errors.New("another run is writing to it")

// openStaging prepares the place for the next site at target, which must be an
// absolute path.
func openStaging(target string) (*staging, error) {
	s := &staging{target: target, dir: filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".followpress")}
	if err := s.acquire(); err != nil {
		return nil, fmt.Errorf("prepare to write %s: %w", target, err)
	}
	if err := errors.Join(s.recover(), checkTarget(target)); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// acquire makes the work folder and locks it.
func (s *staging) acquire() error {
	for {
		// Another run may end just now and take the folder with it: then try again.
		if err := os.MkdirAll(s.dir, 0o755); errors.Is(err, fs.ErrExist) && !isFile(s.dir) {
			continue
		} else if err != nil {
			return err
		}
		lock, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
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
}

// recover mends what a killed run left.
func (s *staging) recover() error {
	if _, err := os.Lstat(s.target); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(s.last(), s.target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("bring back the old site: %w", err)
		}
	}
	return errors.Join(removeTree(s.next()), removeTree(s.last()))
}

// checkTarget finds out before the work what would fail after it.
func checkTarget(target string) error {
	info, err := os.Stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look at the output: %w", err)
	}
	if err := unix.Access(target, unix.W_OK); err != nil {
		return fmt.Errorf("the output %s cannot be written: %w", target, err)
	}
	var at, above unix.Stat_t
	if err := errors.Join(unix.Stat(target, &at), unix.Stat(filepath.Dir(target), &above)); err != nil {
		return fmt.Errorf("look at the output: %w", err)
	}
	if info.IsDir() && at.Dev != above.Dev {
		return fmt.Errorf("%s is a mount point and cannot be replaced in one step: name a folder in it, such as %s",
			target, filepath.Join(target, "site"))
	}
	return nil
}

func (s *staging) next() string { return filepath.Join(s.dir, "next") }
func (s *staging) last() string { return filepath.Join(s.dir, "last") }

// commit puts what is at next in the place of the target, in one step.
func (s *staging) commit() error {
	if info, err := os.Stat(s.target); err == nil { // who may use it stays as it was
		if err := os.Chmod(s.next(), info.Mode()); err != nil {
			return fmt.Errorf("put the new site in place: %w", err)
		}
	}
	err := os.Rename(s.next(), s.target) // a file, or a folder where none or an empty one is
	if err == nil {
		return nil
	}
	if err := exchange(s.next(), s.target); err == nil {
		return nil
	} else if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("put the new site in place: %w", err)
	}
	// This file system cannot exchange. Killed between these two, the next run
	// brings the old site back.
	if err := os.Rename(s.target, s.last()); err != nil {
		return fmt.Errorf("put the new site in place: %w", err)
	}
	if err := os.Rename(s.next(), s.target); err != nil {
		return fmt.Errorf("put the new site in place: %w", errors.Join(err, os.Rename(s.last(), s.target)))
	}
	return nil
}

// close removes the work folder with all that is in it.
func (s *staging) close() error {
	err := errors.Join(removeTree(s.next()), removeTree(s.last()), os.Remove(s.lock.Name()), s.lock.Close())
	if err == nil {
		err = s.removeDir()
	}
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

// removeDir removes the work folder, unless the next run is at work in it already.
func (s *staging) removeDir() error {
	err := os.Remove(s.dir)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir()
}

// removeTree is os.RemoveAll, side by side below folders of many entries: much of
// the time goes in waiting for the disk.
func removeTree(path string) error {
	const many = 256
	// A link is removed, and never what it points to.
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
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
		remove = os.RemoveAll
	}
	for _, entry := range entries {
		group.Go(func() error { return remove(filepath.Join(path, entry.Name())) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return os.Remove(path)
}
