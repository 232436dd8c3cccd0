package memory

import (
	"bytes"
	"errors"
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

// New returns a snapshot in memory from the body of meta.json and the rows of tables.
func New(meta []byte, tables map[rowjson.Table][]Piece) afero.Fs {
	files := memory{table.MetaName: {{rows: Rows{meta, 1}}}}
	for _, t := range rowjson.AllTables() {
		if pieces, ok := tables[t]; ok || !t.Optional() {
			files[string(t)+lines.Formats[0].Ending] = pieces
		}
	}
	return afero.FromIOFS{FS: files}
}

// memory maps file names to pieces.
type memory map[string][]Piece

// Open opens a file, or the folder itself.
func (m memory) Open(name string) (fs.File, error) {
	if name == "." {
		return &memoryFolder{info: memoryInfo{name: ".", folder: true}, left: m.entries()}, nil
	}
	pieces, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memoryFile{info: infoOf(name, pieces), pieces: pieces}, nil
}

// Stat returns a file's info without opening it.
func (m memory) Stat(name string) (fs.FileInfo, error) {
	f, err := m.Open(name)
	if err != nil {
		return nil, err
	}
	return f.Stat()
}

func (m memory) entries() (all []fs.DirEntry) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fs.FileInfoToDirEntry(infoOf(name, m[name])))
	}
	return all
}

type memoryInfo struct {
	name   string
	size   int64
	folder bool
}

func infoOf(name string, pieces []Piece) memoryInfo {
	info := memoryInfo{name: name}
	for i := range pieces {
		info.size += pieces[i].size()
	}
	return info
}

func (i memoryInfo) Name() string       { return i.name }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return i.folder }
func (i memoryInfo) Sys() any           { return nil }
func (i memoryInfo) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type memoryFolder struct {
	info memoryInfo
	left []fs.DirEntry
}

func (f *memoryFolder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFolder) Close() error               { return nil }
func (f *memoryFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: errors.New("is a folder")}
}

// ReadDir implements fs.ReadDirFile.
func (f *memoryFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(f.left)
	} else if len(f.left) == 0 {
		return nil, io.EOF
	}
	some := f.left[:min(n, len(f.left))]
	f.left = f.left[len(some):]
	return some, nil
}

// A memoryFile reads the lines of pieces.
type memoryFile struct {
	info   memoryInfo
	pieces []Piece // from the current one
	text   []byte  // rest of the current piece
	begin  string  // rest of the line's start
	inside bool    // the first piece was begun
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFile) Close() error               { return nil }

// Read implements io.Reader.
func (f *memoryFile) Read(to []byte) (n int, err error) {
	for n < len(to) && (f.inside || len(f.pieces) > 0) {
		if !f.inside {
			f.text, f.inside = f.pieces[0].rows.text, true
			if len(f.text) > 0 {
				f.begin = f.pieces[0].begin
			}
		}
		if len(f.begin) > 0 {
			copied := copy(to[n:], f.begin)
			f.begin, n = f.begin[copied:], n+copied
			continue
		}
		line := f.text
		if f.pieces[0].begin != "" {
			line = line[:bytes.IndexByte(line, '\n')+1]
		}
		copied := copy(to[n:], line)
		f.text, n = f.text[copied:], n+copied
		switch {
		case len(f.text) == 0:
			f.pieces, f.inside = f.pieces[1:], false
		case copied == len(line):
			f.begin = f.pieces[0].begin
		}
	}
	if n == 0 && len(to) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
