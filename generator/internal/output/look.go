package output

import (
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
)

// A Look is an output that finds which objects the live site has no file of. A file of another size, and what is no
// file, is none. What a file of the right size holds is not looked at.
type Look struct {
	files   afero.Fs
	path    string // "" looks at nothing
	seed    maphash.Seed
	mu      sync.Mutex
	missing map[uint64]struct{} // hashes of keys
}

// Begin returns the Look itself, which is safe for concurrent use.
func (l *Look) Begin() Batch { return l }

// Finish does nothing.
func (l *Look) Finish(Batch) error { return nil }

// Put notes an object whose file is missing or has another size.
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

// lstat is the Lstat of file systems that have links, and the Stat of others.
func lstat(files afero.Fs, name string) (fs.FileInfo, error) {
	if l, ok := files.(afero.Lstater); ok {
		info, _, err := l.LstatIfPossible(name)
		return info, err
	}
	return files.Stat(name)
}
