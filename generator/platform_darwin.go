package generator

import "golang.org/x/sys/unix"

// exchange lets two paths change places in one step (renamex_np(2), RENAME_SWAP).
func exchange(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }

// isMountPoint: macOS has no bind mounts, so that devices tell.
func isMountPoint(path string) (bool, error) { return onOtherDevice(path) }

// syncTree forces everything below a folder to the disk, as far as macOS can without
// a call for each file: sync(2) hands all files to the drive, and syncing the folder
// (F_FULLFSYNC) lets the drive write what it was handed.
func syncTree(path string) error {
	if err := syncAll(); err != nil {
		return err
	}
	return syncOne(path)
}

// syncAll hands everything to the drive.
func syncAll() error { return unix.Sync() }
