package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	parquetformat "github.com/parquet-go/parquet-go/format"
)

// Limits of a page of Parquet. Common writers make pages of 1 MiB.
const (
	maxPageBytes  = 64 << 20 // unless the file is larger
	maxPageValues = 16 << 20
)

// checkPages checks what the pages of a row group's columns say of their sizes. The library makes that
// much memory before it reads a page, so a small file could demand gigabytes. It returns how many bytes
// a row has where the rows are longest, apart from tags and what is in dictionaries.
func (p *parquetFile) checkPages(rowGroup int) (rowBytes int64, err error) {
	defer recovered(&err)
	for _, l := range p.columns {
		if l.index < 0 {
			continue
		}
		chunk := &p.parquet.Metadata().RowGroups[rowGroup].Columns[l.index].MetaData
		begin := chunk.DataPageOffset
		if chunk.DictionaryPageOffset != 0 {
			begin = chunk.DictionaryPageOffset
		}
		valueBytes, err := p.checkChunk(begin, chunk.TotalCompressedSize)
		if err != nil {
			return 0, fmt.Errorf("column %s: %w", l.name, err)
		}
		if l.kind != tagsColumn {
			rowBytes += valueBytes
		}
	}
	return rowBytes, nil
}

// checkChunk checks the pages from an offset on. It returns how many bytes a value has in the page where
// they are longest.
func (p *parquetFile) checkChunk(begin, length int64) (valueBytes int64, err error) {
	if begin < 0 || length < 0 || begin > p.parquet.Size() {
		return 0, errors.New("the file is damaged: a column is outside the file")
	}
	length = min(length, p.parquet.Size()-begin)
	section := io.NewSectionReader(p.at, begin, length)
	buffered := bufio.NewReaderSize(section, 512) // a header has some 50 bytes, but may have statistics
	for at := int64(0); at < length; {
		if _, err := section.Seek(at, io.SeekStart); err != nil {
			return 0, err
		}
		buffered.Reset(section)
		var header parquetformat.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(buffered)).Decode(&header); err != nil {
			return 0, fmt.Errorf("the file is damaged: the header of a page: %w", err)
		}
		read, err := section.Seek(0, io.SeekCurrent)
		if err != nil {
			return 0, err
		}
		if int64(header.UncompressedPageSize) > max(maxPageBytes, p.parquet.Size()) {
			return 0, fmt.Errorf("a page of %d bytes, more than %d MiB", header.UncompressedPageSize, maxPageBytes>>20)
		}
		values := max(header.DataPageHeader.V.NumValues, header.DataPageHeaderV2.V.NumValues, header.DictionaryPageHeader.V.NumValues)
		if values > maxPageValues {
			return 0, fmt.Errorf("a page of %d values, more than %d", values, maxPageValues)
		}
		if header.Type != parquetformat.DictionaryPage {
			valueBytes = max(valueBytes, int64(header.UncompressedPageSize)/int64(max(1, values)))
		}
		at = read - int64(buffered.Buffered()) + int64(header.CompressedPageSize)
		if header.CompressedPageSize < 0 || at > length {
			return 0, fmt.Errorf("the file is damaged: a page of %d bytes does not fit in", header.CompressedPageSize)
		}
	}
	return valueBytes, nil
}
