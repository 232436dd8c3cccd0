package parquet

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	parquetformat "github.com/parquet-go/parquet-go/format"
)

// Limits of claims in a Parquet file. The library allocates and recurses as claimed, which could
// kill the process.
const (
	maxFooterBytes  = 64 << 20  // includes minimum and maximum of each column, of up to 16 MiB
	maxHeaderBytes  = 128 << 20 // header limit of a page, some of which have both twice
	maxColumns      = 10_000
	maxSchemaDepth  = 64
	maxThriftDepth  = 32
	freeElements    = 1024    // list elements allowed in any footer
	bytesPerElement = 12      // minimum average beyond these
	maxElements     = 1 << 18 // enough for 8,000 row groups
)

var errFooter = errors.New("not a Parquet file, or damaged: its footer")

// openFooter reads the footer, which describes the file. It opens the file for the library as if no page were
// compressed, because a pageStream unpacks them.
func (p *File) openFooter() error {
	const tail = 8 // the footer's length, and PAR1
	var end [tail]byte
	if p.size < tail {
		return errFooter
	}
	if _, err := p.at.ReadAt(end[:], p.size-tail); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(end[:]))
	switch {
	case string(end[4:]) != "PAR1" || length > p.size-tail:
		return errFooter
	case length > maxFooterBytes:
		return fmt.Errorf("its footer has %d bytes, more than %d MiB", length, maxFooterBytes>>20)
	}
	footer := make([]byte, length)
	if _, err := p.at.ReadAt(footer, p.size-tail-length); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s := scan{data: footer, elements: min(freeElements+len(footer)/bytesPerElement, maxElements)}
	if s.structure(0); s.err != nil {
		return fmt.Errorf("%w: %w", errFooter, s.err)
	}
	if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(footer)).Decode(&p.meta); err != nil {
		return fmt.Errorf("%w: %w", errFooter, err)
	}
	if err := checkSchema(p.meta.Schema); err != nil {
		return err
	}
	unpacked := p.meta
	unpacked.RowGroups = slices.Clone(unpacked.RowGroups)
	for i := range unpacked.RowGroups {
		group := &unpacked.RowGroups[i]
		group.Columns = slices.Clone(group.Columns)
		for j := range group.Columns {
			chunk := &group.Columns[j].MetaData
			chunk.Codec, chunk.Statistics = parquetformat.Uncompressed, parquetformat.Statistics{}
			chunk.DataPageOffset, chunk.DictionaryPageOffset, chunk.TotalCompressedSize = 0, 0, math.MaxInt64
		}
	}
	described, err := thrift.Marshal(new(thrift.CompactProtocol), &unpacked)
	if err != nil {
		return fmt.Errorf("%w: %w", errFooter, err)
	}
	described = slices.Concat([]byte("PAR1"), described, binary.LittleEndian.AppendUint32(nil, uint32(len(described))), []byte("PAR1"))
	p.parquet, err = lib.OpenFile(bytes.NewReader(described), int64(len(described)), lib.SkipPageIndex(true), lib.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("%w: %w", errFooter, err)
	}
	return nil
}

// checkSchema checks that the columns form a tree of limited depth, because parquet-go stores the path of each
// column.
func checkSchema(schema []parquetformat.SchemaElement) error {
	if len(schema) > maxColumns {
		return fmt.Errorf("it has %d columns, more than %d", len(schema), maxColumns)
	}
	var left []int32 // remaining children, by depth
	for i := range schema {
		for len(left) > 0 && left[len(left)-1] == 0 {
			left = left[:len(left)-1]
		}
		if i > 0 && len(left) == 0 {
			return errFooter
		}
		if i > 0 {
			left[len(left)-1]--
		}
		switch n := schema[i].NumChildren.V; {
		case n < 0 || int(n) > len(schema):
			return errFooter
		case n > 0:
			left = append(left, n)
		}
		if len(left) > maxSchemaDepth {
			return fmt.Errorf("its columns are nested more than %d deep", maxSchemaDepth)
		}
	}
	return nil
}

