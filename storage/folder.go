package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
)

// A Folder reads a site out of a file system whose root holds the keys.
type Folder struct {
	files afero.Fs
	path  string // of the folder on this machine; "" if it is elsewhere
}

// NewFolder is a folder that reads from files.
func NewFolder(files afero.Fs) *Folder { return &Folder{files: files} }

func folderAt(path string) *Folder {
	return &Folder{afero.NewBasePathFs(afero.NewOsFs(), path), path}
}

// Get reads a file; ErrNotFound if there is none.
func (f *Folder) Get(_ context.Context, key site.Key) ([]byte, error) {
	body, _, err := f.read(key)
	return body, err
}

// GetAdmitted is Get that takes memory for the file only when its size was admitted.
func (f *Folder) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	body, _, err := f.readAdmitted(key, func(size int64) error { return admit(ctx, size) })
	return body, err
}

// Read reads a file; ErrNotFound if there is none.
func (f *Folder) Read(_ context.Context, key site.Key) ([]byte, Info, error) {
	var place string
	if key == site.RootKey && f.path != "" {
		place = placeOf(f.path) // before the root: what comes in between is noticed next time
	}
	body, info, err := f.read(key)
	if err != nil {
		return nil, Info{}, err
	}
	told := localInfo(key, body, info)
	told.Place = place
	return body, told, nil
}

func (f *Folder) read(key site.Key) ([]byte, fs.FileInfo, error) {
	return f.readAdmitted(key, func(int64) error { return nil })
}

func (f *Folder) readAdmitted(key site.Key, admit func(size int64) error) (body []byte, info fs.FileInfo, err error) {
	file, err := f.files.Open(filepath.FromSlash(string(key)))
	if isAbsent(err) {
		return nil, nil, ErrNotFound
	} else if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", key, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err = file.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("look at %s: %w", key, err)
	}
	if info.IsDir() {
		return nil, nil, ErrNotFound
	}
	if err := admit(info.Size()); err != nil {
		return nil, nil, err
	}
	// Objects are replaced whole, never changed: the size will not.
	body = make([]byte, info.Size())
	if _, err := io.ReadFull(file, body); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", key, err)
	}
	return body, info, nil
}

// isAbsent reports whether an error of Open means that there is no such file. A
// name that the file system cannot hold is not there either.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}
