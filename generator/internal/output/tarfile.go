package output

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/tarentry"
	"github.com/followpress/followpress/site"
)

// TarAt returns a tar file.
func TarAt(files afero.Fs, path string) Destination { return &tarDestination{files: files, path: path} }

// A tarOutput writes a tar file: the objects in the order of the site, then the manifest, and the
// root last. All entries have the time of the snapshot, so that equal sites give equal files.
type tarOutput struct {
	file   io.Writer
	format *tarentry.Formatter
	free   sync.Pool // holds *tarBatch
	failed bool      // after a failed write, the file has no end
}

type tarDestination struct {
	files afero.Fs
	path  string
}

func (d *tarDestination) Create(next string, _ *Plan, asOf string) (Output, func() error, error) {
	format, err := tarentry.ForSite(asOf)
	if err != nil {
		return nil, nil, err
	}
	file, err := d.files.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("create the tar file: %w", err)
	}
	// Pieces are large, so another buffer would only copy them.
	out := &tarOutput{file: file, format: format}
	return out, func() error { return errors.Join(out.close(), file.Close()) }, nil
}

// Look checks nothing: a tar file with a readable manifest was read to its end.
func (d *tarDestination) Look() *Look { return &Look{seed: maphash.MakeSeed()} }

// A tarBatch is a piece of a tar stream. Workers format pieces concurrently; only writes are in
// order.
type tarBatch struct {
	piece  []byte
	format *tarentry.Formatter
}

func (t *tarOutput) Begin() Batch {
	if b, ok := t.free.Get().(*tarBatch); ok {
		return b
	}
	return &tarBatch{format: t.format}
}

func (b *tarBatch) Put(entry site.Entry, body []byte) (err error) {
	if b.piece, err = b.format.Append(b.piece, string(entry.Key), body); err != nil {
		return fmt.Errorf("add %s to the tar file: %w", entry.Key, err)
	}
	return nil
}

func (t *tarOutput) Finish(b Batch) error {
	full := b.(*tarBatch)
	if _, err := t.file.Write(full.piece); err != nil {
		t.failed = true
		return fmt.Errorf("write the tar file: %w", err)
	}
	if cap(full.piece) <= maxFreePiece {
		full.piece = full.piece[:0]
		t.free.Put(full)
	}
	return nil
}

// close ends the archive.
func (t *tarOutput) close() error {
	if t.failed {
		return nil
	}
	if err := tar.NewWriter(t.file).Close(); err != nil {
		return fmt.Errorf("write the tar file: %w", err)
	}
	return nil
}

// Check returns an error if the output exists and is not the tar file of a site.
func (d *tarDestination) Check(ctx context.Context) (*Live, error) {
	info, err := d.files.Stat(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("inspect the output file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file; name a file that ends in .tar, or a folder that does not", d.path)
	}
	live := openLiveTar(ctx, d.files, d.path)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if live == nil && info.Size() > 0 {
		return nil, fmt.Errorf("%s holds no site that this version can read, and would be lost; name another file, or remove it", d.path)
	}
	return live, nil
}

// readTarBytes is the buffer size for reading a tar file.
const readTarBytes = 256 << 10

// openLiveTar reads the root and the manifest of the site in a tar file. They are at its end, so
// one pass over the headers finds them all. Most objects are smaller than a page: reading
// everything in large pieces takes half the time of the four system calls needed to skip each body.
func openLiveTar(ctx context.Context, files afero.Fs, path string) *Live {
	file, err := files.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	index := map[site.Key][]byte{}
	for archive := tar.NewReader(bufio.NewReaderSize(file, readTarBytes)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || ctx.Err() != nil {
			return nil
		}
		if header.Name != string(site.RootKey) && !strings.HasPrefix(header.Name, string(site.ManifestKey(""))) {
			continue
		}
		if index[site.Key(header.Name)], err = io.ReadAll(archive); err != nil {
			return nil
		}
	}
	return openLive(func(key site.Key) ([]byte, error) {
		if body, ok := index[key]; ok {
			return body, nil
		}
		return nil, fmt.Errorf("%s in %s: %w", key, path, site.ErrNotFound)
	})
}
