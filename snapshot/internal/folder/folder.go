// Package folder reads the folder of a snapshot while another process may replace it.
package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/regular"
	"github.com/followpress/followpress/snapshot/internal/table"
)

// A Folder is an open snapshot folder. It keeps showing the same snapshot even if another process replaces the
// folder, as a Writer does.
type Folder struct {
	*afero.BasePathFs
	files map[string]*os.File // open files; nil for irregular files, which are opened by path
}

// openTries is the maximum number of retries of Open after the folder was replaced.
const openTries = 100

// Open opens a folder. A missing folder, or one that is not a snapshot, fails only when it is read. The caller must
// close it.
func Open(dir string) (*Folder, error) {
	for range openTries {
		f, whole, err := open(dir)
		if err != nil {
			return nil, err
		}
		if whole {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s is replaced again and again", dir)
}

// open opens all files of a snapshot. They belong to one snapshot if the folder is unchanged at the end, because a
// writer removes old files only after it has replaced the folder.
func open(dir string) (f *Folder, whole bool, err error) {
	f = &Folder{BasePathFs: afero.NewBasePathFs(afero.NewOsFs(), dir).(*afero.BasePathFs)}
	opened, err := os.OpenFile(dir, regular.Flags, 0)
	if err != nil {
		return f, true, nil
	}
	defer func() { err = errors.Join(err, opened.Close()) }() // keeps the folder's inode number from being reused
	was, err := opened.Stat()
	if err != nil || !was.IsDir() {
		return f, true, err
	}
	entries, err := opened.ReadDir(-1)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false, nil // removed in the meantime
	} else if err != nil {
		return f, false, fmt.Errorf("list the folder of the snapshot: %w", err)
	}
	f.files = map[string]*os.File{}
	for _, entry := range entries {
		name := entry.Name()
		if !table.IsFileName(name) {
			continue
		}
		f.files[name] = nil // dangling links too, so that reading fails instead of losing a part
		if file, err := regular.Open(afero.NewOsFs(), filepath.Join(dir, name)); err == nil {
			f.files[name] = file.(*os.File)
		}
	}
	is, err := os.Stat(dir)
	return f, err == nil && os.SameFile(was, is), nil
}

// Names returns the names of the files; nil if they must be found by path.
func (f *Folder) Names() []string { return slices.Sorted(maps.Keys(f.files)) }

// Open opens a file. Several open handles are allowed.
func (f *Folder) Open(name string) (afero.File, error) {
	file, err := f.file("open", name)
	if err != nil {
		return nil, err
	}
	if file == nil {
		return regular.Open(f.BasePathFs, name)
	}
	return openedFile{file, io.NewSectionReader(file, 0, math.MaxInt64)}, nil
}

// Stat returns a file's info.
func (f *Folder) Stat(name string) (fs.FileInfo, error) {
	file, err := f.file("stat", name)
	if err != nil {
		return nil, err
	}
	if file == nil {
		return f.BasePathFs.Stat(name)
	}
	return file.Stat()
}

// file returns the open file, or nil if it must be opened by path.
func (f *Folder) file(op, name string) (*os.File, error) {
	file, ok := f.files[name]
	if !ok && f.files != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return file, nil
}

// Close closes the files.
func (f *Folder) Close() error {
	var errs []error
	for _, file := range f.files {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}

// An openedFile is one of several handles of an open file.
type openedFile struct {
	*os.File
	at *io.SectionReader
}

func (f openedFile) Read(p []byte) (int, error) { return f.at.Read(p) }

func (f openedFile) Seek(offset int64, whence int) (int64, error) { return f.at.Seek(offset, whence) }

// Shared marks that ReadAt is safe for concurrent use.
func (openedFile) Shared() {}

// Close leaves the file open for other handles.
func (openedFile) Close() error { return nil }
