package publisher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/storage"
)

// Inputs are what a site was made of, which a bucket can keep beside it.
type Inputs interface {
	// Build calls put with each object that the bucket must have for a root, one after the other, and returns the index
	// that names them. put may keep the body.
	Build(ctx context.Context, root *site.Root, put func(key site.Key, body []byte) error) (index []byte, err error)
	// Named lists the objects that an index names.
	Named(index []byte) ([]site.Key, error)
}

// DefaultKeepInputs is how many sites a bucket keeps the inputs of, unless Options.KeepInputs says otherwise.
const DefaultKeepInputs = 7

// inputsAtOnce are the objects that are put at a time: each may have some MiB.
const inputsAtOnce = 8

// An InputsReport says what a run did to what the bucket keeps of the inputs of sites.
type InputsReport struct {
	Objects int   `json:"objects"` // that the site's index names
	Put     int   `json:"put"`
	Bytes   int64 `json:"bytes"` // of those that were put
	Deleted int   `json:"deleted"`
}

func (r *run) inputsIndex() site.Key { return kept.IndexKey(site.Sum256(r.source.body)) }

// besideUnchanged reports whether the bucket has all that putBeside puts.
func (r *run) besideUnchanged(ctx context.Context) (bool, error) {
	unchanged, err := r.logUnchanged(ctx)
	if err == nil && unchanged {
		unchanged, err = r.inputsUnchanged(ctx)
	}
	return unchanged, err
}

// inputsUnchanged reports whether the bucket keeps the inputs of the site, or need not.
func (r *run) inputsUnchanged(ctx context.Context) (bool, error) {
	if r.options.Inputs == nil {
		return true, nil
	}
	_, _, err := r.bucket.read(ctx, r.inputsIndex())
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// putBeside puts what is kept beside the site and comes before it: the log, and the inputs.
func (r *run) putBeside(ctx context.Context) error {
	if err := r.extendLog(ctx); err != nil {
		return err
	}
	if r.options.Inputs == nil {
		return nil
	}
	if err := r.durably(ctx, func() error { return r.putInputs(ctx) }); err != nil {
		return fmt.Errorf("the inputs of the site: %w", err)
	}
	return nil
}

// putInputs puts the objects that the bucket lacks, and then the index. Their keys are those of their bodies, so that one
// that is there is right, whoever has put it.
func (r *run) putInputs(ctx context.Context) error {
	r.options.Progress.Stage("inputs", 0)
	r.report.Inputs = new(InputsReport)
	has := map[site.Key]bool{}
	if err := r.bucket.list(ctx, kept.Prefix, func(info storage.Info) error {
		has[site.Key(strings.Clone(string(info.Key)))] = true
		return nil
	}); err != nil {
		return err
	}
	key := r.inputsIndex()
	if has[key] {
		body, _, err := r.bucket.read(ctx, key)
		if err != nil {
			return err
		}
		named, err := r.options.Inputs.Named(body)
		if err == nil && !slices.ContainsFunc(named, func(k site.Key) bool { return !has[k] }) {
			r.report.Inputs.Objects = len(named)
			return nil
		}
	}
	var puts, size atomic.Int64
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(inputsAtOnce)
	objects := 0
	index, err := r.options.Inputs.Build(ctx, &r.source.root, func(key site.Key, body []byte) error {
		objects++
		if has[key] {
			r.options.Progress.AddBytes(1, 0)
			return context.Cause(groupCtx)
		}
		has[key] = true
		group.Go(func() error {
			err := r.putInput(groupCtx, key, body, "application/zstd")
			puts.Add(1)
			size.Add(int64(len(body)))
			r.options.Progress.AddBytes(1, int64(len(body)))
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
	r.report.Inputs.Objects, r.report.Inputs.Put, r.report.Inputs.Bytes = objects, int(puts.Load()), size.Load()
	if err := r.durably(ctx, func() error { return nil }); err != nil { // what it names
		return err
	}
	return r.putInput(ctx, key, index, "application/json")
}

func (r *run) putInput(ctx context.Context, key site.Key, body []byte, contentType string) error {
	_, err := r.bucket.put(ctx, storage.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body, ContentType: contentType, CacheControl: immutable,
	}, storage.Always)
	return err
}

// pruneInputs deletes the inputs of sites but the last ones, once the new root is there. What a run has left that was cut
// off goes too, so that nothing need be remembered.
func (r *run) pruneInputs(ctx context.Context) error {
	if r.options.Inputs == nil || r.report.Inputs == nil {
		return nil
	}
	type index struct {
		key site.Key
		put time.Time
	}
	var indexes []index
	var pieces []site.Key
	if err := r.bucket.list(ctx, kept.Prefix, func(info storage.Info) error {
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
	live := r.inputsIndex()
	slices.SortFunc(indexes, func(a, b index) int {
		if live := compareTrue(a.key == live, b.key == live); live != 0 {
			return live
		}
		return cmp.Or(b.put.Compare(a.put), cmp.Compare(a.key, b.key))
	})
	keep := min(len(indexes), r.options.KeepInputs)
	needed := map[site.Key]bool{}
	for _, x := range indexes[:keep] {
		body, _, err := r.bucket.read(ctx, x.key)
		if err != nil {
			return err
		}
		named, err := r.options.Inputs.Named(body)
		if err != nil {
			r.options.Log.Warn("inputs of earlier sites were not deleted: remove the index, which cannot be read", "key", x.key, "error", err)
			return nil
		}
		for _, key := range named {
			needed[key] = true
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
			if err := r.durably(ctx, func() error { return r.bucket.delete(ctx, some...) }); err != nil {
				return err
			}
		}
	}
	r.report.Inputs.Deleted = len(old)
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
