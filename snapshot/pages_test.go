package snapshot_test

import (
	"bytes"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/followpress/followpress/snapshot"
)

// TestLyingPages: a page that claims gigabytes is an error, and memory is not made for the claim.
func TestLyingPages(t *testing.T) {
	records := make([]parquetRecord, 1000)
	for i := range records {
		records[i].TokenID = strconv.Itoa(i * i)
	}
	whole := parquetOf(t, records, 1000)
	file, err := parquet.OpenFile(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	at := file.Metadata().RowGroups[0].Columns[0].MetaData.DataPageOffset
	var honest format.PageHeader
	if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(bytes.NewReader(whole[at:]))).Decode(&honest); err != nil {
		t.Fatal(err)
	}
	const huge = 1<<31 - 1
	for want, lie := range map[string]func(h *format.PageHeader){
		"a page of 2147483647 bytes does not fit in":      func(h *format.PageHeader) { h.CompressedPageSize = huge },
		"a page of 2147483647 bytes, more than 64 MiB":    func(h *format.PageHeader) { h.UncompressedPageSize = huge },
		"a page of 2147483647 values, more than 16777216": func(h *format.PageHeader) { h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues = huge, huge },
	} {
		header := honest
		lie(&header)
		// The longer header covers the beginning of the page, which is not read.
		encoded, err := thrift.Marshal(new(thrift.CompactProtocol), &header)
		if err != nil {
			t.Fatal(err)
		}
		dir, lying := t.TempDir(), bytes.Clone(whole)
		copy(lying[at:], encoded)
		writeFile(t, dir, "records.parquet", string(lying))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = snapshot.ReadRecords(t.Context(), files(dir), 2, false, func(*snapshot.Record) (int, error) { return 0, nil }, nil,
			func(snapshot.Block[int]) error { return nil })
		runtime.ReadMemStats(&after)
		if err == nil || !strings.HasPrefix(err.Error(), "read records.parquet: row group 0: column token_id: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 64 {
			t.Errorf("%s: %d MiB of memory for a file of %d bytes", want, made, len(lying))
		}
	}
}
