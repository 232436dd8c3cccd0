package storage

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/followpress/followpress/site"
)

// A tarFile reads objects out of a tar file in place. (afero's tarfs would take
// the whole file into memory, and its open files share their positions.)
type tarFile struct {
	file  *os.File
	root  []byte // nil where the root is not the last entry
	index func() (map[keyHash]span, error)
}

// A span is where an object is in the file.
type span struct{ offset, size int64 }

// A keyHash stands for a key in an index of some hundred thousand of them. Names come
// from outside: the hash has to be one in which nobody can find two keys alike.
type keyHash [16]byte

func hashOf(key site.Key) keyHash {
	sum := sha256.Sum256([]byte(key))
	return keyHash(sum[:16])
}

// openTar finds the root, which is the last entry: it tells whether anything else is
// asked for at all. The rest is found when it is.
func openTar(path string) (*tarFile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t := &tarFile{file: file}
	t.index = sync.OnceValues(func() (map[keyHash]span, error) {
		index, err := indexTar(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		return index, nil
	})
	if t.root, err = lastRoot(file); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), file.Close())
	}
	if t.root == nil {
		if _, err := t.index(); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return t, nil
}

// tarBlock is the unit of a tar file.
const tarBlock = 512

// largestRoot is more than the root of 65,536 manifest shards takes.
const largestRoot = 4 << 20

// lastRoot reads the root if it is the last entry, as in the files that generate
// writes; nil if not.
func lastRoot(file *os.File) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	tail := make([]byte, min(info.Size()-info.Size()%tarBlock, largestRoot))
	if _, err := file.ReadAt(tail, info.Size()-info.Size()%tarBlock-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for at := len(tail) - tarBlock; at >= 0; at -= tarBlock {
		if !bytes.HasPrefix(tail[at:], []byte(site.RootKey+"\x00")) {
			continue
		}
		archive := tar.NewReader(bytes.NewReader(tail[at:]))
		header, err := archive.Next()
		if err != nil || header.Name != string(site.RootKey) {
			continue // part of an object
		}
		body, err := io.ReadAll(archive)
		if _, end := archive.Next(); err != nil || !errors.Is(end, io.EOF) {
			continue
		}
		return body, nil
	}
	return nil, nil
}

func indexTar(file *os.File) (map[keyHash]span, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	// To read everything is faster than to skip each of many small bodies.
	position := &counter{reader: bufio.NewReaderSize(file, 1<<20)}
	index := map[keyHash]span{}
	for archive := tar.NewReader(position); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return index, nil
		} else if err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeReg {
			// The reader takes no more than the header, so this is where the object begins.
			index[hashOf(site.Key(header.Name))] = span{position.read, header.Size}
		}
	}
}

// A counter counts what is read through it.
type counter struct {
	reader io.Reader
	read   int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.read += int64(n)
	return n, err
}

// Get reads an object.
func (t *tarFile) Get(_ context.Context, key site.Key) ([]byte, error) {
	if key == site.RootKey && t.root != nil {
		return t.root, nil
	}
	index, err := t.index()
	if err != nil {
		return nil, err
	}
	at, ok := index[hashOf(key)]
	if !ok {
		return nil, ErrNotFound
	}
	body := make([]byte, at.size)
	if _, err := t.file.ReadAt(body, at.offset); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return body, nil
}

// Close closes the file.
func (t *tarFile) Close() error { return t.file.Close() }
