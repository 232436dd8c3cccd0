package snapshot_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/followpress/followpress/snapshot"
)

// TestLyingPages: a page that claims gigabytes is an error, and takes no memory for the claim.
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
		"a page of 2147483647 values, more than 16777216": func(h *format.PageHeader) { h.DataPageHeaderV2.V.NumValues = huge },
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
		err = snapshot.Reader[int]{Snapshot: files(dir), Workers: 2, Untimed: true, Done: func(snapshot.Block[int]) error { return nil }}.Records(t.Context(), func(*snapshot.Record) (int, error) { return 0, nil })
		runtime.ReadMemStats(&after)
		if err == nil || !strings.HasPrefix(err.Error(), "read records.parquet: row group 0: column token_id: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 64 {
			t.Errorf("%s: %d MiB of memory for a file of %d bytes", want, made, len(lying))
		}
	}
}

// A forgedPage is a page that demands much memory, or is not supported.
type forgedPage struct {
	header format.PageHeader
	data   []byte
}

// forge replaces the pages of a column of a file that has one row group.
func forge(t *testing.T, whole []byte, column int, codec format.CompressionCodec, pages ...forgedPage) []byte {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	footer := int(binary.LittleEndian.Uint32(whole[len(whole)-8:])) + 8
	forged := bytes.Clone(whole[:len(whole)-footer])
	begin := len(forged)
	chunk := &file.Metadata().RowGroups[0].Columns[column].MetaData
	chunk.Codec, chunk.DataPageOffset, chunk.DictionaryPageOffset = codec, int64(begin), 0
	for _, p := range pages {
		p.header.CompressedPageSize = int32(len(p.data))
		header, err := thrift.Marshal(new(thrift.CompactProtocol), &p.header)
		if err != nil {
			t.Fatal(err)
		}
		if p.header.Type == format.DictionaryPage {
			chunk.DictionaryPageOffset = int64(begin)
			chunk.DataPageOffset += int64(len(header) + len(p.data))
		}
		forged = append(append(forged, header...), p.data...)
	}
	chunk.TotalCompressedSize = int64(len(forged) - begin)
	metadata, err := thrift.Marshal(new(thrift.CompactProtocol), file.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	forged = append(forged, metadata...)
	return append(binary.LittleEndian.AppendUint32(forged, uint32(len(metadata))), "PAR1"...)
}

// TestSmallPagesOfMuchMemory: a page that expands to gigabytes, or lies about its size, is an error, and takes no
// memory for it.
func TestSmallPagesOfMuchMemory(t *testing.T) {
	const n = 1000
	lists := make([]parquetList, n)
	for i := range lists {
		lists[i] = parquetList{TokenID: strconv.Itoa(i), Owner: someAddress, User: text(someAddress)}
	}
	whole := parquetOf(t, lists, n)
	const owner, user = 1, 2
	v1 := func(encoding format.Encoding, size int, data []byte) forgedPage {
		h := format.DataPageHeader{NumValues: n, Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}
		return forgedPage{format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(size), DataPageHeader: thrift.New(h)}, data}
	}
	v2 := func(levels, data []byte) forgedPage {
		h := format.DataPageHeaderV2{NumValues: n, NumRows: n, Encoding: format.Plain, DefinitionLevelsByteLength: int32(len(levels))}
		body := append(bytes.Clone(levels), data...)
		return forgedPage{format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: int32(len(body)), DataPageHeaderV2: thrift.New(h)}, body}
	}
	dictionary := forgedPage{
		format.PageHeader{
			Type: format.DictionaryPage, UncompressedPageSize: 5, DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: 1}),
		}, []byte("\x01\x00\x00\x00x"),
	}
	const most = 1<<31 - 1
	run := append(binary.AppendUvarint(nil, most<<1), 0)
	packed := append(binary.AppendUvarint(nil, n<<1|1), 0) // 8,000 values, of which 8 are there
	levels := append(binary.LittleEndian.AppendUint32(nil, uint32(len(run))), run...)
	deltas := binary.AppendUvarint([]byte{128, 1, 4}, most)
	shared, rest := make([]int32, n), make([]int32, n)
	for i := range shared[1:] {
		shared[i+1] = 1 << 20
	}
	rest[0] = 1 << 20
	sharedLengths, err := parquet.DeltaBinaryPacked.EncodeInt32(nil, shared)
	if err != nil {
		t.Fatal(err)
	}
	restLengths, err := parquet.DeltaBinaryPacked.EncodeInt32(nil, rest)
	if err != nil {
		t.Fatal(err)
	}
	texts := append(append(sharedLengths, restLengths...), make([]byte, 1<<20)...)
	zeros := make([]byte, 48<<20)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	inZstd := encoder.EncodeAll(zeros, nil)
	var inGzip bytes.Buffer
	packer := gzip.NewWriter(&inGzip)
	if _, err := packer.Write(zeros); err != nil {
		t.Fatal(err)
	}
	if err := packer.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		column int
		codec  format.CompressionCodec
		pages  []forgedPage
		want   string
	}{
		"levels of version 1": {user, format.Uncompressed, []forgedPage{v1(format.Plain, len(levels), levels)}, "more values than it says"},
		"packed levels":       {user, format.Snappy, []forgedPage{v1(format.Plain, len(levels), snappy.Encode(nil, levels))}, "more values than it says"},
		"levels of version 2": {user, format.Uncompressed, []forgedPage{v2(run, nil)}, "more values than it says"},
		"an empty run before": {user, format.Uncompressed, []forgedPage{v2(append([]byte{0}, run...), nil)}, "more values than it says"},
		"packed, not there":   {owner, format.Uncompressed, []forgedPage{dictionary, v1(format.RLEDictionary, len(packed)+1, append([]byte{1}, packed...))}, "more values than it says"},
		"packed in no bits":   {owner, format.Uncompressed, []forgedPage{dictionary, v1(format.RLEDictionary, len(packed)+1, append([]byte{0}, packed...))}, "more values than it says"},
		"indexes":             {owner, format.Uncompressed, []forgedPage{dictionary, v1(format.RLEDictionary, len(run)+1, append([]byte{1}, run...))}, "more values than it says"},
		"RLE of no bits":      {owner, format.Uncompressed, []forgedPage{dictionary, v1(format.RLEDictionary, 6, append([]byte{0}, run...))}, "more values than it says"},
		"zstd":                {owner, format.Zstd, []forgedPage{v1(format.Plain, 1000, inZstd)}, "larger than it says"},
		"gzip":                {owner, format.Gzip, []forgedPage{v1(format.Plain, 1000, inGzip.Bytes())}, "larger than it says"},
		"snappy":              {owner, format.Snappy, []forgedPage{v1(format.Plain, 1000, binary.AppendUvarint(nil, 1<<30))}, "larger than it says"},
		"brotli":              {owner, format.Brotli, []forgedPage{v1(format.Plain, 1000, []byte{0})}, "unsupported compression BROTLI"},
		"lengths":             {owner, format.Uncompressed, []forgedPage{v1(format.DeltaLengthByteArray, len(deltas)+1, append(bytes.Clone(deltas), 0))}, "more values than it says"},
		"shared texts":        {owner, format.Uncompressed, []forgedPage{v1(format.DeltaByteArray, len(texts), texts)}, "more than 64 MiB"},
		"two headers": {owner, format.Uncompressed, []forgedPage{{
			format.PageHeader{Type: format.DataPage, DataPageHeader: v1(format.Plain, 0, nil).header.DataPageHeader, DictionaryPageHeader: dictionary.header.DictionaryPageHeader}, nil,
		}}, "fewer rows"},
	} {
		dir := t.TempDir()
		writeFile(t, dir, "lists.parquet", string(forge(t, whole, c.column, c.codec, c.pages...)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := snapshot.Reader[snapshot.List]{Snapshot: files(dir), Workers: 2, Done: func(snapshot.Block[snapshot.List]) error { return nil }}.Table(t.Context(), snapshot.TableLists)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got the error %v, want %q", name, err, c.want)
		}
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 32 {
			t.Errorf("%s: %d MiB of memory", name, made)
		}
	}
}

