package memory

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
	"github.com/followpress/followpress/snapshot/internal/table"
)

// New returns a snapshot in memory from the body of meta.json and the rows of tables, for snapshot.NewMemory.
func New(meta []byte, tables map[rowjson.Table][]Piece) afero.Fs {
	files := memory{table.MetaName: {{rows: Rows{meta, 1}}}}
	for _, t := range rowjson.AllTables() {
		if pieces, ok := tables[t]; ok || !t.Optional() {
			files[string(t)+lines.Formats[0].Ending] = pieces
		}
	}
	return snapshotFiles{afero.FromIOFS{FS: files}, slices.Sorted(maps.Keys(files))}
}

// snapshotFiles has the files of a snapshot. The folder itself cannot be opened.
type snapshotFiles struct {
	afero.FromIOFS
	names []string
}

// Names returns the names of the files.
func (f snapshotFiles) Names() []string { return f.names }

// memory maps file names to pieces.
type memory map[string][]Piece

// Open opens a file.
func (m memory) Open(name string) (fs.File, error) {
	pieces, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f := &memoryFile{info: memoryInfo{name: name}, pieces: pieces}
	for i := range pieces {
		f.info.size += pieces[i].size()
	}
	return f, nil
}

// Stat returns a file's info.
func (m memory) Stat(name string) (fs.FileInfo, error) {
	f, err := m.Open(name)
	if err != nil {
		return nil, err
	}
	return f.Stat()
}

type memoryInfo struct {
	name string
	size int64
}

func (i memoryInfo) Name() string       { return i.name }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) Mode() fs.FileMode  { return 0o444 }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return false }
func (i memoryInfo) Sys() any           { return nil }

// A memoryFile reads the lines of pieces.
type memoryFile struct {
	info   memoryInfo
	pieces []Piece // not yet begun
	begin  string  // start of each line of the current piece
	text   []byte  // lines of the current piece, without their start, that are not in rest
	rest   []byte  // bytes to return next
	line   []byte  // memory of rest, for lines with a start
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFile) Close() error               { return nil }

// Read implements io.Reader.
func (f *memoryFile) Read(to []byte) (n int, err error) {
	for n < len(to) && f.more() {
		copied := copy(to[n:], f.rest)
		n, f.rest = n+copied, f.rest[copied:]
	}
	if n == 0 && len(to) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// more sets rest unless bytes are left there. It returns false at the end.
func (f *memoryFile) more() bool {
	for len(f.rest) == 0 {
		switch {
		case len(f.text) == 0 && len(f.pieces) == 0:
			return false
		case len(f.text) == 0:
			f.begin, f.text, f.pieces = f.pieces[0].begin, f.pieces[0].rows.text, f.pieces[1:]
		case f.begin == "":
			f.rest, f.text = f.text, nil
		default:
			end := bytes.IndexByte(f.text, '\n') + 1
			f.line = append(append(f.line[:0], f.begin...), f.text[:end]...)
			f.rest, f.text = f.line, f.text[end:]
		}
	}
	return true
}
