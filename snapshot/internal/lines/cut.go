package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// BlockBytes is the size of a block, which one worker parses.
const BlockBytes = 256 << 10

// A Block is a sequence of lines of a file.
type Block struct {
	First int    // number of the first line
	Lines []byte // whole lines
}

// A Recycler holds slices for reuse, which saves the garbage collector much work with large tables.
type Recycler[E any] chan []E

// Spares returns the number of slices worth keeping.
func Spares(workers int) int { return 4 * workers }

// Take returns a slice of n elements with arbitrary content.
func (r Recycler[E]) Take(n int) []E {
	select {
	case s := <-r:
		if cap(s) >= n {
			return s[:n]
		}
	default:
	}
	return make([]E, n)
}

// GiveBack returns a slice for reuse, unless it is as large as a long line.
func (r Recycler[E]) GiveBack(s []E) {
	if cap(s) > BlockBytes {
		return
	}
	select {
	case r <- s:
	default:
	}
}

// Blocks splits a file into blocks and closes it. Consumers may give back the blocks' memory.
func (f *File) Blocks(memory Recycler[byte]) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		err := f.cut(memory, func(b Block) bool { return yield(b, nil) })
		switch closed := f.Closed(); {
		case errors.Is(err, errStopped):
		case err != nil: // Closed would only repeat err
			yield(Block{}, err)
		case closed != nil:
			yield(Block{}, closed)
		}
	}
}

// errStopped means that the consumer wants no more blocks.
var errStopped = errors.New("stopped")

func (f *File) cut(memory Recycler[byte], yield func(Block) bool) error {
	number := 1
	var rest []byte // start of an incomplete line
	for {
		size := BlockBytes
		if len(rest) > BlockBytes/2 {
			// Double the size each time, so that a long line is not copied once per block.
			size = len(rest) + max(BlockBytes, min(len(rest), rowjson.MaxLineBytes-len(rest)))
		}
		buf := memory.Take(size)
		copy(buf, rest)
		n, err := fill(f, buf[len(rest):])
		buf = buf[:len(rest)+n]
		atEnd := errors.Is(err, io.EOF)
		if err != nil && !atEnd {
			return fmt.Errorf("read %s: near line %d: %w", f.Name, number, explainTruncated(err))
		}
		cut := bytes.LastIndexByte(buf, '\n') + 1
		if atEnd {
			cut = len(buf)
		}
		rest = append(rest[:0], buf[cut:]...) // the consumer may give back the block's memory
		if len(rest) > rowjson.MaxLineBytes {
			return &rowjson.RowError{File: f.Name, Line: number + bytes.Count(buf[:cut], []byte{'\n'}), Reason: fmt.Sprintf("a line of more than %d MiB", rowjson.MaxLineBytes>>20)}
		}
		first := number
		number += bytes.Count(buf[:cut], []byte{'\n'})
		if cut > 0 && !yield(Block{First: first, Lines: buf[:cut]}) {
			return errStopped
		}
		if atEnd {
			return nil
		}
	}
}

// fill reads until buf is full. Unlike io.ReadFull, it does not change errors, so that the end of a table (io.EOF)
// differs from a truncated compressed file (io.ErrUnexpectedEOF).
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var read int
		read, err = r.Read(buf[n:])
		n += read
	}
	return n, err
}

// ByteOrderMark is U+FEFF in UTF-8.
var ByteOrderMark = []byte("\xef\xbb\xbf")

// Each calls take with each non-blank line, without surrounding JSON white space. It skips a byte order mark at the
// start of the file (RFC 8259, section 8.1).
func (b Block) Each(take func(number int, line []byte)) {
	number := b.First
	for line := range bytes.Lines(b.Lines) {
		if number == 1 {
			line = bytes.TrimPrefix(line, ByteOrderMark)
		}
		if line = bytes.Trim(line, " \t\r\n"); len(line) > 0 {
			take(number, line)
		}
		number++
	}
}
