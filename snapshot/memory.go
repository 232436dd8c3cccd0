package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
	"github.com/followpress/followpress/snapshot/internal/table"
)

// Rows are rows of a table as bytes, which never change. Rows of records may be those of several
// lists: they lack the token id.
type Rows struct {
	text  []byte // lines, without what they begin with
	lines int
}

// A Piece is some rows of a table in memory. Pieces may share their Rows.
type Piece struct {
	begin string // of each line
	rows  Rows
}

// Piece are the rows as they are, of any table but records.
func (r Rows) Piece() Piece { return Piece{rows: r} }

// Of are the rows of the records of a list.
func (r Rows) Of(tokenID string) (Piece, error) {
	begin, err := rowjson.AppendRecordBegin(nil, tokenID)
	return Piece{string(begin), r}, err
}

// Len is how many rows there are.
func (r Rows) Len() int { return r.lines }

// Equal reports whether both have the same bytes.
func (r Rows) Equal(other Rows) bool { return bytes.Equal(r.text, other.text) }

// size is how many bytes the piece has.
func (p *Piece) size() int64 {
	return int64(len(p.rows.text)) + int64(len(p.begin))*int64(p.rows.lines)
}

// RecordRows makes rows of records, whose token ids do not matter. It refuses what WriteRecord would
// refuse.
func RecordRows(records []Record) (Rows, error) {
	b := make([]byte, 0, 128*len(records))
	for _, r := range records {
		if r.Type == "" {
			return Rows{}, errors.New("record_type: missing or empty")
		}
		from, err := len(b), error(nil)
		if b, err = rowjson.AppendRecordRest(b, r); err != nil {
			return Rows{}, err
		}
		if len(b)-from > rowjson.MaxLineBytes-maxBegin {
			return Rows{}, fmt.Errorf("a line of more than %d MiB", rowjson.MaxLineBytes>>20)
		}
		b = append(b, '\n')
	}
	return Rows{bytes.Clone(b), len(records)}, nil
}

// maxBegin is more than a row of records has before its version.
const maxBegin = 256

// ListRows makes rows of lists. It refuses what WriteList would refuse, but for a list that is there
// twice.
func ListRows(lists []List) (_ Rows, err error) {
	b := make([]byte, 0, 144*len(lists))
	for _, l := range lists {
		if b, err = rowjson.AppendList(b, l); err != nil {
			return Rows{}, err
		}
		b = append(b, '\n')
	}
	return Rows{b, len(lists)}, nil
}

// Addresses yields the addresses of rows of accounts or records that only one of two has: those of
// records that are about an address. Rows that both have in the same order cost next to nothing.
func Addresses(one, other Rows) []site.Address {
	a, b := one.text, other.text
	from := 0
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		if a[i] == '\n' {
			from = i + 1
		}
	}
	a, b = a[from:], b[from:]
	for len(a) > 0 && len(b) > 0 {
		// The last lines, as long as they are equal.
		i, j := bytes.LastIndexByte(a[:len(a)-1], '\n')+1, bytes.LastIndexByte(b[:len(b)-1], '\n')+1
		if !bytes.Equal(a[i:], b[j:]) {
			break
		}
		a, b = a[:i], b[:j]
	}
	count := map[string]int{}
	for line := range bytes.Lines(a) {
		count[string(line)]++
	}
	for line := range bytes.Lines(b) {
		count[string(line)]--
	}
	var found []site.Address
	for line, n := range count {
		if n == 0 {
			continue
		}
		if address, ok := addressIn(line); ok {
			found = append(found, address)
		}
	}
	slices.SortFunc(found, site.Address.Compare)
	return slices.Compact(found)
}

// addressIn finds the address that a row of accounts begins with, or that a record is about. The texts
// before it in a record are numbers, or the word address.
func addressIn(line string) (a site.Address, ok bool) {
	const digits = 2 + 2*len(a)
	for _, before := range []string{`{"address":"`, `,"record_type":"address","data":"`} {
		at := indexEnd(line, before)
		if at < 0 || len(line) < at+digits+1 || line[at+digits] != '"' {
			continue
		}
		if found, err := site.ParseAddress(line[at : at+digits]); err == nil {
			return found, true
		}
	}
	return a, false
}

// indexEnd is the index after the first of some text near the beginning of a line; -1 if it is not there.
func indexEnd(line, text string) int {
	at := bytes.Index([]byte(line[:min(len(line), maxBegin)]), []byte(text))
	if at < 0 {
		return -1
	}
	return at + len(text)
}

