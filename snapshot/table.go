package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/spf13/afero"
)

// format is the version of snapshots that this package reads and writes.
const format = 1

// A fileFormat is the ending of tables' files, and how to read such files.
type fileFormat struct {
	ending string
	unpack func(io.Reader) (io.ReadCloser, error) // to lines of JSON; nil for Parquet
}

var fileFormats = []fileFormat{
	{".ndjson", func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(r), nil }},
	{".ndjson.gz", openGzip},
	{zstdEnding, openZstd},
	{".parquet", nil},
}

func openGzip(r io.Reader) (io.ReadCloser, error) {
	z := &gzipReader{from: bufio.NewReader(r)}
	var err error
	if z.member, err = gzip.NewReader(z.from); err != nil {
		return nil, err
	}
	z.member.Multistream(false)
	return z, nil
}

// A gzipReader reads the members of a file. Zero bytes after the last one fill a block of a tape or a disk, and are
// ignored, as gzip does.
type gzipReader struct {
	from   *bufio.Reader
	member *gzip.Reader
}

// Read implements io.Reader.
func (z *gzipReader) Read(p []byte) (int, error) {
	n, err := z.member.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	switch next, err := z.from.Peek(1); {
	case err != nil:
		return n, err
	case next[0] == 0:
		return n, z.zeros()
	}
	err = z.member.Reset(z.from)
	z.member.Multistream(false)
	return n, err
}

// zeros is io.EOF if nothing but zero bytes comes.
func (z *gzipReader) zeros() error {
	for {
		b, err := z.from.ReadByte()
		if err != nil {
			return err
		}
		if b != 0 {
			return gzip.ErrHeader
		}
	}
}

// Close implements io.Closer.
func (z *gzipReader) Close() error { return z.member.Close() }

const zstdEnding = ".ndjson.zst"

func openZstd(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReader(r)
	if _, err := buffered.Peek(1); err != nil {
		return nil, err // the decoder would take an empty file for an empty table
	}
	// Use one goroutine, because the parsers need the cores.
	d, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return zstdReader{d.IOReadCloser()}, nil
}

// maxWindow is how many bytes a file of zstd may refer back, which are kept in memory while it is
// read. The levels up to 19 need half of it, --ultra and --long may need more.
const maxWindow = 16 << 20

type zstdReader struct{ io.ReadCloser }

// Read says what to do about a window that is too large.
func (z zstdReader) Read(p []byte) (int, error) {
	n, err := z.ReadCloser.Read(p)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeTooSmall) {
		err = fmt.Errorf("%w: at most %d MiB are read: compress it again without --ultra and --long", err, maxWindow>>20)
	}
	return n, err
}

// realName returns the path of a file of a snapshot, if the snapshot is in a folder.
func realName(snapshot afero.Fs, name string) string {
	if folder, ok := snapshot.(interface {
		RealPath(name string) (string, error)
	}); ok {
		if path, err := folder.RealPath(name); err == nil {
			return path
		}
	}
	return name
}

type tableFile struct {
	io.Reader        // the rows
	name      string // of the file
	close     func() error
}

// ErrNoTable says that a snapshot does not have a table.
var ErrNoTable = errors.New("is not there")

// CheckTable opens the files of a table and closes them again. An error wraps ErrNoTable if the table
// is missing.
func CheckTable(snapshot afero.Fs, t Table) error {
	parts, err := partsOf(snapshot, t)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.check(snapshot, t); err != nil {
			return err
		}
	}
	return nil
}

func openFile(files afero.Fs, name string, open func(io.Reader) (io.ReadCloser, error)) (*tableFile, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open table %s: %w", name, err)
	}
	rows, err := open(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, explainTruncated(err)), file.Close())
	}
	return &tableFile{Reader: rows, name: name, close: func() error {
		return errors.Join(rows.Close(), file.Close())
	}}, nil
}

func (f *tableFile) closed() error {
	if err := f.close(); err != nil {
		return fmt.Errorf("close %s: %w", f.name, err)
	}
	return nil
}

// explainTruncated adds the most likely reason to an unexpected end of compressed data.
func explainTruncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("the file ends too early, it seems to be cut off: %w", err)
	}
	return err
}
