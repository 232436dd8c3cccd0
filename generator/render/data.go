package render

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"path"
	"slices"
	"sync"

	"github.com/followpress/followpress/generator/internal/dataset"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/data"
	"github.com/followpress/followpress/site/routes"
)

// A dataRenderer renders the graph itself as files: tables, and the package that describes them.
// The graph determines how tables are cut into files, so each file can be rendered at any time.
type dataRenderer struct {
	*Graph
	ranks   *Ranks
	licence string
	order   func() *dataOrder
	files   []*dataFile
}

// A dataOrder is the order of rows.
type dataOrder struct {
	rowOf []uint32 // by account: its row among all accounts, sorted by address
	lists []uint32 // by the row of their account, then by token ID as text
}

// A dataTable is a table of the graph.
type dataTable struct {
	dataset.Table
	rows  int64
	most  int64                                   // estimated maximum bytes of all rows in one row group
	weigh func(p *dataPlan)                       // calls p.row for each row in order
	write func(w *dataset.Writer, from, to int64) // writes rows [from, to)
}

// A dataFile is a table or part of one.
type dataFile struct {
	table *dataTable
	key   site.Key
	dataSpan

	mu    sync.Mutex
	facts *dataset.Facts // nil until the file was rendered
}

func newDataRenderer(g *Graph, r *Ranks, config site.Config) *dataRenderer {
	d := &dataRenderer{Graph: g, ranks: r, licence: config.DataLicence}
	d.order = sync.OnceValue(d.sort)
	tables := []*dataTable{d.accounts(), d.badges(), d.edges(), d.follows()}
	if g.History != nil {
		tables = append(tables, d.operations())
	}
	for _, t := range tables {
		spans := t.plan()
		for part, span := range spans {
			if len(spans) > 1 {
				part++
			}
			f := &dataFile{table: t, key: data.Key(data.Table(t.Name), part), dataSpan: span}
			d.files = append(d.files, f)
		}
	}
	return d
}

func (d *dataRenderer) sort() *dataOrder {
	o := &dataOrder{rowOf: make([]uint32, len(d.Accounts)), lists: numbersBelow(len(d.Tokens))}
	for row, account := range d.ranks.ByAddress {
		o.rowOf[account] = uint32(row)
	}
	slices.SortFunc(o.lists, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(o.rowOf[d.Owners[a]], o.rowOf[d.Owners[b]]), cmp.Compare(d.Tokens[a], d.Tokens[b]))
	})
	return o
}

// kind returns the kind of the files. Each file is a chunk, unless it is small.
func (d *dataRenderer) kind() UnitKind {
	return UnitKind{len(d.files), func(unit int) int { return int(d.files[unit].to - d.files[unit].from) }, d.renderFile}
}

// packageKind returns the kind of the package, to be rendered after the files.
func (d *dataRenderer) packageKind() UnitKind { return UnitKind{1, nil, d.renderPackage} }

// objects returns the number of objects, without the package.
func (d *dataRenderer) objects() int { return len(d.files) }

// find finds the unit of a key of a route.
func (d *dataRenderer) find(route *site.Route, key site.Key) foundUnit {
	if route.ID == routes.DataPackage {
		return foundUnit{d.renderPackage, 0}
	}
	return among(len(d.files), slices.IndexFunc(d.files, func(f *dataFile) bool { return f.key == key }), d.renderFile)
}

func (d *dataRenderer) renderFile(unit int, _ *Scratch, emit Emitter) {
	f := d.files[unit]
	emit(objectBytes+int(f.bytes), func(b []byte) []byte {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.append(b)
	}, f.key)
}

// append appends the file to b, and stores its facts.
func (f *dataFile) append(b []byte) []byte {
	to := bytes.NewBuffer(b)
	w := dataset.NewWriter(&f.table.Table, to)
	from := f.from
	for _, end := range f.groups {
		f.table.write(w, from, end)
		w.EndGroup()
		from = end
	}
	rows, digest, err := w.Close()
	if err != nil {
		panic(err) // memory takes all bytes, and rows match their table
	}
	body := to.Bytes()
	f.facts = &dataset.Facts{Rows: rows, Bytes: int64(len(body) - len(b)), Digest: sha256.Sum256(body[len(b):]), RowsDigest: digest}
	return body
}

func (d *dataRenderer) renderPackage(_ int, _ *Scratch, emit Emitter) {
	emit(objectBytes+resourceBytes*len(d.files), func(b []byte) []byte {
		var files []dataset.File
		for _, f := range d.files {
			f.mu.Lock()
			if f.facts == nil {
				f.append(nil)
			}
			files = append(files, dataset.File{Path: path.Base(string(f.key)), Table: &f.table.Table, Facts: *f.facts})
			f.mu.Unlock()
		}
		return append(b, dataset.Package(d.AsOf, d.licence, files)...)
	}, data.PackageKey)
}

// resourceBytes is the approximate size of a file's description in the package.
const resourceBytes = 3 << 10
