package folder

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/internal/regular"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

// readFile reads a file below a local folder, or returns ErrNotFound. For an object of a few hundred bytes, system
// calls dominate the cost. This function makes four; os.ReadFile makes a dozen, because it registers each file with
// the poller.
func readFile(folder string, key site.Key, admit func(size int64) error) (body []byte, err error) {
	if !filepath.IsLocal(string(key)) {
		return nil, object.ErrNotFound
	}
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Open(folder+"/"+string(key), regular.Flags|unix.O_CLOEXEC, 0)
	})
	if IsAbsent(err) {
		return nil, object.ErrNotFound
	} else if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return nil, fmt.Errorf("inspect %s: %w", key, err)
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return nil, object.ErrNotFound
	default:
		return nil, fmt.Errorf("%s %w", key, regular.ErrIrregular)
	}
	if err := admit(info.Size); err != nil {
		return nil, err
	}
	// Files are replaced, never written to, so the size does not change.
	body = make([]byte, info.Size)
	for rest := body; len(rest) > 0; {
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, rest) })
		if n == 0 && err == nil {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		rest = rest[n:]
	}
	return body, nil
}

// ignoringEINTR repeats a system call while signals interrupt it, which happens on some file systems only.
func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
