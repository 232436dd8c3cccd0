package storage

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
)

// A Site is a site on this machine: a folder or a tar file.
type Site interface {
	// Get reads a whole object; ErrNotFound if there is none. The caller must not
	// change it.
	Get(ctx context.Context, key site.Key) ([]byte, error)
	Close() error
}

// OpenSite opens the site at a path of this machine: a folder or a .tar file.
func OpenSite(path string) (Site, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	if info.IsDir() {
		return NewFolder(afero.NewBasePathFs(afero.NewOsFs(), path)), nil
	}
	if !strings.HasSuffix(path, ".tar") {
		return nil, fmt.Errorf("open the site: %s is neither a folder nor a .tar file", path)
	}
	t, err := openTar(path)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	return t, nil
}

// Close does nothing: a folder keeps no file open.
func (f *Folder) Close() error { return nil }

// A tarFile reads objects out of a tar file in place. (afero's tarfs would take
// the whole file into memory, and its open files share their positions.)
type tarFile struct {
	file    *os.File
	objects map[site.Key]span
}

// A span is where an object is in the file.
type span struct{ offset, size int64 }

func openTar(path string) (*tarFile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t := &tarFile{file, map[site.Key]span{}}
	if err := t.index(); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), file.Close())
	}
	return t, nil
}

func (t *tarFile) index() error {
	archive := tar.NewReader(t.file)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		// The reader takes no more than the header, so this is where the object begins.
		offset, err := t.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeReg {
			t.objects[site.Key(header.Name)] = span{offset, header.Size}
		}
	}
}

// Get reads an object.
func (t *tarFile) Get(_ context.Context, key site.Key) ([]byte, error) {
	at, ok := t.objects[key]
	if !ok {
		return nil, ErrNotFound
	}
	body := make([]byte, at.size)
	if _, err := t.file.ReadAt(body, at.offset); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return body, nil
}

// Close closes the file.
func (t *tarFile) Close() error { return t.file.Close() }
