//go:build !linux

package storage

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncAround asks the system to make everything durable: others cannot be asked for one
// file system.
func syncAround(*os.File) error {
	unix.Sync()
	return nil
}
