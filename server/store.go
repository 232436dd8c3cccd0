package server

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

// ErrNotFound says that a site has no object with that key. Any other error of a
// Store means that it could not tell.
var ErrNotFound = errors.New("no such object")

// A Store holds a site: a folder, a tar file or memory here, a bucket elsewhere.
// Its methods are called from many goroutines.
type Store interface {
	// Get reads a whole object. The caller must not change it.
	Get(ctx context.Context, key site.Key) ([]byte, error)
}

// NewFolder is a store over a file system whose root holds the keys of a site.
func NewFolder(files afero.Fs) Store { return folder{files} }

type folder struct{ files afero.Fs }

// Get reads a file.
func (f folder) Get(_ context.Context, key site.Key) (body []byte, err error) {
	file, err := f.files.Open(filepath.FromSlash(string(key)))
	if isAbsent(err) {
		return nil, ErrNotFound
	} else if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", key, err)
	}
	if info.IsDir() {
		return nil, ErrNotFound
	}
	// Objects are replaced whole, never changed: the size will not.
	body = make([]byte, info.Size())
	if _, err := io.ReadFull(file, body); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return body, nil
}

// isAbsent reports whether an error of Open means that there is no such file. A
// name that the file system cannot hold is not there either.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}
