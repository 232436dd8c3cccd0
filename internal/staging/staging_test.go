package staging

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// An output is refused only for errors that mean that a folder cannot be moved. File systems use
// several errors for a nonempty folder.
func TestStaysInItsPlace(t *testing.T) {
	for err, want := range map[unix.Errno]bool{
		unix.ENOTEMPTY: false, unix.EEXIST: false, unix.EIO: false, unix.EINVAL: false, unix.ENOSYS: false, unix.ENOTSUP: false,
		unix.EXDEV: true, unix.EBUSY: true, unix.EACCES: true, unix.EPERM: true, unix.EROFS: true,
	} {
		if got := isImmovable(&os.LinkError{Op: "rename", Err: err}); got != want {
			t.Errorf("%v: got %t, want %t", err, got, want)
		}
	}
	if isImmovable(nil) {
		t.Error("no error: got true, want false")
	}
}
