package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/snapshot"
)

// readLists reads a file of the table lists, and returns its number of rows, valid or not.
func readLists(t *testing.T, dir string) (rows int, err error) {
	err = snapshot.Reader[snapshot.List]{Snapshot: files(dir), Workers: 1, Done: func(b snapshot.Block[snapshot.List]) error {
		rows += len(b.Rows) + len(b.Invalid)
		return nil
	}}.Table(t.Context(), snapshot.TableLists)
	return rows, err
}

// TestWorstLines: a line may have 16 MiB. Reading one takes a small multiple of that, with any
// contents and any compression.
func TestWorstLines(t *testing.T) {
	formats := map[string]func(io.Writer) io.WriteCloser{
		".ndjson":    func(w io.Writer) io.WriteCloser { return plain{w} },
		".ndjson.gz": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		".ndjson.zst": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	}
	texts := map[string]worst.Text{"a long line": {Begin: `{"token_id":"`, Again: "1"}, "blank lines": {Again: "\n"}, "white space": {Again: " "}}
	for _, name := range []string{"empty objects", "numbers", "members", "lists in lists", "objects in others", "escapes"} {
		texts[name+" in a row"] = worst.JSON[name].Around(`{"token_id":"1","owner":`)
	}
	for ending, compress := range formats {
		for name, text := range texts {
			if ending != ".ndjson" && name != "a long line" {
				continue
			}
			dir := t.TempDir()
			size := int64(worst.Size)
			if name != "a long line" {
				size /= 3 // more than a line may have
			}
			write(t, filepath.Join(dir, "lists"+ending), compress, text.Reader(size))
			worst.Check(t, ending+": "+name, 160<<20, func() {
				if rows, err := readLists(t, dir); rows == 0 && err == nil && name != "blank lines" {
					t.Errorf("%s, %s: got no error", ending, name)
				}
			})
		}
	}
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

func write(t *testing.T, path string, compress func(io.Writer) io.WriteCloser, from io.Reader) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := compress(file)
	if _, err := io.Copy(w, from); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// zstdFrame returns the header of a frame whose window is that power of two.
func zstdFrame(log int) []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd, 0, byte(log-10) << 3} }

// zeros are blocks of 128 KiB each, of which the last one ends the frame.
func zeros(blocks int) (all []byte) {
	for i := range blocks {
		header := uint32(128<<10)<<3 | 1<<1
		if i == blocks-1 {
			header |= 1
		}
		all = append(all, byte(header), byte(header>>8), byte(header>>16), '\n')
	}
	return all
}

// TestWorstZstd: the window claimed by a zstd file cannot exceed a limit of memory.
func TestWorstZstd(t *testing.T) {
	skippable := func(size int) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte{0x50, 0x2a, 0x4d, 0x18}, uint32(size)), make([]byte, size)...)
	}
	for name, test := range map[string]struct {
		file  []byte
		says  string
		bytes int64
	}{
		"512 MiB":             {append(zstdFrame(29), zeros(2_000)...), "without --ultra and --long", 8 << 20},
		"32 MiB":              {append(zstdFrame(25), zeros(512)...), "without --ultra and --long", 8 << 20},
		"16 MiB":              {append(zstdFrame(24), zeros(130)...), "", 96 << 20},
		"small frames":        {bytes.Repeat(append(zstdFrame(20), zeros(64)...), 16), "", 96 << 20},
		"a content of 1 TiB":  {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0}, "exceeds", 8 << 20},
		"a skippable frame":   {append(skippable(8<<20), append(zstdFrame(20), zeros(1)...)...), "", 16 << 20},
		"the length of 4 GiB": {append(binary.LittleEndian.AppendUint32([]byte{0x50, 0x2a, 0x4d, 0x18}, 1<<32-1), zeros(1)...), "cut off", 8 << 20},
	} {
		dir := t.TempDir()
		writeFile(t, dir, "lists.ndjson.zst", string(test.file))
		worst.Check(t, name, test.bytes, func() {
			_, err := readLists(t, dir)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: got %v, want %q", name, err, test.says)
			}
		})
	}
}

