package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	parquetformat "github.com/parquet-go/parquet-go/format"
)

// A pageCheck checks pages, one after the other.
type pageCheck struct {
	column   *parquet.Column
	header   parquetformat.PageHeader
	values   int   // of the page, with those that are null
	made     int   // values that the library makes of its runs
	longest  int64 // bytes of a value of a dictionary, which any row may have
	packed   []byte
	unpacked []byte
	gzip     *gzip.Reader
}

var sparePageChecks = sync.Pool{New: func() any { return new(pageCheck) }}

// giveBack says that a pageCheck is not used any more. It keeps no memory of large pages.
func (c *pageCheck) giveBack() {
	if cap(c.packed)+cap(c.unpacked) <= 8<<20 {
		c.column, c.header = nil, parquetformat.PageHeader{}
		sparePageChecks.Put(c)
	}
}

// zstdDecoder unpacks no more than there is room for.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
})

var (
	errPageSize = errors.New("the file is damaged: a page is larger than it says")
	errLevels   = errors.New("the file is damaged: the levels of a page")
	errRuns     = errors.New("the file is damaged: a page has more values than it says")
)

// unpack unpacks (a part of) a page, which must not be larger than it says. It may return nil unless what
// is in it is wanted.
func (c *pageCheck) unpack(packed []byte, wanted bool) ([]byte, error) {
	size := int(c.header.UncompressedPageSize)
	switch codec := c.column.Compression().CompressionCodec(); codec {
	case parquetformat.Uncompressed:
		return packed, nil
	case parquetformat.Snappy:
		n, err := snappy.DecodedLen(packed)
		if err != nil {
			return nil, fmt.Errorf("the file is damaged: %w", err)
		}
		if n > size {
			return nil, errPageSize
		}
		if !wanted {
			return nil, nil
		}
		c.makeRoom(size)
		data, err := snappy.Decode(c.unpacked[:size], packed)
		if err != nil {
			return nil, fmt.Errorf("the file is damaged: %w", err)
		}
		return data, nil
	case parquetformat.Zstd:
		decoder, err := zstdDecoder()
		if err != nil {
			return nil, err
		}
		c.makeRoom(size)
		data, err := decoder.DecodeAll(packed, c.unpacked[:0:size])
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			return nil, errPageSize
		} else if err != nil {
			return nil, fmt.Errorf("the file is damaged: %w", err)
		}
		return data, nil
	case parquetformat.Gzip:
		return c.gunzip(packed, size)
	default:
		return nil, fmt.Errorf("the compression %s is not supported: use ZSTD, SNAPPY, GZIP or none", codec)
	}
}

// makeRoom makes room for a page and a byte more.
func (c *pageCheck) makeRoom(size int) {
	c.unpacked = slices.Grow(c.unpacked[:0], size+1)
}

func (c *pageCheck) gunzip(packed []byte, size int) (_ []byte, err error) {
	if c.gzip == nil {
		c.gzip = new(gzip.Reader)
	}
	if err := c.gzip.Reset(bytes.NewReader(packed)); err != nil {
		return nil, fmt.Errorf("the file is damaged: %w", err)
	}
	c.makeRoom(size)
	n, err := io.ReadFull(c.gzip, c.unpacked[:size+1])
	if err == nil {
		return nil, errPageSize
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("the file is damaged: %w", err)
	}
	return c.unpacked[:n], nil
}

// checkLevels checks the levels at the beginning of a page of version 1, and returns the rest.
func (c *pageCheck) checkLevels(data []byte, highest int, encoding parquetformat.Encoding) ([]byte, error) {
	if highest == 0 {
		return data, nil
	}
	if len(data) < 4 {
		return nil, errLevels
	}
	length := int64(binary.LittleEndian.Uint32(data))
	if data = data[4:]; length > int64(len(data)) {
		return nil, errLevels
	}
	levels, rest := data[:length], data[length:]
	switch encoding {
	case parquetformat.RLE:
		return rest, c.checkRuns(levels, bitsOf(highest))
	case parquetformat.BitPacked:
		if 8*len(levels)/bitsOf(highest) > c.values+7 {
			return nil, errRuns
		}
		return rest, nil
	}
	return nil, errEncoding(encoding)
}

