//go:build !linux

package folder

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncAround makes all writes durable. These systems cannot sync a single file system.
func syncAround(*os.File) error {
	unix.Sync()
	return nil
}
