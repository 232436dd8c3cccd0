package server_test

import (
	"os"
	"syscall"
)

// useMemory keeps the temporary folders of tests in memory, if there is enough of it. Tests write some
// 50,000 small files, which takes half of their processor time on a disk.
func useMemory() {
	const (
		folder = "/dev/shm"
		tmpfs  = 0x01021994
		enough = 1 << 30
	)
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") == "" && syscall.Statfs(folder, &fs) == nil && fs.Type == tmpfs && fs.Bavail*uint64(fs.Bsize) >= enough {
		_ = os.Setenv("TMPDIR", folder) // without it they are on the disk
	}
}