// TestEncodings: what other writers use is read: all compressions that are supported, both versions of
// pages, and the encodings of texts and numbers.
func TestEncodings(t *testing.T) {
	type list struct {
		TokenID string  `parquet:"token_id"`
		Owner   string  `parquet:"owner,dict"`
		User    *string `parquet:"user,optional,dict"`
	}
	const n = 2000
	rows := make([]list, n)
	for i := range rows {
		rows[i] = list{TokenID: strconv.Itoa(i), Owner: fmt.Sprintf("0x%040x", i%7)}
		if i%3 == 0 {
			rows[i].User = &rows[i].Owner
		}
	}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Zstd, &parquet.Gzip} {
		for version := 1; version <= 2; version++ {
			for _, encoding := range []encoding.Encoding{&parquet.DeltaByteArray, &parquet.DeltaLengthByteArray, &parquet.Plain} {
				dir := t.TempDir()
				writeFile(t, dir, "lists.parquet", string(parquetOf(t, rows, n, parquet.Compression(codec), parquet.DataPageVersion(version),
					parquet.PageBufferSize(5000), parquet.DefaultEncodingFor(parquet.ByteArray, encoding))))
				next := 0
				err := snapshot.Reader[snapshot.List]{Snapshot: files(dir), Workers: 2, Done: func(b snapshot.Block[snapshot.List]) error {
					for _, r := range b.Rows {
						if l := r.Value; l.TokenID != strconv.Itoa(next) || l.Owner.String() != rows[next].Owner || (l.User != nil) != (next%3 == 0) {
							t.Fatalf("row %d: got %+v", next, l)
						}
						next++
					}
					return nil
				}}.Table(t.Context(), snapshot.TableLists)
				if err != nil || next != n {
					t.Errorf("%s, version %d, %s: got %d rows and the error %v, want %d", codec, version, encoding, next, err, n)
				}
			}
		}
	}
}
