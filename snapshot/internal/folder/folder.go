// Package folder reads the folder of a snapshot while others may replace it.
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

// A Folder is the folder of a snapshot, for reading. It stays the snapshot that it was when it was
// opened, even if another process replaces the folder, as a Writer does.
type Folder struct {
	*afero.BasePathFs
	files map[string]*os.File // open ones; nil for what is no regular file, and must be opened by its path
}

// openTries is how often Open tries again because the folder was replaced meanwhile.
const openTries = 100

// Open opens a folder. That it is not there, or no snapshot, is not an error of Open but of what
// reads it. Close must be called after a success.
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

// open opens all files of a snapshot. They are all of one snapshot, and none is missing, if the folder
// is the same at the end: who replaces it removes the old files only then.
func open(dir string) (f *Folder, whole bool, err error) {
	f = &Folder{BasePathFs: afero.NewBasePathFs(afero.NewOsFs(), dir).(*afero.BasePathFs)}
	opened, err := os.OpenFile(dir, regular.Flags, 0)
	if err != nil {
		return f, true, nil
	}
	defer func() { err = errors.Join(err, opened.Close()) }() // until then, no other folder has its number
	was, err := opened.Stat()
	if err != nil || !was.IsDir() {
		return f, true, err
	}
	entries, err := opened.ReadDir(-1)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false, nil // it was removed meanwhile
	} else if err != nil {
		return f, false, fmt.Errorf("list the folder of the snapshot: %w", err)
	}
	f.files = map[string]*os.File{}
	for _, entry := range entries {
		name := entry.Name()
		if !table.IsFileName(name) {
			continue
		}
		f.files[name] = nil // also of a dangling link, so that reading it fails instead of a part being lost
		if file, err := openRegular(filepath.Join(dir, name)); err == nil {
			f.files[name] = file
		}
	}
	is, err := os.Stat(dir)
	return f, err == nil && os.SameFile(was, is), nil
}

// openRegular opens a file, and nothing else.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, regular.Flags, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = regular.ErrIrregular
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Names returns the names of the files; nil if they must be found by their paths.
func (f *Folder) Names() []string { return slices.Sorted(maps.Keys(f.files)) }

// Open opens a file. It may be open several times.
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

// Stat describes a file.
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

// file is an open file; nil if it must be opened by its path.
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

// An openedFile reads a file that others read too.
type openedFile struct {
	*os.File
	at *io.SectionReader
}

func (f openedFile) Read(p []byte) (int, error) { return f.at.Read(p) }

func (f openedFile) Seek(offset int64, whence int) (int64, error) { return f.at.Seek(offset, whence) }

// Shared says that ReadAt may be called concurrently.
func (openedFile) Shared() {}

// Close leaves the file open for others.
func (openedFile) Close() error { return nil }
