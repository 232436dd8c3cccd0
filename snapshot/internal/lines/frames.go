package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// frameBytes is the size of rows after which a Writer ends a zstd frame, at a row end. Frames let many goroutines
// unpack a file, and cost less than a thousandth of its size.
const frameBytes = 4 << 20

// Compress returns a writer that compresses rows into w as a Writer does. To end frames at row ends, each Write must
// consist of whole rows. Close leaves w open.
func Compress(w io.Writer) (io.WriteCloser, error) {
	// For rows of records, the next level takes twice the time and makes a larger file, and a larger window only
	// takes more memory. A concurrency of 2 means one goroutine that compresses, a third of the work, while rows are
	// encoded. The bytes are the same.
	encoder, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithEncoderConcurrency(2))
	return &zstdFrames{Encoder: encoder, to: w}, err
}

// A zstdFrames compresses rows into frames.
type zstdFrames struct {
	*zstd.Encoder
	to      io.Writer
	inFrame int
}

// Write implements io.Writer.
func (f *zstdFrames) Write(rows []byte) (int, error) {
	if f.inFrame >= frameBytes {
		if err := f.Close(); err != nil {
			return 0, err
		}
		f.Reset(f.to)
		f.inFrame = 0
	}
	f.inFrame += len(rows)
	return f.Encoder.Write(rows)
}

// Limits of a frame that is unpacked concurrently. A Writer's blocks have 64 KiB; the maximum is 128 KiB.
const (
	maxFrameBytes    = 2 * frameBytes
	maxFrameBlocks   = maxFrameBytes / (64 << 10)
	maxBlockBytes    = 128 << 10
	blockHeaderBytes = 3
	checksumBytes    = 4
)

// A frameReader reads a zstd file of small frames, as a Writer makes them, and unpacks the next ones concurrently.
// From the first other frame on, it reads sequentially.
type frameReader struct {
	frames  chan *frame // in order
	spare   chan *frame // finished frames, for reuse
	decoder *zstd.Decoder
	done    chan struct{} // closed when reading ends
	running sync.WaitGroup

	current *frame
	rows    io.ReadCloser // rows of the current frame
}

// A frame is a small frame, or the rest of the file.
type frame struct {
	packed   []byte
	unpacked []byte
	err      error
	ready    chan struct{} // closed after unpacking
	rest     io.Reader     // nil for a small frame
}

// OpenFrames returns an opener of zstd files that unpacks frames in the given number of goroutines.
func OpenFrames(workers int) func(io.Reader) (io.ReadCloser, error) {
	return func(r io.Reader) (io.ReadCloser, error) {
		in := bufio.NewReaderSize(r, 64<<10)
		if _, err := in.Peek(1); err != nil {
			return nil, err // see openZstd
		}
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(workers), zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecoderMaxMemory(maxFrameBytes))
		if err != nil {
			return nil, err
		}
		f := &frameReader{frames: make(chan *frame, workers-1), spare: make(chan *frame, workers+1), decoder: d, done: make(chan struct{})}
		f.running.Go(func() { f.find(in) })
		return f, nil
	}
}

// find splits the file into frames and starts to unpack them.
func (f *frameReader) find(in *bufio.Reader) {
	defer close(f.frames)
	for {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return
		}
		next := f.take()
		small := next.read(in)
		if !small {
			next.rest = io.MultiReader(bytes.NewReader(next.packed), in)
		}
		select {
		case f.frames <- next:
		case <-f.done:
			return
		}
		if !small {
			return
		}
		f.running.Go(func() {
			next.unpacked, next.err = f.decoder.DecodeAll(next.packed, next.unpacked)
			close(next.ready)
		})
	}
}

// take returns an empty frame.
func (f *frameReader) take() *frame {
	next := &frame{ready: make(chan struct{})}
	select {
	case spare := <-f.spare:
		next.packed, next.unpacked = spare.packed[:0], spare.unpacked[:0]
	default:
		next.unpacked = make([]byte, 0, frameBytes+maxBlockBytes)
	}
	return next
}

// Read implements io.Reader.
func (f *frameReader) Read(p []byte) (int, error) {
	for {
		if f.rows != nil {
			n, err := f.rows.Read(p)
			if err == nil || !errors.Is(err, io.EOF) || n > 0 {
				return n, err
			}
			err = f.rows.Close()
			if f.rows = nil; err != nil {
				return 0, err
			}
			select {
			case f.spare <- f.current:
			default:
			}
		}
		var ok bool
		if f.current, ok = <-f.frames; !ok {
			return 0, io.EOF
		}
		var err error
		if f.rows, err = f.current.open(); err != nil {
			return 0, err
		}
	}
}

// Close stops all goroutines.
func (f *frameReader) Close() error {
	close(f.done)
	f.running.Wait()
	f.decoder.Close()
	if f.rows != nil {
		return f.rows.Close()
	}
	return nil
}

// open returns the rows of a frame. It reads a damaged frame again sequentially, so that the rows before the damage
// and the errors are those of any other file. The same holds for a frame that is larger than expected.
func (f *frame) open() (io.ReadCloser, error) {
	if f.rest != nil {
		return openZstd(f.rest)
	}
	if <-f.ready; f.err != nil {
		return openZstd(bytes.NewReader(f.packed))
	}
	return io.NopCloser(bytes.NewReader(f.unpacked)), nil
}

// read reads a frame without unpacking it, by its block headers. It returns false after a part of the frame if it is
// not small, or malformed.
func (f *frame) read(in *bufio.Reader) (small bool) {
	begin, _ := in.Peek(zstd.HeaderMaxSize) // fewer bytes at the end of the file
	var h zstd.Header
	if err := h.Decode(begin); err != nil || h.Skippable || h.DictionaryID != 0 || h.WindowSize > maxWindow || !f.add(in, h.HeaderSize) {
		return false
	}
	for range maxFrameBlocks {
		at := len(f.packed)
		if !f.add(in, blockHeaderBytes) {
			return false
		}
		header := uint32(f.packed[at]) | uint32(f.packed[at+1])<<8 | uint32(f.packed[at+2])<<16
		last, kind, size := header&1 != 0, header>>1&3, int(header>>3)
		switch kind {
		case repeatedByte:
			size = 1
		case reservedKind:
			return false
		}
		if size > maxBlockBytes || !f.add(in, size) {
			return false
		}
		if last {
			return !h.HasCheckSum || f.add(in, checksumBytes)
		}
	}
	return false
}

// Block types.
const (
	repeatedByte = 1
	reservedKind = 3
)

// add reads up to n more bytes of a frame.
func (f *frame) add(in *bufio.Reader, n int) bool {
	at := len(f.packed)
	f.packed = slices.Grow(f.packed, n)[:at+n]
	read, err := io.ReadFull(in, f.packed[at:])
	f.packed = f.packed[:at+read]
	return err == nil
}
