package staging

import "golang.org/x/sys/unix"

// exchange swaps two paths in one step (renamex_np(2), RENAME_SWAP).
func exchange(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }

// isMountPoint compares devices, which suffices because macOS has no bind mounts.
func isMountPoint(path string) (bool, error) { return onOtherDevice(path) }

// syncTree makes everything below a folder durable, as far as macOS can without a call per file:
// sync(2) sends all files to the drive, and syncing the folder (F_FULLFSYNC) makes the drive write
// them.
func syncTree(path string) error {
	if err := syncAll(); err != nil {
		return err
	}
	return syncOne(path)
}

// syncAll sends all writes to the drive.
func syncAll() error { return unix.Sync() }