// A scan skips values of Thrift's compact protocol. It fails if they claim more than the data holds; then it has no
// data left.
type scan struct {
	data     []byte // rest
	elements int    // maximum number of remaining elements of lists, sets and maps
	err      error
}

func (s *scan) fail(err error) { s.data, s.err = nil, cmp.Or(s.err, err) }

func (s *scan) skip(n uint64) {
	if n > uint64(len(s.data)) {
		s.fail(io.ErrUnexpectedEOF)
		return
	}
	s.data = s.data[n:]
}

func (s *scan) uvarint() uint64 {
	v, n := binary.Uvarint(s.data)
	if n < 0 {
		s.fail(errors.New("a length is wrong"))
		return 0
	}
	s.skip(uint64(max(1, n)))
	return v
}

// head takes a byte that describes what follows.
func (s *scan) head() (head byte) {
	if len(s.data) > 0 {
		head = s.data[0]
	}
	s.skip(1)
	return head
}

// structure skips a structure.
func (s *scan) structure(depth int) {
	for s.err == nil {
		head := s.head()
		if head == byte(thrift.STOP) {
			return
		}
		if head>>4 == 0 { // the member's number follows
			s.uvarint()
		}
		if kind := thrift.Type(head & 0xf); kind != thrift.TRUE && kind != thrift.FALSE { // for booleans, the kind is the value
			s.value(kind, depth+1)
		}
	}
}

func (s *scan) value(kind thrift.Type, depth int) {
	if depth > maxThriftDepth {
		s.fail(fmt.Errorf("more than %d levels", maxThriftDepth))
		return
	}
	switch kind {
	case thrift.TRUE, thrift.FALSE, thrift.I8:
		s.skip(1)
	case thrift.I16, thrift.I32, thrift.I64:
		s.uvarint()
	case thrift.DOUBLE:
		s.skip(8)
	case thrift.BINARY:
		s.skip(s.uvarint())
	case thrift.STRUCT:
		s.structure(depth)
	case thrift.LIST, thrift.SET:
		head := s.head()
		n := uint64(head >> 4)
		if n == 0xf {
			n = s.uvarint()
		}
		s.values(n, depth, thrift.Type(head&0xf))
	case thrift.MAP:
		if n := s.uvarint(); n > 0 {
			head := s.head()
			s.values(n, depth, thrift.Type(head>>4), thrift.Type(head&0xf))
		}
	default:
		s.fail(fmt.Errorf("a value of the unknown kind %d", kind))
	}
}

// values skips n values of each of the kinds, in turn.
func (s *scan) values(n uint64, depth int, kinds ...thrift.Type) {
	if n > uint64(max(0, s.elements)) || n > uint64(len(s.data)) {
		s.fail(errors.New("more elements than its size allows, or too many row groups"))
	}
	s.elements -= int(min(n, maxElements))
	for ; n > 0 && s.err == nil; n-- {
		for _, kind := range kinds {
			s.value(kind, depth+1)
		}
	}
}

// readHeader reads a page header at an offset, and returns its length.
func readHeader(from io.ReaderAt, at, most int64, into *parquetformat.PageHeader) (length int64, err error) {
	const usual = 512 // headers have some 50 bytes, more with statistics
	for size := int64(usual); ; size *= 8 {
		buf := make([]byte, min(size, most, maxHeaderBytes))
		n, err := from.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		s := scan{data: buf[:n], elements: freeElements}
		s.structure(0)
		if errors.Is(s.err, io.ErrUnexpectedEOF) && int64(len(buf)) == size {
			continue
		}
		length = int64(n - len(s.data))
		if err = s.err; err == nil {
			err = thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(buf[:length])).Decode(into)
		}
		if err != nil {
			return 0, fmt.Errorf("the file is damaged: the header of a page: %w", err)
		}
		return length, nil
	}
}
