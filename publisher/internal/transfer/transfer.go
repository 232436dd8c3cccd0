// Package transfer carries out a plan: it puts and deletes objects, one or many per request.
package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/plan"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Sizes of requests that carry many objects.
const (
	packObjects       = 1000
	packBytes         = 4 << 20 // bodies; their headers add up to 3 KiB each
	PacksInFlight     = 4       // unpacking keeps a server busy
	ManifestsInFlight = 16      // a shard has some hundred kilobytes
	deletesInFlight   = 4       // each request deletes up to storage.MaxDelete objects
	packProbe         = 2       // objects in the request that tests whether the server unpacks
	PackFrom          = 200     // below this number of objects, testing is not worth the requests
)

// BodyBytes bounds the bodies in memory, including waiting ones. A larger
// body is in memory alone.
const BodyBytes = 64 << 20

// A Transfer carries out the puts of a plan.
type Transfer struct {
	source   *origin.Site
	bucket   *requests.Bucket
	packFrom int        // number of objects from which one request carries many
	sent     func(Sent) // receives counts of sent objects, from many goroutines
	progress requests.Progress
	bodies   *semaphore.Weighted // BodyBytes in total
	Packs    bool                // whether one request carries many objects; set by Put
}

// Sent counts finished requests.
type Sent struct {
	Put       int
	Bytes     int64 // including manifests
	Manifests int
	Deleted   int
}

// New returns a transfer of the objects of source to a bucket. From packFrom objects on, one request
// carries many, if the server unpacks archives. told receives the counts of finished requests, from
// many goroutines.
func New(source *origin.Site, bucket *requests.Bucket, packFrom int, progress requests.Progress, told func(Sent)) *Transfer {
	return &Transfer{source: source, bucket: bucket, packFrom: packFrom, sent: told, progress: progress, bodies: semaphore.NewWeighted(BodyBytes)}
}

// A batch is the content of one request.
type batch struct {
	entries  []site.Entry
	shards   []int     // indexes in Plan.Shards of the entries' shards, each once; nil for entry points
	followUp *followUp // nil if nothing waits for this batch
}

// A followUp is sent as soon as all batches that refer to it have arrived.
type followUp struct {
	entries []site.Entry
	pending atomic.Int32 // batches still in flight
}

// Put sends the objects shard by shard, each manifest shard right after its objects. Then it sends
// the entry points: search shards, buckets and leaderboards, in this order. Manifest shards with a
// new entry point follow, then deltas, and indexes last.
func (t *Transfer) Put(ctx context.Context, p *plan.Plan) error {
	if err := t.tryPacks(ctx, p); err != nil {
		return err
	}
	t.progress.Stage("upload", int64(p.Put+p.Manifests))
	manifests, groupCtx := errgroup.WithContext(ctx)
	manifests.SetLimit(ManifestsInFlight)
	pending := make([]atomic.Int32, len(p.Shards)) // batches that a manifest shard waits for, plus one until all have begun
	settle := func(i int) {
		if pending[i].Add(-1) == 0 && p.Shards[i].Manifest && !p.IsLast(i) {
			manifests.Go(func() error { return t.putManifest(groupCtx, p.Shards[i].Shard) })
		}
	}
	for i := range pending {
		pending[i].Store(1)
	}
	batches := t.batches(p, func(i int) { pending[i].Add(1) }, settle)
	err := t.send(groupCtx, batches, func(b *batch) {
		for _, i := range b.shards {
			settle(i)
		}
	})
	if err := cmp.Or(manifests.Wait(), err); err != nil {
		return err
	}
	for _, batches := range []iter.Seq2[batch, error]{t.searches(p), t.cut(p.Buckets.Entries(0), nothing), t.cut(p.Boards.Entries(0), nothing)} {
		if err := t.send(ctx, batches, nothing); err != nil {
			return err
		}
	}
	err = requests.Parallel(ctx, ManifestsInFlight, len(p.Shards), func(ctx context.Context, i int) error {
		if !p.Shards[i].Manifest || !p.IsLast(i) {
			return nil
		}
		return t.putManifest(ctx, p.Shards[i].Shard)
	})
	if err != nil {
		return err
	}
	err = requests.Parallel(ctx, ManifestsInFlight, len(p.Deltas), func(ctx context.Context, i int) error {
		d := p.Deltas[i]
		return t.putManifestObject(ctx, t.source.Object(site.NewEntry(d.Key, d.Body), d.Body))
	})
	if err != nil {
		return err
	}
	return requests.Parallel(ctx, ManifestsInFlight, len(p.Indexes), func(ctx context.Context, i int) error {
		return t.putManifest(ctx, p.Indexes[i])
	})
}

