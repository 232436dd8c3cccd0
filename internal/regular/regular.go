// Package regular opens regular files and folders in places that strangers may write to, and
// nothing else: opening a named pipe may wait forever, and a device may have no end.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"
)

// ErrIrregular means that something is neither a file nor a folder.
var ErrIrregular = errors.New("is a pipe, a socket or a device, not a file")

// Flags open a file for reading without waiting. The caller must Check the opened file.
const Flags = os.O_RDONLY | unix.O_NONBLOCK

// Open opens a file or a folder for reading; a link is followed. An error wraps ErrIrregular for anything else, without
// waiting for it.
func Open(files afero.Fs, name string) (afero.File, error) {
	file, err := files.OpenFile(name, Flags, 0)
	if errors.Is(err, unix.ENXIO) { // a socket
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrIrregular}
	} else if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = Check(name, info.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Check returns an error that wraps ErrIrregular unless the mode is that of a regular file or a
// folder.
func Check(name string, mode fs.FileMode) error {
	if mode.IsRegular() || mode.IsDir() {
		return nil
	}
	return fmt.Errorf("%s %w", name, ErrIrregular)
}
