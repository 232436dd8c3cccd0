// Package inputs stores the input data of sites in their bucket.
package inputs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/storage"
)

// Inputs provides the data that a site was made of.
type Inputs interface {
	// Build calls put, sequentially, with each object that the bucket must have for a root, and
	// returns the index that names them. put may keep the body.
	Build(ctx context.Context, root *site.Root, put func(key site.Key, body []byte) error) (index []byte, err error)
	// Named lists the objects that an index names, without SHA-256. A zero MD5 means unknown.
	Named(index []byte) ([]site.Entry, error)
}

const (
	atOnce    = 8 // limit of concurrent puts: an object may have some MiB
	keepSites = 7 // number of sites whose inputs the bucket keeps
)

// A Report counts what a run changed in the inputs kept by a bucket.
type Report struct {
	Objects int   `json:"objects"` // objects that the site's index names
	Put     int   `json:"put"`
	Bytes   int64 `json:"bytes"` // bytes put
	Deleted int   `json:"deleted"`
}

// A Run keeps the inputs of the site that is published.
type Run struct {
	Bucket   *requests.Bucket
	Site     *origin.Site
	Inputs   Inputs // nil leaves the bucket's inputs alone
	Progress requests.Progress
	Log      *slog.Logger
}

func (r *Run) index() site.Key { return kept.IndexKey(site.Sum256(r.Site.Body)) }

// Unchanged reports whether the bucket has the inputs of the site, or needs none. It requests the
// index and a listing.
func (r *Run) Unchanged(ctx context.Context) (bool, error) {
	if r.Inputs == nil {
		return true, nil
	}
	listed, err := r.list(ctx)
	if err != nil {
		return false, err
	}
	index, _, err := r.storedIndex(ctx, listed)
	return index != nil, err
}

func (r *Run) list(ctx context.Context) (map[site.Key]storage.Info, error) {
	listed := map[site.Key]storage.Info{}
	err := r.Bucket.List(ctx, kept.Prefix, func(info storage.Info) error {
		info.Key = site.Key(strings.Clone(string(info.Key)))
		listed[info.Key] = info
		return nil
	})
	return listed, err
}

// storedIndex returns the index of the site and how many objects it names, or nil unless all of
// them are in the bucket with the right size and digest. Only reproduce detects an index altered to
// name other objects.
func (r *Run) storedIndex(ctx context.Context, listed map[site.Key]storage.Info) (index []byte, objects int, err error) {
	index, _, err = r.Bucket.Read(ctx, r.index())
	if errors.Is(err, storage.ErrNotFound) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	named, err := r.Inputs.Named(index)
	if err != nil {
		return nil, 0, nil //nolint:nilerr // it was altered, and is put again
	}
	for _, e := range named {
		if right, err := r.Bucket.Keeps(ctx, e, listed); err != nil || !right {
			return nil, 0, err
		}
	}
	return index, len(named), nil
}

// Put puts the inputs of the site, before the site itself. The report is nil if there is nothing to
// put, or if Put failed before it began.
func (r *Run) Put(ctx context.Context) (report *Report, err error) {
	if r.Inputs == nil {
		return nil, nil
	}
	err = r.Bucket.Durably(ctx, func() error {
		r.Progress.Stage("inputs", 0)
		report = new(Report)
		return r.put(ctx, report)
	})
	if err != nil {
		err = fmt.Errorf("put the site's inputs: %w", err)
	}
	return report, err
}

