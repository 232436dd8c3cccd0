package storage

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncAround makes everything durable that was written to the file system of a folder.
func syncAround(folder *os.File) error { return unix.Syncfs(int(folder.Fd())) }
