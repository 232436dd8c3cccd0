package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	parquetformat "github.com/parquet-go/parquet-go/format"
	"golang.org/x/sync/semaphore"
)

// Limits of a page of Parquet. Common writers make pages of 1 MiB.
const (
	maxPageBytes  = 64 << 20 // unless the file is larger
	maxPageValues = 16 << 20
	// Of a row group's columns, a page of each with its dictionary. Row groups that are read ahead have
	// as much together. Some writers make one page of each column of a row group.
	maxGroupBytes = 256 << 20 // unless the file is larger
	pageValue     = 8         // bytes for each value: lengths or indexes, and levels
	largePage     = 8 << 20
)

// checking bounds the large pages that are checked at a time, in bytes. No check waits for anything else.
var checking = semaphore.NewWeighted(maxCheckedBytes)

const maxCheckedBytes = 128 << 20

// A groupSize is about the memory that a row group takes.
type groupSize struct {
	row   int64 // of a row where they are longest, apart from tags
	pages int64 // of the largest page of each column and the dictionaries
}

// checkPages checks the pages of a row group's columns. The library makes as much memory as they claim,
// so a small file could demand gigabytes.
func (p *parquetFile) checkPages(rowGroup int) (size groupSize, err error) {
	defer recovered(&err)
	c := sparePageChecks.Get().(*pageCheck)
	defer c.giveBack()
	leaves := leavesOf(p.parquet.Root(), nil)
	for _, l := range p.columns {
		if l.index < 0 {
			continue
		}
		chunk := &p.parquet.Metadata().RowGroups[rowGroup].Columns[l.index].MetaData
		begin := chunk.DataPageOffset
		if chunk.DictionaryPageOffset != 0 {
			begin = chunk.DictionaryPageOffset
		}
		c.column = leaves[l.index]
		chunkSize, err := p.checkChunk(c, begin, chunk.TotalCompressedSize)
		if err != nil {
			return size, fmt.Errorf("column %s: %w", l.name, err)
		}
		if l.kind != tagsColumn {
			size.row += chunkSize.row
		}
		if size.pages += chunkSize.pages; size.pages > max(maxGroupBytes, p.parquet.Size()) {
			return size, fmt.Errorf("its pages take more than %d MiB together: write smaller ones", maxGroupBytes>>20)
		}
	}
	return size, nil
}

// leavesOf appends the leaf columns, in their order.
func leavesOf(c *parquet.Column, leaves []*parquet.Column) []*parquet.Column {
	if c.Leaf() {
		return append(leaves, c)
	}
	for _, child := range c.Columns() {
		leaves = leavesOf(child, leaves)
	}
	return leaves
}

// checkChunk checks the pages from an offset on.
func (p *parquetFile) checkChunk(c *pageCheck, begin, length int64) (size groupSize, err error) {
	if begin < 0 || length < 0 || begin > p.parquet.Size() {
		return size, errors.New("the file is damaged: a column is outside the file")
	}
	var dictionary, largest int64
	length = min(length, p.parquet.Size()-begin)
	section := io.NewSectionReader(p.at, begin, length)
	for at := int64(0); at < length; {
		c.header = parquetformat.PageHeader{}
		header, err := readHeader(section, at, length-at, &c.header)
		if err != nil {
			return size, err
		}
		if err := c.checkHeader(max(maxPageBytes, p.parquet.Size())); err != nil {
			return size, err
		}
		page := at + header
		at = page + int64(c.header.CompressedPageSize)
		if c.header.CompressedPageSize < 0 || at > length {
			return size, fmt.Errorf("the file is damaged: a page of %d bytes does not fit in", c.header.CompressedPageSize)
		}
		bytes, err := c.checkPage(io.NewSectionReader(section, page, at-page))
		if err != nil {
			return size, err
		}
		memory := bytes + pageValue*int64(max(c.values, c.made))
		if c.header.Type == parquetformat.DictionaryPage {
			dictionary = max(dictionary, memory)
			size.row = max(size.row, c.longest)
		} else {
			largest = max(largest, memory)
			size.row = max(size.row, bytes/int64(max(1, c.values)))
		}
	}
	size.pages = dictionary + largest
	return size, nil
}

