package publisher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Sizes of requests that carry many objects.
const (
	packObjects       = 1000
	packBytes         = 4 << 20 // of bodies; their headers add up to 3 KiB each
	packsInFlight     = 4       // unpacking keeps a server busy
	manifestsInFlight = 16      // a shard has some hundred kilobytes
	deletesInFlight   = 4       // each request deletes up to storage.MaxDelete objects
	packProbe         = 2       // objects in the request that finds out whether the server unpacks
	packFrom          = 200     // with fewer objects, finding out is not worth the requests
)

// A transfer carries out the puts of a plan.
type transfer struct {
	source      *source
	bucket      *retryingBucket
	concurrency int
	bulk        Bulk
	report      *Report
	progress    Progress
	packs       bool // whether one request carries many objects; decided by put
}

// A batch is the content of one request.
type batch struct {
	entries  []site.Entry
	shards   []int     // indexes of the plan's shards that the entries belong to, each once
	followUp *followUp // nil if nothing waits for this batch
}

// A followUp is sent as soon as all batches that refer to it have arrived.
type followUp struct {
	entries []site.Entry
	pending atomic.Int32 // batches that have not arrived
}

// put sends the objects shard by shard, each manifest shard right after its objects. Then it
// sends the entry points: search shards, buckets and leaderboards, in this order. Manifest
// shards that name a new entry point come last.
func (t *transfer) put(ctx context.Context, p *plan) error {
	n, _ := p.objects()
	if err := t.chooseBulk(ctx, p, n); err != nil {
		return err
	}
	t.progress.Stage("upload", int64(n+p.manifests()))
	manifests, groupCtx := errgroup.WithContext(ctx)
	manifests.SetLimit(manifestsInFlight)
	pending := make([]atomic.Int32, len(p.shards)) // batches that a manifest shard waits for
	err := t.send(groupCtx, t.batches(p, pending), func(shards []int) {
		for _, i := range shards {
			if pending[i].Add(-1) == 0 && p.shards[i].manifest && !p.isLast(i) {
				manifests.Go(func() error { return t.putManifest(groupCtx, p.shards[i].shard) })
			}
		}
	})
	if err := cmp.Or(manifests.Wait(), err); err != nil {
		return err
	}
	for _, batches := range [][]batch{t.cutSearches(p.searches), t.cut(p.buckets, nil), t.cut(p.boards, nil)} {
		if err := t.send(ctx, batches, func([]int) {}); err != nil {
			return err
		}
	}
	return parallel(ctx, manifestsInFlight, len(p.shards), func(ctx context.Context, i int) error {
		if !p.shards[i].manifest || !p.isLast(i) {
			return nil
		}
		return t.putManifest(ctx, p.shards[i].shard)
	})
}

// isLast reports whether a manifest shard is put after everything else.
func (p *plan) isLast(shard int) bool { return p.manifestsLast && p.shards[shard].newEntryPoint }

// chooseBulk decides whether one request carries many objects.
func (t *transfer) chooseBulk(ctx context.Context, p *plan, n int) error {
	_, able := t.bucket.inner.(Unpacker)
	if t.bulk == BulkOff || t.bulk == BulkAuto && (!able || n < packFrom) {
		return nil
	} else if !able {
		return errNoUnpacking
	}
	var probe []site.Entry
	for _, s := range p.shards {
		if probe = append(probe, s.put...); len(probe) >= packProbe {
			break
		}
	}
	if len(probe) < packProbe {
		return nil
	}
	objects, err := t.read(ctx, probe[:packProbe])
	if err != nil {
		return err
	}
	t.packs, err = t.bucket.unpacks(ctx, objects)
	switch {
	case err == nil:
	case t.bulk == BulkOn, errors.Is(err, storage.ErrDamaged), isRetryable(err), ctx.Err() != nil:
		return t.explain(err)
	default: // some servers answer unknown requests with an error of their own
		t.bucket.log.Info("the server does not take archives", "error", err)
		return t.bucket.delete(ctx, site.PackKey)
	}
	if t.bulk == BulkOn && !t.packs {
		return errNoUnpacking
	}
	t.report.Bulk = t.packs
	return nil
}

var errNoUnpacking = errors.New("the server does not unpack archives: use --bulk=auto")

// batches cuts the shards of the plan into batches, and counts the batches of each shard.
func (t *transfer) batches(p *plan, pending []atomic.Int32) []batch {
	var all []batch
	if !t.packs {
		for i, s := range p.shards {
			all = append(all, t.cut(s.put, []int{i})...)
			if len(s.put) == 0 {
				all = append(all, batch{shards: []int{i}})
			}
		}
	} else {
		all = packBatches(p)
	}
	for _, b := range all {
		for _, i := range b.shards {
			pending[i].Add(1)
		}
	}
	return all
}

// cut makes batches of one entry each, or of many where the server unpacks them.
func (t *transfer) cut(entries []site.Entry, shards []int) []batch {
	var all []batch
	for begin, end := 0, 0; begin < len(entries); begin = end {
		end = begin + 1
		if t.packs {
			end = packEnd(entries, begin, 0, 0)
		}
		all = append(all, batch{entries: entries[begin:end], shards: shards})
	}
	return all
}

