package folder

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncAround makes all writes to the folder's file system durable.
func syncAround(folder *os.File) error { return unix.Syncfs(int(folder.Fd())) }
