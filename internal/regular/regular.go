// Package regular opens files and folders that others have put somewhere, and nothing else: whoever opens a named pipe
// waits until somebody writes to it, for ever if need be, and a device may have no end.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"
)

// ErrIrregular says that something is neither a file nor a folder.
var ErrIrregular = errors.New("is a pipe, a socket or a device, not a file")

// Flags open a file for reading without waiting. What was opened with them must be checked (Check).
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

// Check returns an error that wraps ErrIrregular if a mode is neither that of a file nor that of a folder.
func Check(name string, mode fs.FileMode) error {
	if mode.IsRegular() || mode.IsDir() {
		return nil
	}
	return fmt.Errorf("%s %w", name, ErrIrregular)
}