// TestWorstFooters: claims of a Parquet file take memory in proportion to its size.
func TestWorstFooters(t *testing.T) {
	file := func(footer []byte) string {
		return "PAR1" + string(footer) + string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + "PAR1"
	}
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x07} // 2³¹-1
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	repeat := func(n int, b ...byte) []byte { return bytes.Repeat(b, n) }
	many := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	nested := []byte{0x15, 2, 0x19, 0xfc} // version, and a schema in which each element has one child
	nested = join(nested, many(400_000), repeat(400_000, 0x48, 1, 'a', 0x15, 2, 0), []byte{0x16, 0, 0x19, 0x0c, 0})
	for name, footer := range map[string][]byte{
		"elements":             join([]byte{0x15, 2, 0x19, 0xfc}, huge),
		"elements in 21 bytes": join([]byte{0x15, 2, 0x19, 0xfc}, huge)[:9],
		"row groups":           join([]byte{0x15, 2, 0x19, 0x0c, 0x16, 0, 0x19, 0xfc}, huge),
		"a text":               join([]byte{0x15, 2, 0x68}, huge),
		"an unknown list":      join([]byte{0x09, 0x7e, 0xf5}, huge),
		"an unknown map":       join([]byte{0x0b, 0x7e}, huge, []byte{0x88}),
		"an unknown set":       join([]byte{0x0a, 0x7e, 0xfc}, huge),
		"empty elements":       join([]byte{0x15, 2, 0x19, 0xfc}, many(32<<20), repeat(32<<20, 0)),
		"empty row groups":     join([]byte{0x15, 2, 0x19, 0x0c, 0x16, 0, 0x19, 0xfc}, many(200_000), repeat(32<<20, 0)),
		"deep structures":      repeat(32<<20, 0x1c),
		"deep lists":           join([]byte{0x09, 0x7e}, repeat(32<<20, 0x19)),
		"deep columns":         nested,
		"nothing":              nil,
		"end":                  {0},
	} {
		dir := t.TempDir()
		text := file(footer)
		writeFile(t, dir, "lists.parquet", text)
		worst.Check(t, name, 32<<20+4*int64(len(text)), func() {
			if _, err := readLists(t, dir); err == nil || !strings.Contains(err.Error(), "lists.parquet") {
				t.Errorf("%s: got %v, want an error that names the file", name, err)
			}
		})
	}
	for name, length := range map[string]uint32{"longer than the file": 1 << 20, "4 GiB": 1<<32 - 1} {
		dir := t.TempDir()
		writeFile(t, dir, "lists.parquet", "PAR1"+string(binary.LittleEndian.AppendUint32(nil, length))+"PAR1")
		worst.Check(t, name, 8<<20, func() {
			if _, err := readLists(t, dir); err == nil {
				t.Errorf("%s: got no error", name)
			}
		})
	}
}

// TestWorstPageHeaders: hostile page headers do not cost more memory than allowed.
func TestWorstPageHeaders(t *testing.T) {
	var rows []parquetList
	for range 1000 {
		rows = append(rows, parquetList{TokenID: "1", Owner: someAddress})
	}
	whole := parquetOf(t, rows, 1000, parquet.Compression(&parquet.Uncompressed))
	for name, header := range map[string][]byte{
		"a text":   {0x18, 0xff, 0xff, 0xff, 0xff, 0x07},
		"a list":   {0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07},
		"a map":    {0x1b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x88},
		"deep":     bytes.Repeat([]byte{0x1c}, 1000),
		"a size":   {0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 2, 0},
		"negative": {0x15, 0, 0x15, 1, 0x15, 1, 0},
		"no end":   {0x16},
	} {
		dir := t.TempDir()
		damaged := bytes.Clone(whole)
		copy(damaged[4:], header)
		writeFile(t, dir, "lists.parquet", string(damaged))
		worst.Check(t, name, 16<<20, func() {
			if _, err := readLists(t, dir); err == nil || !strings.Contains(err.Error(), "row group 0: column token_id: ") {
				t.Errorf("%s: got %v, want an error that names the column", name, err)
			}
		})
	}
}

// TestWorstRowGroup: the pages of a row group are bounded together, and so are many rows of a block
// that have the same long text of a dictionary.
func TestWorstRowGroup(t *testing.T) {
	type list struct {
		TokenID *string `parquet:"token_id,optional"`
		Owner   *string `parquet:"owner,optional"`
		User    *string `parquet:"user,optional"`
	}
	const n = 16 << 20
	nulls := binary.AppendUvarint(nil, n<<1)
	nulls = append(nulls, 0)
	h := format.DataPageHeaderV2{NumValues: n, NumRows: n, NumNulls: n, Encoding: format.Plain, DefinitionLevelsByteLength: int32(len(nulls))}
	page := forgedPage{format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: int32(len(nulls)), DataPageHeaderV2: thrift.New(h)}, nulls}
	whole := parquetOf(t, make([]list, 1), 1)
	for column := range 3 {
		whole = forge(t, whole, column, format.Uncompressed, page)
	}
	dir := t.TempDir()
	writeFile(t, dir, "lists.parquet", string(whole))
	worst.Check(t, "nulls", 16<<20, func() {
		if _, err := readLists(t, dir); err == nil || !strings.Contains(err.Error(), "more than 256 MiB together") {
			t.Errorf("got %v, want that the pages are too large together", err)
		}
	})

	type recommended struct {
		Address string `parquet:"address"`
		Class   string `parquet:"class,dict"`
	}
	rows := make([]recommended, 3000)
	for i := range rows {
		rows[i] = recommended{someAddress, rows[0].Class}
		if i == 0 {
			rows[0].Class = strings.Repeat("x", 1<<20)
		}
	}
	writeFile(t, dir, "recommended.parquet", string(parquetOf(t, rows, 3000, parquet.Compression(&parquet.Snappy))))
	stop := errors.New("stop")
	worst.Check(t, "a dictionary", 160<<20, func() {
		err := snapshot.Reader[snapshot.Recommended]{Snapshot: files(dir), Workers: 1, Done: func(b snapshot.Block[snapshot.Recommended]) error {
			if len(b.Rows) > 16 {
				t.Errorf("a block of %d rows of 1 MiB", len(b.Rows))
			}
			return stop
		}}.Table(t.Context(), snapshot.TableRecommended)
		if !errors.Is(err, stop) {
			t.Error(err)
		}
	})
}
