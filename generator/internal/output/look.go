package output

import (
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
)

// A Look is an output that finds objects without a file in the live site. A file of another size,
// or anything but a file, counts as missing. Look does not read files of the right size.
type Look struct {
	files   afero.Fs
	path    string // "" disables the Look
	seed    maphash.Seed
	mu      sync.Mutex
	missing map[uint64]struct{} // hashes of keys
}

// Begin returns the Look itself, which is safe for concurrent use.
func (l *Look) Begin() Batch { return l }

// Finish does nothing.
func (l *Look) Finish(Batch) error { return nil }

// Put records an object whose file is missing or has another size.
func (l *Look) Put(entry site.Entry, _ []byte) error {
	if l.path == "" {
		return nil
	}
	name := filepath.Join(l.path, filepath.FromSlash(string(entry.Key)))
	info, err := lstat(l.files, name)
	if err == nil && info.Mode().IsRegular() && info.Size() == entry.Size {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing[maphash.String(l.seed, string(entry.Key))] = struct{}{}
	return nil
}

// lstat is Lstat on file systems with links, and Stat on others.
func lstat(files afero.Fs, name string) (fs.FileInfo, error) {
	if l, ok := files.(afero.Lstater); ok {
		info, _, err := l.LstatIfPossible(name)
		return info, err
	}
	return files.Stat(name)
}
