// Package tables renders the graph itself as tables in files, and the package that describes them.
package tables

import (
	"bytes"
	"crypto/sha256"
	"path"
	"slices"
	"sync"

	"github.com/followpress/followpress/generator/internal/dataset"
	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/data"
	"github.com/followpress/followpress/site/routes"
)

// A Renderer renders the graph itself as files: tables, and the package that describes them.
// The graph determines how tables are cut into files, so each file can be rendered at any time.
type Renderer struct {
	asOf, licence string
	files         []*dataFile
}

// A dataFile is a table or part of one.
type dataFile struct {
	table *dataTable
	key   site.Key
	dataSpan

	mu    sync.Mutex
	facts *dataset.Facts // nil until the file was rendered
}

// New prepares to render the tables of a graph.
func New(g *graph.Graph, r *graph.Ranks, config site.Config) *Renderer {
	d := &Renderer{asOf: g.AsOf, licence: config.DataLicence}
	for _, t := range dataTables(g, r) {
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

// Kind returns the kind of the files. Each file is a chunk, unless it is small.
func (d *Renderer) Kind() units.Kind {
	return units.Kind{Units: len(d.files), Records: func(unit int) int { return int(d.files[unit].to - d.files[unit].from) }, Render: d.renderFile}
}

// PackageKind returns the kind of the package, to be rendered after the files.
func (d *Renderer) PackageKind() units.Kind {
	return units.Kind{Units: 1, Render: d.renderPackage}
}

// Objects returns the number of objects, without the package.
func (d *Renderer) Objects() int { return len(d.files) }

// Find finds the unit of a key of a route.
func (d *Renderer) Find(route *site.Route, key site.Key) units.Found {
	if route.ID == routes.DataPackage {
		return units.Found{Render: d.renderPackage}
	}
	return units.Among(len(d.files), slices.IndexFunc(d.files, func(f *dataFile) bool { return f.key == key }), d.renderFile)
}

func (d *Renderer) renderFile(unit int, _ *units.Scratch, emit render.Emitter) {
	f := d.files[unit]
	emit(render.ObjectBytes+int(f.bytes), func(b []byte) []byte {
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

func (d *Renderer) renderPackage(_ int, _ *units.Scratch, emit render.Emitter) {
	emit(render.ObjectBytes+resourceBytes*len(d.files), func(b []byte) []byte {
		var files []dataset.File
		for _, f := range d.files {
			f.mu.Lock()
			if f.facts == nil {
				f.append(nil)
			}
			files = append(files, dataset.File{Path: path.Base(string(f.key)), Table: &f.table.Table, Facts: *f.facts})
			f.mu.Unlock()
		}
		return append(b, dataset.Package(d.asOf, d.licence, files)...)
	}, data.PackageKey)
}

// resourceBytes is the approximate size of a file's description in the package.
const resourceBytes = 3 << 10
