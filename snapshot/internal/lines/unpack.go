package lines

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/spf13/afero"
)

// A Format is a file name ending of tables, and how to unpack such files.
type Format struct {
	Ending string
	Unpack func(io.Reader) (io.ReadCloser, error) // to lines of JSON; nil for Parquet
}

// Formats lists all formats, Parquet last.
var Formats = []Format{
	{".ndjson", func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(r), nil }},
	{".ndjson.gz", func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }},
	{".ndjson.zst", openZstd},
	{".parquet", nil},
}

func openZstd(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReader(r)
	if _, err := buffered.Peek(1); err != nil {
		return nil, err // the decoder would accept an empty file as an empty table
	}
	// One goroutine, because the parsers need the cores.
	d, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return zstdReader{d.IOReadCloser()}, nil
}

// maxWindow is the maximum window of a zstd file in bytes, held in memory while it is read. Levels up to 19 need half
// of it; --ultra and --long may need more.
const maxWindow = 16 << 20

type zstdReader struct{ io.ReadCloser }

// Read implements io.Reader, and explains a window that is too large.
func (z zstdReader) Read(p []byte) (int, error) {
	n, err := z.ReadCloser.Read(p)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeTooSmall) {
		err = fmt.Errorf("%w: the maximum is %d MiB; compress the file again without --ultra and --long", err, maxWindow>>20)
	}
	return n, err
}

// A File is an open file of lines.
type File struct {
	io.Reader        // the rows
	Name      string // name of the file
	close     func() error
}

// Open opens a file and unpacks it with open.
func Open(files afero.Fs, name string, open func(io.Reader) (io.ReadCloser, error)) (*File, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open table %s: %w", name, err)
	}
	rows, err := open(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, explainTruncated(err)), file.Close())
	}
	return &File{Reader: rows, Name: name, close: func() error {
		return errors.Join(rows.Close(), file.Close())
	}}, nil
}

// Closed closes the file. Errors name it.
func (f *File) Closed() error {
	if err := f.close(); err != nil {
		return fmt.Errorf("close %s: %w", f.Name, err)
	}
	return nil
}

// explainTruncated adds the likely reason to an unexpected end of compressed data.
func explainTruncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("the file ends too early, it seems to be cut off: %w", err)
	}
	return err
}
