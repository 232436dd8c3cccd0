// Package inputs keeps what sites were made of beside them in a bucket.
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

// Inputs are what a site was made of, which a bucket can keep beside it.
type Inputs interface {
	// Build calls put with each object that the bucket must have for a root, one after the other, and returns the index
	// that names them. put may keep the body.
	Build(ctx context.Context, root *site.Root, put func(key site.Key, body []byte) error) (index []byte, err error)
	// Named lists the objects that an index names, without SHA-256. The MD5 of one may be zero: then it is not known.
	Named(index []byte) ([]site.Entry, error)
}

// atOnce are the objects that are put at a time: each may have some MiB.
const atOnce = 8

// A Report says what a run did to what the bucket keeps of the inputs of sites.
type Report struct {
	Objects int   `json:"objects"` // that the site's index names
	Put     int   `json:"put"`
	Bytes   int64 `json:"bytes"` // of those that were put
	Deleted int   `json:"deleted"`
}

// A Run keeps the inputs of the site that is published.
type Run struct {
	Bucket   *requests.Bucket
	Site     *origin.Site
	Inputs   Inputs // nil: the bucket keeps what it has
	Keep     int    // how many sites the bucket keeps the inputs of
	Progress interface {
		Stage(name string, total int64)
		AddBytes(n, bytes int64)
	}
	Log *slog.Logger
}

func (r *Run) index() site.Key { return kept.IndexKey(site.Sum256(r.Site.Body)) }

// Unchanged reports whether the bucket keeps the inputs of the site as they were put, or need not. It asks for the
// index and a listing.
func (r *Run) Unchanged(ctx context.Context) (bool, error) {
	if r.Inputs == nil {
		return true, nil
	}
	listed, err := r.list(ctx)
	if err != nil {
		return false, err
	}
	index, _, err := r.there(ctx, listed)
	return index != nil, err
}

// list lists what the bucket keeps of sites.
func (r *Run) list(ctx context.Context) (map[site.Key]storage.Info, error) {
	listed := map[site.Key]storage.Info{}
	err := r.Bucket.List(ctx, kept.Prefix, func(info storage.Info) error {
		info.Key = site.Key(strings.Clone(string(info.Key)))
		listed[info.Key] = info
		return nil
	})
	return listed, err
}

// there returns the index of the site and how many objects it names, if all of them are there with the size and the
// digest that they should have; else nil. Who altered an index so that it names others is found by those who make the site
// again.
func (r *Run) there(ctx context.Context, listed map[site.Key]storage.Info) (index []byte, objects int, err error) {
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

// Put puts what is kept beside the site and comes before it. The report is nil if there is nothing to put, or Put failed
// before it began.
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
		err = fmt.Errorf("the inputs of the site: %w", err)
	}
	return report, err
}

// put puts the objects that the bucket lacks, or has with other bytes, and then the index. That is put again even if
// it is there: a site that is live once more is one of the last.
func (r *Run) put(ctx context.Context, report *Report) error {
	listed, err := r.list(ctx)
	if err != nil {
		return err
	}
	if index, objects, err := r.there(ctx, listed); err != nil {
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
	// The first error of a put is why Build was stopped.
	if putErr := group.Wait(); putErr != nil {
		return putErr
	} else if err != nil {
		return err
	}
	report.Objects, report.Put, report.Bytes = len(seen), int(puts.Load()), size.Load()
	if err := r.Bucket.Durably(ctx, func() error { return nil }); err != nil { // what it names
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

// Prune deletes the inputs of sites but the last ones, once the new root is there: those of the live site, of the one
// that this run has replaced, and of those whose indexes were put last. What a run has left that was cut off goes too, so
// that nothing need be remembered. If another publisher's site is live by now, nothing is deleted.
//
// report is that of Put, nil if it put nothing.
func (r *Run) Prune(ctx context.Context, replaced site.Key, report *Report) error {
	if r.Inputs == nil || report == nil {
		return nil
	}
	if body, _, err := r.Bucket.Read(ctx, site.RootKey); err != nil {
		return err
	} else if !bytes.Equal(body, r.Site.Body) {
		r.Log.Warn("inputs of earlier sites were not deleted: another site is live by now")
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
	keep := min(len(indexes), r.Keep)
	needed := map[site.Key]bool{}
	for _, x := range indexes[:keep] {
		body, _, err := r.Bucket.Read(ctx, x.key)
		if err != nil {
			return err
		}
		named, err := r.Inputs.Named(body)
		if err != nil {
			r.Log.Warn("inputs of earlier sites were not deleted: remove the index, which cannot be read", "key", x.key, "error", err)
			return nil
		}
		for _, e := range named {
			needed[e.Key] = true
		}
	}
	var old []site.Key // indexes first: one must not name what is gone
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

// compareTrue orders what is true before what is not.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
