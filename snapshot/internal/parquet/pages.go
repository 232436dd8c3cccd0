package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	parquetformat "github.com/parquet-go/parquet-go/format"
)

// Limits of a page. Common writers make pages of 1 MiB.
const (
	maxPageBytes  = 64 << 20 // unless the file is larger
	maxPageValues = 16 << 20
	// MaxGroupBytes limits the pages and dictionaries of all columns of a row group, one page each, and of row groups
	// read ahead together. Some writers make one page per column and row group.
	MaxGroupBytes = 256 << 20 // unless the file is larger
	pageValue     = 8         // per value: lengths or indexes, and levels
	largePage     = 8 << 20
)

// A pageStream reads the pages of a column in a row group. As an io.ReaderAt it shows the pages uncompressed. The
// library allocates what a page claims, so it gets each page only after a check.
type pageStream struct {
	column    *lib.Column
	codec     parquetformat.CompressionCodec
	section   *io.SectionReader
	at        int64 // offset of the next header
	mostBytes int64 // per page

	header  parquetformat.PageHeader
	values  int   // values of the page, including nulls
	longest int64 // bytes of the longest dictionary value, which any row may have

	page             [2][]byte // a rewritten header, and the page unpacked
	begin            int64     // offset of the rest of both, among all unpacked pages
	packed, unpacked []byte    // memory of the page, or spare
}

// pagesOf returns the pages of a column in a row group.
func (p *File) pagesOf(rowGroup int, l leaf) (*pageStream, error) {
	chunk := &p.meta.RowGroups[rowGroup].Columns[l.index].MetaData
	begin, length := chunk.DataPageOffset, chunk.TotalCompressedSize
	if chunk.DictionaryPageOffset != 0 {
		begin = chunk.DictionaryPageOffset
	}
	if begin < 0 || length < 0 || begin > p.size {
		return nil, errors.New("the file is damaged: a column is outside the file")
	}
	return &pageStream{
		column: l.source, codec: chunk.Codec, section: io.NewSectionReader(p.at, begin, min(length, p.size-begin)),
		mostBytes: max(maxPageBytes, p.size),
	}, nil
}

// nextHeader reads the next page header, and returns the offset of the page.
func (s *pageStream) nextHeader() (begin int64, err error) {
	if s.at >= s.section.Size() {
		return 0, io.EOF
	}
	s.header = parquetformat.PageHeader{}
	length, err := readHeader(s.section, s.at, s.section.Size()-s.at, &s.header)
	if err != nil {
		return 0, err
	}
	h := &s.header
	begin = s.at + length
	s.at = begin + int64(h.CompressedPageSize)
	s.values = int(max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues))
	switch t := s.column.Type(); {
	case h.UncompressedPageSize < 0 || int64(h.UncompressedPageSize) > s.mostBytes:
		return 0, fmt.Errorf("a page of %d bytes, more than %d MiB", h.UncompressedPageSize, maxPageBytes>>20)
	case s.values > maxPageValues:
		return 0, fmt.Errorf("a page of %d values, more than %d", s.values, maxPageValues)
	case t.Kind() == lib.FixedLenByteArray && int64(t.Length())*int64(s.values) > s.mostBytes:
		return 0, fmt.Errorf("a page of %d values of %d bytes, more than %d MiB", s.values, t.Length(), maxPageBytes>>20)
	case h.CompressedPageSize < 0 || s.at > s.section.Size():
		return 0, fmt.Errorf("the file is damaged: a page of %d bytes does not fit in", h.CompressedPageSize)
	}
	return begin, nil
}

// size reads the headers of all pages. It returns the approximate memory of the longest rows, and of the largest page
// and the dictionary.
func (s *pageStream) size() (row, pages int64, err error) {
	var dictionary, largest int64
	for {
		_, err := s.nextHeader()
		if errors.Is(err, io.EOF) {
			s.at = 0
			return row, dictionary + largest, nil
		} else if err != nil {
			return 0, 0, err
		}
		size := int64(s.header.UncompressedPageSize)
		memory := size + pageValue*int64(s.values)
		if s.header.Type == parquetformat.DictionaryPage {
			dictionary = max(dictionary, memory)
		} else {
			largest, row = max(largest, memory), max(row, size/int64(max(1, s.values)))
		}
	}
}

// ReadAt implements io.ReaderAt for sequential reading.
func (s *pageStream) ReadAt(p []byte, off int64) (n int, err error) {
	if off != s.begin {
		return 0, errors.New("the file is damaged: a dictionary is missing")
	}
	for n < len(p) {
		if len(s.page[0])+len(s.page[1]) == 0 {
			if err := s.load(); err != nil {
				return n, err
			}
		}
		for i := range s.page {
			copied := copy(p[n:], s.page[i])
			n, s.page[i], s.begin = n+copied, s.page[i][copied:], s.begin+int64(copied)
		}
		if len(s.page[1]) == 0 && cap(s.packed)+cap(s.unpacked) > largePage {
			s.packed, s.unpacked, s.page[1] = nil, nil, nil // the library has a copy
		}
	}
	return n, nil
}