// checkHeader checks what a page says of itself, and notes how many values it has.
func (c *pageCheck) checkHeader(mostBytes int64) error {
	h := &c.header
	if int64(h.UncompressedPageSize) > mostBytes {
		return fmt.Errorf("a page of %d bytes, more than %d MiB", h.UncompressedPageSize, maxPageBytes>>20)
	}
	c.made = 0
	c.values = int(max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues))
	if c.values > maxPageValues {
		return fmt.Errorf("a page of %d values, more than %d", c.values, maxPageValues)
	}
	if h.UncompressedPageSize < 0 || c.values < 0 {
		return errors.New("the file is damaged: a negative size")
	}
	return nil
}

// checkPage checks what is in a page, and returns how many bytes the library will make of it.
func (c *pageCheck) checkPage(r *io.SectionReader) (size int64, err error) {
	size = int64(c.header.UncompressedPageSize)
	if both := size + r.Size(); both > largePage {
		both = min(both, maxCheckedBytes)
		if err := checking.Acquire(context.Background(), both); err != nil {
			return 0, err
		}
		defer func() {
			c.packed, c.unpacked = nil, nil
			checking.Release(both)
		}()
	}
	c.packed = slices.Grow(c.packed[:0], int(r.Size()))[:r.Size()]
	if _, err := io.ReadFull(r, c.packed); err != nil {
		return 0, err
	}
	var made int64
	switch c.header.Type {
	case parquetformat.DictionaryPage:
		err = c.checkDictionary()
	case parquetformat.DataPage:
		made, err = c.checkV1()
	case parquetformat.DataPageV2:
		made, err = c.checkV2()
	}
	return max(size, made), err
}

func (c *pageCheck) checkDictionary() error {
	encoding := c.header.DictionaryPageHeader.V.Encoding
	if encoding != parquetformat.Plain && encoding != plainDictionary {
		return errEncoding(encoding)
	}
	if err := c.checkFixed(); err != nil {
		return err
	}
	isText := c.column.Type().Kind() == parquet.ByteArray
	data, err := c.unpack(c.packed, isText)
	if err != nil {
		return err
	}
	c.longest = int64(c.column.Type().Length())
	for isText && len(data) >= 4 {
		n := int64(binary.LittleEndian.Uint32(data))
		c.longest = max(c.longest, n)
		data = data[min(4+n, int64(len(data))):]
	}
	return nil
}

// checkFixed checks the memory of values of the same length, which the library makes at once.
func (c *pageCheck) checkFixed() error {
	if t := c.column.Type(); t.Kind() == parquet.FixedLenByteArray && int64(t.Length())*int64(c.values) > maxPageBytes {
		return fmt.Errorf("a page of %d values of %d bytes, more than %d MiB", c.values, t.Length(), maxPageBytes>>20)
	}
	return nil
}

func (c *pageCheck) checkV1() (made int64, err error) {
	h := &c.header.DataPageHeader.V
	repetition, definition := c.column.MaxRepetitionLevel(), c.column.MaxDefinitionLevel()
	data, err := c.unpack(c.packed, repetition > 0 || definition > 0 || h.Encoding != parquetformat.Plain)
	if err != nil || data == nil {
		return 0, err
	}
	if data, err = c.checkLevels(data, repetition, h.RepetitionLevelEncoding); err != nil {
		return 0, err
	}
	if data, err = c.checkLevels(data, definition, h.DefinitionLevelEncoding); err != nil {
		return 0, err
	}
	return c.checkValues(data, h.Encoding)
}

func (c *pageCheck) checkV2() (made int64, err error) {
	h := &c.header.DataPageHeaderV2.V
	data := c.packed
	for _, levels := range []struct {
		length  int32
		highest int
	}{
		{h.RepetitionLevelsByteLength, c.column.MaxRepetitionLevel()}, {h.DefinitionLevelsByteLength, c.column.MaxDefinitionLevel()},
	} {
		if levels.length < 0 || int(levels.length) > len(data) {
			return 0, errLevels
		}
		if levels.highest > 0 {
			if err := c.checkRuns(data[:levels.length], bitsOf(levels.highest)); err != nil {
				return 0, err
			}
		}
		data = data[levels.length:]
	}
	if !h.IsCompressed.Valid || h.IsCompressed.V {
		if data, err = c.unpack(data, h.Encoding != parquetformat.Plain); err != nil || data == nil {
			return 0, err
		}
	}
	return c.checkValues(data, h.Encoding)
}
