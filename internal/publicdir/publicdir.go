// Package publicdir makes folders and files that a web server can read, regardless of the umask.
// Sites are public, and a server is usually another user than the one who publishes.
package publicdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/afero"
)

// The permissions that everything gets at least.
const (
	folderMode fs.FileMode = 0o755
	fileMode   fs.FileMode = 0o644
)

// Make creates a folder and its missing parents. It leaves existing ones unchanged. The parent
// usually exists, so checking first would cost more.
func Make(files afero.Fs, dir string) error {
	err := files.Mkdir(dir, folderMode)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err := Make(files, filepath.Dir(dir)); err != nil {
			return err
		}
		err = files.Mkdir(dir, folderMode)
	}
	if errors.Is(err, fs.ErrExist) {
		if info, failed := files.Stat(dir); failed == nil && info.IsDir() {
			return nil
		}
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR} // the same error as os.MkdirAll
	}
	if err != nil {
		return err
	}
	info, err := files.Stat(dir)
	if err != nil {
		return err
	}
	return open(files, dir, info, folderMode)
}

// Create creates a file, which must not exist, for writing.
func Create(files afero.Fs, name string) (afero.File, error) {
	file, err := files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = open(files, name, info, fileMode)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// open adds the permissions that the umask has taken. Other bits stay, such as that of a group
// (setgid). A file system may know no permissions, and refuse: its mount decides.
func open(files afero.Fs, name string, info fs.FileInfo, mode fs.FileMode) error {
	if info.Mode()&mode == mode {
		return nil
	}
	err := files.Chmod(name, info.Mode()|mode)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