// WithPrimary are rows of accounts, in the order of addresses and without primary lists, and the rows
// of those accounts that name primary lists. naming has them in the order of addresses, without ENS.
func (r Rows) WithPrimary(naming []Account) (_ Rows, err error) {
	if len(naming) == 0 {
		return r, nil
	}
	b := make([]byte, 0, len(r.text)+96*len(naming))
	lines := 0
	end := func() { b, lines = append(b, '\n'), lines+1 }
	for line := range bytes.Lines(r.text) {
		address, ok := addressIn(string(line[:min(len(line), maxBegin)]))
		if !ok {
			return Rows{}, errors.New("a row of accounts does not begin with an address")
		}
		for len(naming) > 0 && naming[0].Address.Compare(address) < 0 {
			if b, err = rowjson.AppendAccount(b, naming[0]); err != nil {
				return Rows{}, err
			}
			end()
			naming = naming[1:]
		}
		if len(naming) == 0 || naming[0].Address != address {
			b, lines = append(b, line...), lines+1
			continue
		}
		if b, err = rowjson.AppendAccount(b, naming[0]); err != nil {
			return Rows{}, err
		}
		b = append(b[:len(b)-1], line[len(`{"address":""`)+2+2*len(address):]...)
		lines++
		naming = naming[1:]
	}
	for _, a := range naming {
		if b, err = rowjson.AppendAccount(b, a); err != nil {
			return Rows{}, err
		}
		end()
	}
	return Rows{b, lines}, nil
}

// InMemory is a Writer whose rows stay in memory, for Rows. It cannot be committed.
func InMemory() *Writer {
	w := newWriter()
	for _, table := range rowjson.AllTables() {
		w.tables[table] = &tableWriter{path: string(table) + lines.Formats[0].Ending, memory: true}
	}
	return w
}

// Rows are what was written to a table of a Writer in memory, which takes no more rows. ok is false if
// nothing was, unless Begin made the table.
func (w *Writer) Rows(t Table) (r Rows, ok bool, err error) {
	table := w.tables[t]
	if !table.memory {
		return Rows{}, false, errors.New("the rows of " + string(t) + " are not in memory")
	}
	if table.err == nil {
		table.flush()
	}
	r, ok, err = Rows{table.kept, table.rows}, table.rows > 0 || table.begun || table.copied != "", table.err
	table.finish(err)
	return r, ok, err
}

// NewMemory is a snapshot in memory, for reading: its files are those that Create makes without
// compression of the same rows. Tables that are absent have no rows, but recommended and ops, which are absent
// then. The files never change, and may be read from any number of goroutines.
//
// Rows stay text: a million records took 136 bytes each as text and 128 as structs with the memory of texts shared, which
// the garbage collector would have to walk, and digests, copies and comparisons of rows need the text. Reading the million
// takes 0.7 s on two cores, as from a file.
func NewMemory(m Meta, tables map[Table][]Piece) (afero.Fs, error) {
	meta, err := encodeMeta(m)
	if err != nil {
		return nil, err
	}
	files := memory{table.MetaName: {{rows: Rows{meta, 1}}}}
	for _, t := range rowjson.AllTables() {
		if pieces, ok := tables[t]; ok || !t.Optional() {
			files[string(t)+lines.Formats[0].Ending] = pieces
		}
	}
	return afero.FromIOFS{FS: files}, nil
}

// memory has the pieces of files by name.
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

// Stat describes a file without opening it.
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

// ReadDir is as fs.ReadDirFile has it.
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
	pieces []Piece // from the one that is being read
	text   []byte  // what is left of it
	begin  string  // what is left of the beginning of the line
	inside bool    // the first piece was begun
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFile) Close() error               { return nil }

// Read reads the next bytes.
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

// ByAddress are rows of accounts by the first byte of their addresses, in whose order they must be.
func (r Rows) ByAddress() (by [256]Rows, err error) {
	rest := r.text
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, '\n') + 1
		address, ok := addressIn(string(rest[:min(end, maxBegin)]))
		if !ok {
			return by, errors.New("a row of accounts does not begin with an address")
		}
		some := &by[address[0]]
		if some.lines == 0 {
			some.text = rest[:0]
		}
		some.text, some.lines = some.text[:len(some.text)+end], some.lines+1
		rest = rest[end:]
	}
	return by, nil
}
