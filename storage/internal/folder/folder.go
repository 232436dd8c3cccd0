// Package folder reads and writes sites and buckets in local folders.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/regular"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

// A Folder reads a site from a file system whose paths are the keys.
type Folder struct {
	files afero.Fs
	path  string // on this machine; "" for other file systems
}

// New returns a Folder that reads from files.
func New(files afero.Fs) *Folder { return &Folder{files: files} }

// At returns the Folder at a local path.
func At(path string) *Folder {
	return &Folder{afero.NewBasePathFs(afero.NewOsFs(), path), path}
}

// Get reads a file, or returns ErrNotFound.
func (f *Folder) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return f.GetAdmitted(ctx, key, object.AdmitAll)
}

// GetAdmitted is like Get, but first calls admit with the size in bytes, before it allocates memory. It returns
// admit's error, if any.
func (f *Folder) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	admitted := func(size int64) error { return admit(ctx, size) }
	if f.path != "" {
		return readFile(f.path, key, admitted)
	}
	body, _, err := f.readAdmitted(key, admitted)
	return body, err
}

// Read reads a file and its Info, or returns ErrNotFound.
func (f *Folder) Read(_ context.Context, key site.Key) ([]byte, object.Info, error) {
	var identity string
	if key == site.RootKey && f.path != "" {
		identity = folderIdentity(f.path) // before the root is read, so that the next read notices a change in between
	}
	body, info, err := f.readAdmitted(key, func(size int64) error { return object.CheckSize(key, size) })
	if err != nil {
		return nil, object.Info{}, err
	}
	result := object.InfoOfFile(key, site.Sum(body), info)
	result.Place = identity
	return body, result, nil
}

func (f *Folder) read(key site.Key) ([]byte, fs.FileInfo, error) {
	return f.readAdmitted(key, func(int64) error { return nil })
}

func (f *Folder) readAdmitted(key site.Key, admit func(size int64) error) (body []byte, info fs.FileInfo, err error) {
	info, err = f.use(key, func(file io.Reader, size int64) error {
		if err := admit(size); err != nil {
			return err
		}
		// Files are replaced, never written to, so the size does not change.
		body = make([]byte, size)
		if _, err := io.ReadFull(file, body); err != nil {
			return fmt.Errorf("read %s: %w", key, err)
		}
		return nil
	})
	return body, info, err
}

// use opens a file and passes it to read, or returns ErrNotFound.
func (f *Folder) use(key site.Key, read func(file io.Reader, size int64) error) (info fs.FileInfo, err error) {
	open := func(name string) (afero.File, error) { return regular.Open(f.files, name) }
	if f.path == "" { // afero's memory file system would treat regular.Flags as write flags, and Close would change the file's time
		open = f.files.Open
	}
	file, err := open(filepath.FromSlash(string(key)))
	if IsAbsent(err) {
		return nil, object.ErrNotFound
	} else if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err = file.Stat()
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", key, err)
	}
	if info.IsDir() {
		return nil, object.ErrNotFound
	}
	return info, read(file, info.Size())
}

// IsAbsent reports whether an error of Open means that the file does not exist. That includes names that the file
// system does not allow.
func IsAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// Close does nothing.
func (f *Folder) Close() error { return nil }
