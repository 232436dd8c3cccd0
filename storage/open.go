package storage

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/followpress/followpress/site"
)

// A Site is a site on this machine: a folder or a tar file.
type Site interface {
	// Get reads an object, or returns ErrNotFound. The caller must not change the body.
	Get(ctx context.Context, key site.Key) ([]byte, error)
	Close() error
}

// OpenSite opens a folder or a .tar file. It does not check that it contains a site.
func OpenSite(path string) (Site, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	if info.IsDir() {
		return folderAt(path), nil
	}
	if !strings.HasSuffix(path, ".tar") {
		return nil, fmt.Errorf("open the site: %s is neither a folder nor a .tar file", path)
	}
	t, err := newTarFile(path)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	return t, nil
}

// Close does nothing: a folder keeps no file open.
func (f *Folder) Close() error { return nil }