// cutSearches makes the batches of search shards. While the shards of a list are replaced, a
// search may find some of the old and some of the new list, so they are sent close together.
// The first shard has a request of its own, after the others have arrived: a server may unpack
// an archive in any order. With archives, several lists share a request for their other shards
// and one for their first shards.
func (t *transfer) cutSearches(shards []site.Entry) []batch {
	var all []batch
	var unordered, others, lasts []site.Entry
	flush := func() {
		next := &followUp{entries: lasts}
		batches := t.cut(others, nil)
		next.pending.Store(int32(len(batches)))
		for i := range batches {
			batches[i].followUp = next
		}
		all = append(all, batches...)
		others, lasts = nil, nil
	}
	for _, list := range searchLists(shards) {
		if !list.ordered {
			unordered = append(unordered, list.shards...)
			continue
		}
		before, last := list.shards[:len(list.shards)-1], list.shards[len(list.shards)-1:]
		if !t.packs || !fits(others, before) || !fits(lasts, last) {
			flush()
		}
		others, lasts = append(others, before...), append(lasts, last...)
	}
	flush()
	return append(all, t.cut(unordered, nil)...)
}

// A searchList holds the search shards of one list that a plan puts, the first shard last.
type searchList struct {
	shards  []site.Entry
	ordered bool // whether the last one must wait until the others have arrived
}

// searchLists groups search shards by list.
func searchLists(shards []site.Entry) []searchList {
	slices.SortFunc(shards, func(a, b site.Entry) int {
		listA, n := path.Split(string(a.Key))
		listB, m := path.Split(string(b.Key))
		return cmp.Or(strings.Compare(listA, listB), cmp.Compare(len(m), len(n)), strings.Compare(m, n))
	})
	var lists []searchList
	for begin, end := 0, 0; begin < len(shards); begin = end {
		list := path.Dir(string(shards[begin].Key))
		for end = begin + 1; end < len(shards) && path.Dir(string(shards[end].Key)) == list; end++ {
		}
		lists = append(lists, searchList{shards: shards[begin:end], ordered: end-begin > 1})
	}
	return lists
}

// fits reports whether one request can carry all these entries.
func fits(pack, more []site.Entry) bool {
	return packEnd(slices.Concat(pack, more), 0, 0, 0) == len(pack)+len(more)
}

// packEnd returns the end of the entries, from begin on, that fit into a batch which holds
// objects with so many bytes already. An empty batch takes at least one.
func packEnd(entries []site.Entry, begin, objects int, bytes int64) int {
	end := begin
	for end < len(entries) && (objects == 0 || objects < packObjects && bytes+entries[end].Size <= packBytes) {
		bytes += entries[end].Size
		objects++
		end++
	}
	return end
}

// packBatches fills batches across the bounds of shards, in the order of shards.
func packBatches(p *plan) []batch {
	var all []batch
	var current batch
	var bytes int64
	flush := func() {
		if len(current.shards) > 0 {
			all = append(all, current)
		}
		current, bytes = batch{}, 0
	}
	for i, s := range p.shards {
		current.shards = append(current.shards, i)
		for begin := 0; begin < len(s.put); {
			end := packEnd(s.put, begin, len(current.entries), bytes)
			for _, e := range s.put[begin:end] {
				bytes += e.Size
			}
			current.entries = append(current.entries, s.put[begin:end]...)
			if begin = end; begin < len(s.put) {
				flush()
				current.shards = append(current.shards, i)
			}
		}
	}
	flush()
	return all
}

// send sends batches in their order, many at once, and calls sent after each, from many
// goroutines. Each goroutine holds one batch in memory while it waits for a slot.
func (t *transfer) send(ctx context.Context, batches []batch, sent func(shards []int)) error {
	limit := t.concurrency
	if t.packs {
		limit = min(limit, packsInFlight)
	}
	return parallel(ctx, limit, len(batches), func(ctx context.Context, i int) error {
		b := &batches[i]
		if err := t.sendOne(ctx, b.entries); err != nil {
			return err
		}
		sent(b.shards)
		if b.followUp != nil && b.followUp.pending.Add(-1) == 0 {
			return t.sendOne(ctx, b.followUp.entries)
		}
		return nil
	})
}

func (t *transfer) sendOne(ctx context.Context, entries []site.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	objects, err := t.read(ctx, entries)
	if err != nil {
		return err
	}
	if len(objects) == 1 {
		_, err = t.bucket.put(ctx, objects[0], storage.Always)
	} else {
		err = t.bucket.putMany(ctx, objects)
	}
	if err != nil {
		return t.explain(err)
	}
	var bytes int64
	for _, e := range entries {
		bytes += e.Size
	}
	t.report.addPut(len(entries), bytes)
	t.progress.AddBytes(int64(len(entries)), bytes)
	return nil
}

func (t *transfer) read(ctx context.Context, entries []site.Entry) ([]storage.Object, error) {
	objects := make([]storage.Object, len(entries))
	for i, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		var err error
		if objects[i], err = t.source.read(ctx, e); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (t *transfer) putManifest(ctx context.Context, shard string) error {
	object, err := t.source.manifest(ctx, shard)
	if err != nil {
		return err
	}
	if _, err := t.bucket.put(ctx, object, storage.Always); err != nil {
		return t.explain(err)
	}
	t.report.addManifest(object.Size)
	t.progress.AddBytes(1, object.Size)
	return nil
}

// explain adds what to do when the files of the site differ from its manifest.
func (t *transfer) explain(err error) error {
	if errors.Is(err, storage.ErrDamaged) {
		return fmt.Errorf("the site is damaged: %w: generate it again, with --rebuild", err)
	}
	return err
}

// deleteKeys deletes objects that nothing refers to any more.
func (t *transfer) deleteKeys(ctx context.Context, keys []site.Key) error {
	if len(keys) == 0 {
		return nil
	}
	t.progress.Stage("delete", int64(len(keys)))
	batches := slices.Collect(slices.Chunk(keys, storage.MaxDelete))
	return parallel(ctx, deletesInFlight, len(batches), func(ctx context.Context, i int) error {
		n := len(batches[i])
		if err := t.bucket.delete(ctx, batches[i]...); err != nil {
			return err
		}
		t.report.addDeleted(n)
		t.progress.AddBytes(int64(n), 0)
		return nil
	})
}
