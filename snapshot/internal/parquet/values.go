package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/rle"
	parquetformat "github.com/parquet-go/parquet-go/format"
)

var (
	errLevels = errors.New("the file is damaged: the levels of a page")
	errRuns   = errors.New("the file is damaged: a page has more values than it says")
)

// checkPage checks the levels and values of a page, and returns the page without surplus bytes after its texts.
func (s *pageStream) checkPage(page []byte, encoding parquetformat.Encoding) ([]byte, error) {
	v1, v2 := &s.header.DataPageHeader.V, &s.header.DataPageHeaderV2.V
	lengths := [2]int32{v2.RepetitionLevelsByteLength, v2.DefinitionLevelsByteLength}
	encodings := [2]parquetformat.Encoding{v1.RepetitionLevelEncoding, v1.DefinitionLevelEncoding}
	data, there := page, s.values
	for i, highest := range [2]int{s.column.MaxRepetitionLevel(), s.column.MaxDefinitionLevel()} {
		length, runs := int64(lengths[i]), highest > 0
		if s.header.Type == parquetformat.DataPage {
			if highest == 0 {
				continue
			}
			if len(data) < 4 {
				return nil, errLevels
			}
			length, data, runs = int64(binary.LittleEndian.Uint32(data)), data[4:], encodings[i] == parquetformat.RLE
		}
		if length > int64(len(data)) {
			return nil, errLevels
		}
		levels := data[:length]
		data = data[length:]
		if !runs {
			continue
		}
		width := bits.Len(uint(highest))
		if err := s.checkRuns(levels, width); err != nil {
			return nil, err
		}
		if i == 1 && surplus(data) {
			decoded, err := (&rle.Encoding{BitWidth: width}).DecodeLevels(nil, levels)
			if err != nil || len(decoded) < s.values {
				return nil, errLevels
			}
			there = bytes.Count(decoded[:s.values], []byte{byte(highest)})
		}
	}
	if encoding == parquetformat.Plain && s.column.Type().Kind() == lib.ByteArray && surplus(data) {
		rest := data
		for ; there > 0 && len(rest) >= 4; there-- {
			rest = rest[min(4+int64(binary.LittleEndian.Uint32(rest)), int64(len(rest))):]
		}
		return page[:len(page)-len(rest)], nil
	}
	return page, s.checkValues(data, encoding)
}

// surplus reports whether bytes may follow the texts of a page. fastparquet appends zero bytes, which the library
// would take for more texts, with a message on standard error.
func surplus(texts []byte) bool { return bytes.HasSuffix(texts, make([]byte, 4)) }

// checkRuns checks that runs of values of that many bits hold no more values than the page. The library expands all
// of them, up to 2³¹ for a run of some bytes. Packed values with existing bytes may exceed the page: DuckDB writes
// 256 at a time, and the library ignores the rest.
func (s *pageStream) checkRuns(data []byte, width int) error {
	made, r := uint64(0), scan{data: data}
	for len(r.data) > 0 {
		header := r.uvarint()
		count, size, most := header>>1, uint64(width+7)/8, uint64(s.values)
		switch {
		case count == 0:
			continue // like the library, which expects no value here
		case count > maxPageValues:
			return errRuns
		case header&1 != 0:
			size = count * uint64(width)
			count, most = 8*count, most+7
			if 0 < size && size <= uint64(len(r.data)) {
				most = maxPageValues
			}
		}
		if made += count; made > most {
			return errRuns
		}
		r.skip(min(size, uint64(len(r.data))))
	}
	if r.err != nil {
		return errRuns
	}
	return nil
}

func errEncoding(encoding parquetformat.Encoding) error {
	return fmt.Errorf("the encoding %s is not supported here", encoding)
}

// plainDictionary is the deprecated name of the encoding RLE_DICTIONARY, or of PLAIN in dictionaries.
const plainDictionary parquetformat.Encoding = 2

// checkValues checks that the library creates no more values of a data page than the page states.
func (s *pageStream) checkValues(data []byte, encoding parquetformat.Encoding) (err error) {
	switch encoding {
	case parquetformat.Plain, parquetformat.ByteStreamSplit:
	case plainDictionary, parquetformat.RLEDictionary:
		if len(data) > 0 {
			err = s.checkRuns(data[1:], int(data[0]))
		}
	case parquetformat.DeltaBinaryPacked, parquetformat.DeltaLengthByteArray:
		_, err = s.skipDeltas(data)
	case parquetformat.DeltaByteArray:
		err = s.checkShared(data)
	default:
		err = errEncoding(encoding)
	}
	return err
}

// checkShared checks texts that share a prefix with the previous one: with few bytes, each may be as long as all
// before it.
func (s *pageStream) checkShared(data []byte) error {
	made := int64(0)
	for range 2 { // lengths of shared prefixes, then of the rest
		rest, err := s.skipDeltas(data)
		if err != nil {
			return err
		}
		lengths, err := lib.DeltaBinaryPacked.DecodeInt32(nil, data[:len(data)-len(rest)])
		if err != nil {
			return err
		}
		for _, n := range lengths {
			if made += int64(n); n < 0 || made > maxPageBytes {
				return fmt.Errorf("a page of more than %d MiB, or damaged", maxPageBytes>>20)
			}
		}
		data = rest
	}
	return nil
}

// skipDeltas checks that packed differences hold no more values than the page, and returns the bytes after them.
func (s *pageStream) skipDeltas(data []byte) (rest []byte, err error) {
	r := scan{data: data}
	block, parts, values := r.uvarint(), r.uvarint(), r.uvarint()
	r.uvarint() // first value
	if r.err != nil || parts == 0 || parts > block || block > 1<<16 || values > uint64(s.values) {
		return nil, errRuns
	}
	inPart := block / parts
	for left := int(values) - 1; left > 0 && r.err == nil; {
		r.uvarint() // smallest difference
		widths := r.data[:min(parts, uint64(len(r.data)))]
		r.skip(parts)
		for _, width := range widths {
			r.skip(min(inPart*uint64(width)/8, uint64(len(r.data))))
			if left -= int(inPart); left <= 0 {
				break
			}
		}
	}
	if r.err != nil {
		return nil, errRuns
	}
	return r.data, nil
}
