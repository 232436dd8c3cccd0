package staging

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two paths in one step (renameat2(2), RENAME_EXCHANGE).
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// isMountPoint asks the kernel. Before Linux 5.8 it compares devices, which misses bind mounts on
// the same device.
func isMountPoint(path string) (bool, error) {
	var at unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &at)
	if err == nil && at.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return at.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	}
	return onOtherDevice(path)
}

// syncTree makes everything below a folder durable, with one call for the whole file system, which
// is much faster than one per file.
func syncTree(path string) (err error) {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(folder.Fd())))
}

// syncAll makes all writes durable.
func syncAll() error {
	unix.Sync()
	return nil
}
