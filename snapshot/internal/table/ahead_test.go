package table

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/snapshot/internal/lines"
	room "github.com/followpress/followpress/snapshot/internal/parquet"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// TestReadAheadPages: sources whose pages are large wait for each other, in their order, whatever else
// is between them.
func TestReadAheadPages(t *testing.T) {
	const mib = 1 << 20
	synctest.Test(t, func(t *testing.T) {
		var reading, most atomic.Int64 // bytes of pages
		rows := 0
		source := func(pages int64, blocks int) rowSource {
			return func(yield func(block, error) bool) {
				if pages > 0 && !yield(block{pages: pages}, nil) {
					return
				}
				most.Store(max(most.Load(), reading.Add(min(pages, room.MaxGroupBytes)))) // one at a time, or it is too many
				for range blocks {
					if !yield(block{lines: make([]byte, 1)}, nil) {
						return
					}
				}
				reading.Add(-min(pages, room.MaxGroupBytes))
			}
		}
		sources := []rowSource{
			source(100*mib, 3), source(0, 1), source(0, 0), source(100*mib, 0), source(100*mib, 1), source(0, 100),
			source(room.MaxGroupBytes, 1), source(10*room.MaxGroupBytes, 1), source(1, 1), source(100*mib, 100), source(200*mib, 100),
		}
		sideBySide(sources, 8)(func(block, error) bool {
			synctest.Wait()
			rows++
			return true
		})
		if rows != 308 || most.Load() > room.MaxGroupBytes {
			t.Errorf("got %d blocks and %d MiB of pages at a time, want 308 and at most 256 MiB", rows, most.Load()/mib)
		}
	})
}

// TestWorstRowGroups: a small file with eight row groups of 60 MiB each, which share the same pages. They are not in
// memory at the same time.
func TestWorstRowGroups(t *testing.T) {
	type row struct {
		TokenID string `parquet:"token_id"`
		Owner   string `parquet:"owner"`
	}
	rows := make([]row, 1000)
	for i := range rows {
		rows[i] = row{strings.Repeat("0", 30<<10), strings.Repeat("0", 30<<10)}
	}
	var whole bytes.Buffer
	w := parquet.NewGenericWriter[row](&whole, parquet.PageBufferSize(40<<20), parquet.Compression(&parquet.Snappy))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(whole.Bytes()), int64(whole.Len()))
	if err != nil {
		t.Fatal(err)
	}
	metadata := file.Metadata()
	for range 7 {
		metadata.RowGroups = append(metadata.RowGroups, metadata.RowGroups[0])
	}
	metadata.NumRows *= 8
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), metadata)
	if err != nil {
		t.Fatal(err)
	}
	whole.Write(append(binary.LittleEndian.AppendUint32(footer, uint32(len(footer))), "PAR1"...))
	files := afero.NewMemMapFs()
	if err := afero.WriteFile(files, "lists.parquet", whole.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		table, err := openTable(files, selection{table: rowjson.TableLists}, false, make(lines.Recycler[byte]))
		if err != nil {
			t.Fatal(err)
		}
		before, got := live(), 0
		sideBySide(table.sources, 8)(func(b block, err error) bool {
			if err != nil {
				t.Fatal(err)
			}
			if got == 0 {
				synctest.Wait() // until all that may be read ahead is
				if used := (live() - before) >> 20; used > 320 {
					t.Errorf("%d MiB are in use, want about 256 MiB for pages", used)
				}
			}
			got += b.rows.N
			return true
		})
		if err := table.close(); err != nil || got != 8*len(rows) {
			t.Errorf("got %d rows and the error %v, want %d", got, err, 8*len(rows))
		}
	})
}

// live returns how many bytes are in use.
func live() int64 {
	runtime.GC()
	runtime.GC() // the second one empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