// bitsOf is how many bits a level has.
func bitsOf(highest int) int { return bits.Len(uint(highest)) }

// checkRuns checks that runs of values of that many bits are not more values than the page has. The
// library makes all of them, up to 2³¹ for a run of some bytes. Packed values whose bytes are there
// may be more: DuckDB writes 256 at a time. The library ignores the rest.
func (c *pageCheck) checkRuns(data []byte, width int) error {
	made := uint64(0)
	for len(data) > 0 {
		header, n := binary.Uvarint(data)
		if n <= 0 {
			return errRuns
		}
		data = data[n:]
		count, size, most := header>>1, uint64(width+7)/8, uint64(c.values)
		switch {
		case count == 0:
			continue // as the library does, without a value
		case count > maxPageValues:
			return errRuns
		case header&1 != 0:
			size = count * uint64(width)
			count, most = 8*count, most+7
			if 0 < size && size <= uint64(len(data)) {
				most = maxPageValues
			}
		}
		if made += count; made > most {
			return errRuns
		}
		data = data[min(size, uint64(len(data))):]
	}
	c.made = max(c.made, int(made))
	return nil
}

func errEncoding(encoding parquetformat.Encoding) error {
	return fmt.Errorf("the encoding %s is not supported here", encoding)
}

// plainDictionary is the deprecated name of the encoding RLE_DICTIONARY, or of PLAIN in dictionaries.
const plainDictionary parquetformat.Encoding = 2

// checkValues checks the values of a data page. It returns how many bytes they become if they share some.
func (c *pageCheck) checkValues(data []byte, encoding parquetformat.Encoding) (made int64, err error) {
	switch encoding {
	case parquetformat.Plain:
		return 0, nil
	case plainDictionary, parquetformat.RLEDictionary:
		if len(data) == 0 {
			return 0, nil
		}
		return 0, c.checkRuns(data[1:], int(data[0]))
	}
	if err := c.checkFixed(); err != nil {
		return 0, err
	}
	switch encoding {
	case parquetformat.ByteStreamSplit:
		return 0, nil
	case parquetformat.DeltaBinaryPacked, parquetformat.DeltaLengthByteArray:
		_, err := c.skipDeltas(data)
		return 0, err
	case parquetformat.DeltaByteArray:
		return c.checkShared(data)
	}
	return 0, errEncoding(encoding)
}

// checkShared checks texts that begin like the one before: for some bytes, each may be as long as all
// that is before it.
func (c *pageCheck) checkShared(data []byte) (made int64, err error) {
	for range 2 { // lengths of what is shared, and of the rest
		rest, err := c.skipDeltas(data)
		if err != nil {
			return 0, err
		}
		lengths, err := parquet.DeltaBinaryPacked.DecodeInt32(nil, data[:len(data)-len(rest)])
		if err != nil {
			return 0, err
		}
		for _, n := range lengths {
			if made += int64(n); n < 0 || made > maxPageBytes {
				return 0, fmt.Errorf("a page of more than %d MiB, or damaged", maxPageBytes>>20)
			}
		}
		data = rest
	}
	return made, nil
}

// skipDeltas checks that packed differences are not more values than the page has, and returns what is
// behind them.
func (c *pageCheck) skipDeltas(data []byte) (rest []byte, err error) {
	var header [3]uint64 // values in a block, parts of a block, values
	for i := range header {
		if header[i], data, err = uvarint(data); err != nil {
			return nil, err
		}
	}
	if _, data, err = uvarint(data); err != nil { // the first value
		return nil, err
	}
	block, parts, values := header[0], header[1], header[2]
	if parts == 0 || parts > block || block > 1<<16 || values > uint64(c.values) {
		return nil, errRuns
	}
	inPart := int(block / parts)
	for left := int(values) - 1; left > 0; {
		if _, data, err = uvarint(data); err != nil { // the least difference
			return nil, err
		}
		widths := data[:min(int(parts), len(data))]
		data = data[len(widths):]
		for _, width := range widths {
			data = data[min(inPart*int(width)/8, len(data)):]
			if left -= inPart; left <= 0 {
				break
			}
		}
	}
	return data, nil
}

func uvarint(data []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil, errRuns
	}
	return v, data[n:], nil
}