// put puts objects that are missing or have other bytes, and then the index. It puts the index
// again even if it exists, so that a site that is live again counts as recent.
func (r *Run) put(ctx context.Context, report *Report) error {
	listed, err := r.list(ctx)
	if err != nil {
		return err
	}
	if index, objects, err := r.storedIndex(ctx, listed); err != nil {
		return err
	} else if index != nil {
		report.Objects = objects
		return r.putOne(ctx, r.index(), index)
	}
	var puts, size atomic.Int64
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	seen := map[site.Key]bool{}
	index, err := r.Inputs.Build(ctx, &r.Site.Root, func(key site.Key, body []byte) error {
		if seen[key] {
			return context.Cause(groupCtx)
		}
		seen[key] = true
		right, err := r.Bucket.Keeps(groupCtx, site.NewEntry(key, body), listed)
		if err != nil || right {
			r.Progress.AddBytes(1, 0)
			return err
		}
		group.Go(func() error {
			err := r.putOne(groupCtx, key, body)
			puts.Add(1)
			size.Add(int64(len(body)))
			r.Progress.AddBytes(1, int64(len(body)))
			return err
		})
		return context.Cause(groupCtx)
	})
	// Build stops because of the first error of a put.
	if putErr := group.Wait(); putErr != nil {
		return putErr
	} else if err != nil {
		return err
	}
	report.Objects, report.Put, report.Bytes = len(seen), int(puts.Load()), size.Load()
	if err := r.Bucket.Durably(ctx, func() error { return nil }); err != nil { // the objects that the index names
		return err
	}
	return r.putOne(ctx, r.index(), index)
}

func (r *Run) putOne(ctx context.Context, key site.Key, body []byte) error {
	route := site.RouteBy(routes.KeptPiece)
	if kept.IsIndex(key) {
		route = site.RouteBy(routes.KeptIndex)
	}
	_, err := r.Bucket.Put(ctx, storage.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body, ContentType: route.ContentType, CacheControl: route.CacheControl,
	}, storage.Always)
	return err
}

// Prune deletes the inputs of old sites once the new root is live. It keeps those of the live site,
// of the site that this run replaced, and of the sites whose indexes were put last. It also deletes
// leftovers of runs that were cut off, so nothing needs to be remembered. If another publisher's
// site is live, it deletes nothing.
//
// report is the result of Put, nil if it put nothing.
func (r *Run) Prune(ctx context.Context, replaced site.Key, report *Report) error {
	if r.Inputs == nil || report == nil {
		return nil
	}
	if body, _, err := r.Bucket.Read(ctx, site.RootKey); err != nil {
		return err
	} else if !bytes.Equal(body, r.Site.Body) {
		r.Log.Warn("inputs of earlier sites not deleted: another site is live")
		return nil
	}
	type index struct {
		key site.Key
		put time.Time
	}
	var indexes []index
	var pieces []site.Key
	if err := r.Bucket.List(ctx, kept.Prefix, func(info storage.Info) error {
		key := site.Key(strings.Clone(string(info.Key)))
		if kept.IsIndex(key) {
			indexes = append(indexes, index{key, info.Modified})
		} else {
			pieces = append(pieces, key)
		}
		return nil
	}); err != nil {
		return err
	}
	live := r.index()
	slices.SortFunc(indexes, func(a, b index) int {
		return cmp.Or(compareTrue(a.key == live, b.key == live), compareTrue(a.key == replaced, b.key == replaced), b.put.Compare(a.put), cmp.Compare(a.key, b.key))
	})
	keep := min(len(indexes), keepSites)
	needed := map[site.Key]bool{}
	for _, x := range indexes[:keep] {
		body, _, err := r.Bucket.Read(ctx, x.key)
		if err != nil {
			return err
		}
		named, err := r.Inputs.Named(body)
		if err != nil {
			r.Log.Warn("inputs of earlier sites not deleted: cannot read an index; remove it", "key", x.key, "error", err)
			return nil
		}
		for _, e := range named {
			needed[e.Key] = true
		}
	}
	var old []site.Key // indexes first: none may name a deleted object
	for _, x := range indexes[keep:] {
		old = append(old, x.key)
	}
	first := len(old)
	for _, key := range pieces {
		if !needed[key] {
			old = append(old, key)
		}
	}
	for _, keys := range [][]site.Key{old[:first], old[first:]} {
		for some := range slices.Chunk(keys, storage.MaxDelete) {
			if err := r.Bucket.Durably(ctx, func() error { return r.Bucket.Delete(ctx, some...) }); err != nil {
				return err
			}
		}
	}
	report.Deleted = len(old)
	return nil
}

// compareTrue orders true before false.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
