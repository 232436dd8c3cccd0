package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	parquetformat "github.com/parquet-go/parquet-go/format"
)

// Limits of what a file of Parquet says of itself. The library makes as much memory as that claims,
// and follows it as deep as it goes, which can end the process.
const (
	maxFooterBytes  = 64 << 20  // with the least and the greatest value of each column, of up to 16 MiB
	maxHeaderBytes  = 128 << 20 // of a page, some of which have both twice
	maxColumns      = 10_000
	maxSchemaDepth  = 64
	maxThriftDepth  = 32
	freeElements    = 1024    // elements of lists that any footer may have
	bytesPerElement = 12      // which others have on average at least
	maxElements     = 1 << 18 // those of 8,000 row groups
)

var errFooter = errors.New("it is no Parquet file, or damaged: its footer")

// checkFooter checks the footer, which describes the file, before the library reads it.
func (p *parquetFile) checkFooter(size int64) error {
	const tail = 8 // the footer's length, and PAR1
	var end [tail]byte
	if size < tail {
		return errFooter
	}
	if _, err := p.at.ReadAt(end[:], size-tail); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(end[:]))
	switch {
	case string(end[4:]) != "PAR1" || length > size-tail:
		return errFooter
	case length > maxFooterBytes:
		return fmt.Errorf("its footer has %d bytes, more than %d MiB", length, maxFooterBytes>>20)
	}
	footer := make([]byte, length)
	if _, err := p.at.ReadAt(footer, size-tail-length); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s := thriftScan{data: footer, elements: min(freeElements+len(footer)/bytesPerElement, maxElements)}
	if err := s.structure(0); err != nil {
		return fmt.Errorf("%w: %w", errFooter, err)
	}
	var meta parquetformat.FileMetaData
	if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(footer)).Decode(&meta); err != nil {
		return fmt.Errorf("%w: %w", errFooter, err)
	}
	return checkSchema(&meta)
}

// checkSchema checks that the columns are a tree that is not too deep.
func checkSchema(meta *parquetformat.FileMetaData) error {
	if len(meta.Schema) > maxColumns {
		return fmt.Errorf("it has %d columns, more than %d", len(meta.Schema), maxColumns)
	}
	var left []int32 // children to come, by depth
	for i := range meta.Schema {
		for len(left) > 0 && left[len(left)-1] == 0 {
			left = left[:len(left)-1]
		}
		if i > 0 && len(left) == 0 {
			return errFooter
		}
		if i > 0 {
			left[len(left)-1]--
		}
		switch n := meta.Schema[i].NumChildren.V; {
		case n < 0 || int(n) > len(meta.Schema):
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

// A thriftScan reads values of thrift's compact protocol without making anything of them. It fails
// where they claim more than there is.
type thriftScan struct {
	data     []byte // what is left
	elements int    // of lists, sets and maps that may still come
}

var (
	errThrift = errors.New("a length is not right")
	errDeep   = fmt.Errorf("more than %d levels", maxThriftDepth)
	errMany   = errors.New("more elements than its size allows, or too many row groups")
)

// structure reads the members of a structure up to its end.
func (s *thriftScan) structure(depth int) error {
	if depth > maxThriftDepth {
		return errDeep
	}
	for {
		head, err := s.head()
		if err != nil || head == byte(thrift.STOP) {
			return err
		}
		if head>>4 == 0 { // the number of the member follows
			if _, err := s.varint(); err != nil {
				return err
			}
		}
		kind := thrift.Type(head & 0xf)
		if kind == thrift.TRUE || kind == thrift.FALSE {
			continue // the kind is the value
		}
		if err := s.value(kind, depth); err != nil {
			return err
		}
	}
}

func (s *thriftScan) value(kind thrift.Type, depth int) error {
	switch kind {
	case thrift.TRUE, thrift.FALSE, thrift.I8:
		return s.skip(1)
	case thrift.I16, thrift.I32, thrift.I64:
		_, err := s.varint()
		return err
	case thrift.DOUBLE:
		return s.skip(8)
	case thrift.BINARY:
		n, err := s.varint()
		if err != nil {
			return err
		}
		return s.skip(n)
	case thrift.LIST, thrift.SET:
		return s.list(depth + 1)
	case thrift.MAP:
		return s.mapping(depth + 1)
	case thrift.STRUCT:
		return s.structure(depth + 1)
	}
	return fmt.Errorf("a value of the unknown kind %d", kind)
}

func (s *thriftScan) list(depth int) error {
	head, err := s.head()
	n := uint64(head >> 4)
	if n == 0xf {
		n, err = s.varint()
	}
	if err != nil {
		return err
	}
	return s.values(n, depth, thrift.Type(head&0xf))
}

func (s *thriftScan) mapping(depth int) error {
	n, err := s.varint()
	if err != nil || n == 0 {
		return err
	}
	head, err := s.head()
	if err != nil {
		return err
	}
	return s.values(n, depth, thrift.Type(head>>4), thrift.Type(head&0xf))
}

// values reads so many values of each of some kinds, in turn.
func (s *thriftScan) values(n uint64, depth int, kinds ...thrift.Type) error {
	if depth > maxThriftDepth {
		return errDeep
	}
	if n > uint64(max(0, s.elements)) || n > uint64(len(s.data)) {
		return errMany
	}
	s.elements -= int(n)
	for range n {
		for _, kind := range kinds {
			if err := s.value(kind, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// head takes a byte that says what follows.
func (s *thriftScan) head() (byte, error) {
	if len(s.data) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	head := s.data[0]
	s.data = s.data[1:]
	return head, nil
}

func (s *thriftScan) varint() (uint64, error) {
	v, n := binary.Uvarint(s.data)
	if n == 0 {
		return 0, io.ErrUnexpectedEOF
	} else if n < 0 {
		return 0, errThrift
	}
	s.data = s.data[n:]
	return v, nil
}

func (s *thriftScan) skip(n uint64) error {
	if n > uint64(len(s.data)) {
		return io.ErrUnexpectedEOF
	}
	s.data = s.data[n:]
	return nil
}

// readHeader reads the header of a page at the beginning of a column's rest, and says how many
// bytes it has.
func readHeader(from io.ReaderAt, at, most int64, into *parquetformat.PageHeader) (length int64, err error) {
	const usual = 512 // a header has some 50 bytes, but may have statistics
	for size := int64(usual); ; size *= 8 {
		buf := make([]byte, min(size, most, maxHeaderBytes))
		n, err := from.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		s := thriftScan{data: buf[:n], elements: freeElements}
		err = s.structure(0)
		if errors.Is(err, io.ErrUnexpectedEOF) && int64(len(buf)) == size {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("the file is damaged: the header of a page: %w", err)
		}
		length = int64(n - len(s.data))
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(buf[:length])).Decode(into); err != nil {
			return 0, fmt.Errorf("the file is damaged: the header of a page: %w", err)
		}
		return length, nil
	}
}