// load reads, unpacks and checks the next page.
func (s *pageStream) load() error {
	begin, err := s.nextHeader()
	if err != nil {
		return err
	}
	s.packed = slices.Grow(s.packed[:0], int(s.at-begin))[:s.at-begin]
	if n, err := s.section.ReadAt(s.packed, begin); n < len(s.packed) {
		return err
	}
	if crc := uint32(s.header.CRC); crc != 0 && crc != crc32.ChecksumIEEE(s.packed) {
		return errors.New("the file is damaged: the checksum of a page")
	}
	var data []byte
	switch h := &s.header; h.Type {
	case parquetformat.DictionaryPage:
		if data, err = s.unpack(0); err == nil {
			err = s.checkDictionary(data)
		}
	case parquetformat.DataPage:
		if data, err = s.unpack(0); err == nil {
			data, err = s.checkPage(data, h.DataPageHeader.V.Encoding)
		}
	case parquetformat.DataPageV2:
		v2 := &h.DataPageHeaderV2.V
		levels := int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
		if v2.RepetitionLevelsByteLength < 0 || v2.DefinitionLevelsByteLength < 0 || levels > int64(len(s.packed)) {
			return errLevels
		}
		if data, err = s.unpack(int(levels)); err == nil {
			data, err = s.checkPage(data, v2.Encoding)
		}
	}
	if err != nil {
		return err
	}
	size := int32(len(data))
	header := parquetformat.PageHeader{
		Type: s.header.Type, UncompressedPageSize: size, CompressedPageSize: size,
		DataPageHeader: s.header.DataPageHeader, DataPageHeaderV2: s.header.DataPageHeaderV2, DictionaryPageHeader: s.header.DictionaryPageHeader,
	}
	header.DataPageHeader.V.Statistics, header.DataPageHeaderV2.V.Statistics = parquetformat.Statistics{}, parquetformat.Statistics{}
	encoded, err := thrift.Marshal(new(thrift.CompactProtocol), &header)
	if err != nil {
		return err
	}
	s.page = [2][]byte{encoded, data}
	return nil
}

// zstdDecoder unpacks only as much as there is room for.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
})

var errPageSize = errors.New("the file is damaged: a page is larger than it says")

// unpack unpacks a page except for the first `levels` bytes. It fails if the page is larger than stated.
func (s *pageStream) unpack(levels int) (data []byte, err error) {
	size, packed := int(s.header.UncompressedPageSize)-levels, s.packed[levels:]
	v2 := &s.header.DataPageHeaderV2
	if s.codec == parquetformat.Uncompressed || len(packed) == 0 || v2.Valid && v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
		return s.packed, nil
	}
	if size < 0 {
		return nil, errPageSize
	}
	s.unpacked = append(slices.Grow(s.unpacked[:0], levels+size+1), s.packed[:levels]...)
	room := s.unpacked[levels : levels+size+1]
	switch s.codec {
	case parquetformat.Snappy:
		n := 0
		if n, err = snappy.DecodedLen(packed); n > size {
			return nil, errPageSize
		} else if err == nil {
			data, err = snappy.Decode(room, packed)
		}
	case parquetformat.Zstd:
		decoder, failed := zstdDecoder()
		if failed != nil {
			return nil, failed
		}
		data, err = decoder.DecodeAll(packed, room[:0:size])
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			return nil, errPageSize
		}
	case parquetformat.Gzip:
		data, err = gunzip(packed, room)
		if len(data) > size {
			return nil, errPageSize
		}
	default:
		return nil, fmt.Errorf("unsupported compression %s; use ZSTD, SNAPPY, GZIP or none", s.codec)
	}
	if err != nil {
		return nil, fmt.Errorf("the file is damaged: %w", err)
	}
	return s.unpacked[:levels+len(data)], nil
}

// gunzip unpacks as much as there is room for. It returns io.ErrUnexpectedEOF for truncated input.
func gunzip(packed, room []byte) ([]byte, error) {
	unpacker := new(gzip.Reader)
	if err := unpacker.Reset(bytes.NewReader(packed)); err != nil {
		return nil, err
	}
	for n := 0; ; { // the error of io.ReadFull would not distinguish the end from a truncation
		read, err := unpacker.Read(room[n:])
		n += read
		switch {
		case errors.Is(err, io.EOF) || n == len(room):
			return room[:n], nil
		case err != nil:
			return nil, err
		}
	}
}

// checkDictionary records the longest value.
func (s *pageStream) checkDictionary(data []byte) error {
	encoding := s.header.DictionaryPageHeader.V.Encoding
	if encoding != parquetformat.Plain && encoding != plainDictionary {
		return errEncoding(encoding)
	}
	s.longest = max(s.longest, int64(s.column.Type().Length()))
	for s.column.Type().Kind() == lib.ByteArray && len(data) >= 4 {
		n := int64(binary.LittleEndian.Uint32(data))
		s.longest = max(s.longest, n)
		data = data[min(4+n, int64(len(data))):]
	}
	return nil
}
