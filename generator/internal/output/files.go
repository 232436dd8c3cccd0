package output

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/publicdir"
	"github.com/followpress/followpress/site"
)

// madeFolders caches the last folders made: successive objects are often in the same few.
type madeFolders [4]string

func (m *madeFolders) make(files afero.Fs, dir string) error {
	if slices.Contains(m[:], dir) {
		return nil
	}
	if err := makeFolder(files, dir); err != nil {
		return err
	}
	copy(m[1:], m[:])
	m[0] = dir
	return nil
}

func makeFolder(files afero.Fs, dir string) error {
	if err := publicdir.Make(files, dir); err != nil {
		return fmt.Errorf("create a folder: %w", err)
	}
	return nil
}

func writeFile(files afero.Fs, name string, body []byte) error {
	file, err := publicdir.Create(files, name)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	_, err = file.Write(body)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

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