// tryPacks decides whether one request carries many objects.
func (t *Transfer) tryPacks(ctx context.Context, p *plan.Plan) error {
	if !t.bucket.CanUnpack() || p.Put < t.packFrom {
		return nil
	}
	var probe []site.Entry
	for e, err := range p.Objects.Entries(0) {
		if err != nil {
			return err
		}
		if probe = append(probe, e); len(probe) == packProbe {
			break
		}
	}
	if len(probe) < packProbe {
		return nil
	}
	objects, err := t.read(ctx, probe)
	if err != nil {
		return err
	}
	t.Packs, err = t.bucket.Unpacks(ctx, objects)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrDamaged), requests.Retryable(err), ctx.Err() != nil:
		return t.explain(err)
	}
	// Some servers answer unknown requests with an error of their own.
	t.bucket.Log.Info("the server does not take archives", "error", err)
	return t.bucket.Delete(ctx, site.PackKey)
}

// batches cuts the objects of the plan into batches, across shards if the server unpacks archives.
// It calls begins for each shard of a batch before the batch is sent, and ends for each shard of
// the plan when all of its batches have begun.
func (t *Transfer) batches(p *plan.Plan, begins, ends func(shard int)) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		shard, left := -1, 0
		next := func() {
			if shard >= 0 {
				ends(shard)
			}
			if shard++; shard < len(p.Shards) {
				left = p.Shards[shard].Objects
			}
		}
		next()
		all := t.cut(p.Objects.Entries(0), func(b *batch) {
			for left == 0 {
				next()
			}
			if n := len(b.shards); n == 0 || b.shards[n-1] != shard {
				b.shards = append(b.shards, shard)
				begins(shard)
			}
			left--
		})
		for b, err := range all {
			if !yield(b, err) || err != nil {
				return
			}
		}
		for shard < len(p.Shards) {
			next()
		}
	}
}

// cut makes batches of one entry each, or of many if the server unpacks them. It calls added for
// each entry, with its batch.
func (t *Transfer) cut(entries iter.Seq2[site.Entry, error], added func(*batch)) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		var b batch
		var bytes int64
		for e, err := range entries {
			if err != nil {
				yield(batch{}, err)
				return
			}
			if n := len(b.entries); n > 0 && (!t.Packs || n == packObjects || bytes+e.Size > packBytes) {
				if !yield(b, nil) {
					return
				}
				b, bytes = batch{}, 0
			}
			b.entries = append(b.entries, e)
			bytes += e.Size
			added(&b)
		}
		if len(b.entries) > 0 {
			yield(b, nil)
		}
	}
}

func nothing(*batch) {}

// searchGroup is the approximate number of search shards sorted at a time.
const searchGroup = 20_000

func (t *Transfer) searches(p *plan.Plan) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		var group []site.Entry
		for part := range plan.SearchParts {
			for e, err := range p.Searches.Entries(part) {
				if err != nil {
					yield(batch{}, err)
					return
				}
				group = append(group, e)
			}
			if len(group) < searchGroup && part < plan.SearchParts-1 {
				continue
			}
			for _, b := range t.cutSearches(group) {
				if !yield(b, nil) {
					return
				}
			}
			group = nil
		}
	}
}

// cutSearches makes the batches of search shards. While the shards of a list are replaced, a search
// may find parts of the old and of the new list, so they are sent close together. The first shard
// has its own request, after the others have arrived: a server may unpack an archive in any
// order. With archives, several lists share a request for their other shards and one for their
// first shards.
func (t *Transfer) cutSearches(shards []site.Entry) []batch {
	var all []batch
	var unordered []site.Entry
	var others, lasts []site.Entry
	flush := func() {
		next := &followUp{entries: lasts}
		batches := t.cutAll(others)
		next.pending.Store(int32(len(batches)))
		for i := range batches {
			batches[i].followUp = next
		}
		all = append(all, batches...)
		others, lasts = nil, nil
	}
	for _, list := range searchLists(shards) {
		if len(list) == 1 { // no other shard must arrive first
			unordered = append(unordered, list...)
			continue
		}
		before, last := list[:len(list)-1], list[len(list)-1:]
		if !t.Packs || !fit(others, before) || !fit(lasts, last) {
			flush()
		}
		others, lasts = append(others, before...), append(lasts, last...)
	}
	flush()
	return append(all, t.cutAll(unordered)...)
}

// fit reports whether one archive can carry more entries too.
func fit(entries, more []site.Entry) bool {
	return len(entries)+len(more) <= packObjects && sizeOf(entries)+sizeOf(more) <= packBytes
}

func sizeOf(entries []site.Entry) (bytes int64) {
	for _, e := range entries {
		bytes += e.Size
	}
	return bytes
}

// cutAll is cut for a few entries.
func (t *Transfer) cutAll(entries []site.Entry) (all []batch) {
	t.cut(items(entries), nothing)(func(b batch, _ error) bool {
		all = append(all, b)
		return true
	})
	return all
}

