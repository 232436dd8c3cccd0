package server

import (
	"archive/tar"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/afero"
	"github.com/spf13/afero/tarfs"
)

// Open opens the site at a path of this machine: a folder, or a tar file, which is
// read into memory.
func Open(path string) (store Store, err error) {
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
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	defer file.Close()
	return NewFolder(tarfs.New(tar.NewReader(file))), nil
}
