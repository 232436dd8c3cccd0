package generator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator/internal/output"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/internal/whole"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// A Site is the site of a snapshot, in memory as a graph: each object is rendered when it is read.
// Its methods may be called concurrently.
type Site struct {
	renderer *whole.Site
	manifest *output.Index // nil if the site is live
	root     []byte
	spare    sync.Pool     // holds *reading
	turns    chan struct{} // bounds the objects that GetAdmitted renders at a time
	cuts     render.Cuts
}

// maxInMemory is the largest number of objects of a Site whose manifest is kept in memory. Larger
// manifests are in an unnamed temporary file.
const maxInMemory = 1 << 20

// Open reads a snapshot and renders its site once, without keeping any object, to build the
// manifest. The objects of the Site equal the result of ToPath. The options Rebuild, NoSync,
// DryRun and Files have no effect. Open returns a *snapshot.RowError for an invalid row. The Site
// must be closed.
func Open(ctx context.Context, snapshot afero.Fs, o Options) (*Site, *summary.Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	r := newRun(snapshot, o, "")
	if err := r.prepare(ctx); err != nil {
		return nil, nil, err
	}
	r.Progress.Stage("render", r.site.Objects())
	if r.site.Objects() > maxInMemory {
		r.temp = output.InTempFolder
	}
	if err := r.render(ctx, output.Discard{}); err != nil {
		return nil, nil, err
	}
	s := newSite(r)
	if s.root, err = r.index.Root.Encode(); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, r.report, nil
}

func newSite(r *run) *Site {
	s := &Site{renderer: r.site, manifest: r.index, turns: make(chan struct{}, 2*r.Workers)}
	s.spare.New = func() any { return &reading{} }
	return s
}

// OpenLive reads a snapshot to serve its site, and renders objects on request only. The objects of
// the Site equal the result of ToPath, but there is no manifest, and the root is that of a live
// site (site.Root): it counts the objects, not their bytes, and names no inputs. Options are used
// as by Open. Closing the Site is optional, because it only uses memory.
func OpenLive(ctx context.Context, snapshot afero.Fs, o Options) (*Site, *summary.Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	r := newRun(snapshot, o, "")
	r.inputs = nil // hashing the whole snapshot every round would cost more than everything else
	if err := r.prepare(ctx); err != nil {
		return nil, nil, err
	}
	root := output.NewRoot(r.site, site.ShardDigits(int(r.site.Objects())))
	root.Live, root.Counts.Objects = true, int(r.site.Objects())
	r.report.Counts = root.Counts
	s := newSite(r)
	s.root, err = root.Encode()
	return s, r.report, err
}

// Close frees the temporary file, if there is one. No other method may be called during or after
// it.
func (s *Site) Close() error {
	if s.manifest == nil {
		return nil
	}
	return s.manifest.Close()
}

// Get renders an object, or returns site.ErrNotFound. The caller must not change the root's body.
func (s *Site) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, _, err := s.render(ctx, key, math.MaxInt)
	return body, err
}

// unadmitted is the size in bytes up to which an object is rendered before its memory is admitted.
const unadmitted = 16 << 10

// GetAdmitted is like Get, but calls admit with the size of the object, in bytes, before it holds
// more than a small one. It returns an error of admit unchanged. At most two objects per core are
// rendered at a time; calls of admit do not count. The caller may change the body.
func (s *Site) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	body, size, err := s.renderInTurn(ctx, key, unadmitted)
	if err != nil {
		return nil, err
	}
	if err := admit(ctx, int64(size)); err != nil {
		return nil, err
	}
	if body == nil { // rendering again costs less than the memory of all waiting objects
		body, _, err = s.renderInTurn(ctx, key, math.MaxInt)
	} else if key == site.RootKey {
		body = bytes.Clone(body)
	}
	return body, err
}

// renderInTurn is render for a caller that may wait for a core.
func (s *Site) renderInTurn(ctx context.Context, key site.Key, most int) (body []byte, size int, err error) {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	defer func() { <-s.turns }()
	return s.render(ctx, key, most)
}

// render renders an object. If its estimated size exceeds most bytes, render returns only the size.
func (s *Site) render(ctx context.Context, key site.Key, most int) (body []byte, size int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if key == site.RootKey {
		return s.root, len(s.root), nil
	}
	route, ok := s.renderer.Config.RouteOf(key)
	if !ok || route.ID == routes.Manifest && s.manifest == nil {
		return nil, 0, fmt.Errorf("%s: %w", key, site.ErrNotFound)
	}
	if route.ID == routes.Manifest {
		body, err := s.manifest.Get(key)
		return body, len(body), err
	}
	r := s.spare.Get().(*reading)
	defer s.spare.Put(r)
	r.key, r.found, r.body, r.most = key, false, r.body[:0], most
	s.renderer.RenderObject(route, key, &r.scratch, &s.cuts, r.emit)
	switch {
	case !r.found:
		return nil, 0, fmt.Errorf("%s: %w", key, site.ErrNotFound)
	case r.size > most:
		return nil, r.size, nil
	}
	body = r.take()
	return body, len(body), nil
}

// maxSpareBody bounds the body buffer kept for reuse.
const maxSpareBody = 1 << 20

// A reading is memory for rendering objects, reused from one to the next.
type reading struct {
	scratch units.Scratch
	key     site.Key // requested object
	most    int      // size limit in bytes, beyond which only the size is wanted
	size    int      // estimated
	body    []byte
	found   bool
}

// emit is an emitter that renders only the requested object.
func (r *reading) emit(size int, render func(b []byte) []byte, keys ...site.Key) {
	if r.found || !slices.Contains(keys, r.key) {
		return
	}
	r.size, r.found = size, true
	if size <= r.most {
		r.body = render(slices.Grow(r.body[:0], size))
	}
}

// take returns the body. The caller owns it.
func (r *reading) take() []byte {
	if cap(r.body) > maxSpareBody {
		body := r.body
		r.body = nil
		return body
	}
	return bytes.Clone(r.body)
}