// searchLists groups the search shards of a plan by list, the first shard of each list last.
func searchLists(shards []site.Entry) (lists [][]site.Entry) {
	slices.SortFunc(shards, func(a, b site.Entry) int {
		listA, n := path.Split(string(a.Key))
		listB, m := path.Split(string(b.Key))
		return cmp.Or(strings.Compare(listA, listB), cmp.Compare(len(m), len(n)), strings.Compare(m, n))
	})
	for begin, end := 0, 0; begin < len(shards); begin = end {
		list := path.Dir(string(shards[begin].Key))
		for end = begin + 1; end < len(shards) && path.Dir(string(shards[end].Key)) == list; end++ {
		}
		lists = append(lists, shards[begin:end])
	}
	return lists
}

// send sends batches in order, many at once, and calls sent after each, from many goroutines. Each
// goroutine holds one batch in memory, within BodyBytes, while it waits for room in the window.
func (t *Transfer) send(ctx context.Context, batches iter.Seq2[batch, error], sent func(*batch)) error {
	limit := t.bucket.Concurrency
	if t.Packs {
		limit = min(limit, PacksInFlight)
	}
	return requests.ParallelEach(ctx, limit, batches, func(ctx context.Context, b batch) error {
		if err := t.sendOne(ctx, b.entries); err != nil {
			return err
		}
		sent(&b)
		if b.followUp != nil && b.followUp.pending.Add(-1) == 0 {
			return t.sendOne(ctx, b.followUp.entries)
		}
		return nil
	})
}

func (t *Transfer) sendOne(ctx context.Context, entries []site.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	bytes := sizeOf(entries)
	held := min(bytes, BodyBytes)
	if t.bodies.Acquire(ctx, held) != nil {
		return context.Cause(ctx)
	}
	defer t.bodies.Release(held)
	objects, err := t.read(ctx, entries)
	if err != nil {
		return err
	}
	if len(objects) == 1 {
		_, err = t.bucket.Put(ctx, objects[0], storage.Always)
	} else {
		err = t.bucket.PutMany(ctx, objects)
	}
	if err != nil {
		return t.explain(err)
	}
	t.sent(Sent{Put: len(entries), Bytes: bytes})
	t.progress.AddBytes(int64(len(entries)), bytes)
	return nil
}

func (t *Transfer) read(ctx context.Context, entries []site.Entry) ([]storage.Object, error) {
	objects := make([]storage.Object, len(entries))
	for i, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		var err error
		if objects[i], err = t.source.Read(ctx, e); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// putManifest puts a shard or an index of the manifest.
func (t *Transfer) putManifest(ctx context.Context, name string) error {
	object, err := t.source.ManifestObject(ctx, name)
	if err != nil {
		return err
	}
	return t.putManifestObject(ctx, object)
}

func (t *Transfer) putManifestObject(ctx context.Context, object storage.Object) error {
	if _, err := t.bucket.Put(ctx, object, storage.Always); err != nil {
		return t.explain(err)
	}
	t.sent(Sent{Manifests: 1, Bytes: object.Size})
	t.progress.AddBytes(1, object.Size)
	return nil
}

// explain adds the remedy if the files of the site differ from its manifest.
func (t *Transfer) explain(err error) error {
	if errors.Is(err, storage.ErrDamaged) {
		return fmt.Errorf("the site is damaged: %w; %s", err, t.source.Advice)
	}
	return err
}

// Delete deletes the objects that nothing refers to anymore.
func (t *Transfer) Delete(ctx context.Context, p *plan.Plan) error {
	if p.Deletes.Records == 0 {
		return nil
	}
	t.progress.Stage("delete", int64(p.Deletes.Records))
	return requests.ParallelEach(ctx, deletesInFlight, chunks(p.Deletes.Keys(0), storage.MaxDelete), func(ctx context.Context, keys []site.Key) error {
		if err := t.bucket.Delete(ctx, keys...); err != nil {
			return err
		}
		t.sent(Sent{Deleted: len(keys)})
		t.progress.AddBytes(int64(len(keys)), 0)
		return nil
	})
}

// chunks is slices.Chunk for a sequence that may fail.
func chunks[T any](items iter.Seq2[T, error], n int) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		var chunk []T
		for item, err := range items {
			if err != nil {
				yield(nil, err)
				return
			}
			if chunk = append(chunk, item); len(chunk) == n {
				if !yield(chunk, nil) {
					return
				}
				chunk = nil
			}
		}
		if len(chunk) > 0 {
			yield(chunk, nil)
		}
	}
}

// items adapts a slice to a sequence that may fail.
func items[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range all {
			if !yield(item, nil) {
				return
			}
		}
	}
}
