package tempdir

import (
	"os"

	"golang.org/x/sys/unix"
)

// memory is a folder in memory, or "".
func memory() string {
	const (
		folder = "/dev/shm"
		tmpfs  = 0x01021994
	)
	enough := uint64(1 << 30)
	if os.Getenv("TEST_SERVERS") != "" {
		enough = 4 << 30
	}
	var fs unix.Statfs_t
	if unix.Statfs(folder, &fs) != nil || fs.Type != tmpfs || fs.Bavail*uint64(fs.Bsize) < enough || !opensDirectly(folder) {
		return ""
	}
	return folder
}

// opensDirectly reports whether files in a folder can be opened as MinIO does: tmpfs has it since
// Linux 6.6.
func opensDirectly(folder string) bool {
	f, err := os.OpenFile(folder, unix.O_TMPFILE|os.O_RDWR|unix.O_DIRECT, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}
