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
	packObjects     = 1000
	packBytes       = 4 << 20 // of bodies; their headers add up to 3 KiB each
	packsAtOnce     = 4       // they keep a server busy by themselves
	manifestsAtOnce = 16      // a shard has some hundred kilobytes
	packProbe       = 2       // objects to ask with whether the server unpacks
	packFrom        = 200     // fewer objects are not worth asking
)

// A transfer carries out the puts of a plan.
type transfer struct {
	source      *source
	bucket      *patient
	concurrency int
	bulk        Bulk
	report      *Report
	progress    Progress
	packs       bool // whether objects are sent many at once; decided at the first put
}

// A parcel is what one request carries.
type parcel struct {
	entries []site.Entry
	shards  []int   // whose shards the entries belong to, each once
	then    *sequel // nil if nothing waits for it
}

// A sequel is put when all parcels that it belongs to have arrived.
type sequel struct {
	entries []site.Entry
	waits   atomic.Int32 // for so many parcels
}

// put sends the objects shard by shard, each shard of the manifest right after its
// objects, then what leads to them: search shards, buckets of users, leaderboards.
// Manifest shards that name one of these which was not there come after it.
func (t *transfer) put(ctx context.Context, p *plan) error {
	n, _ := p.objects()
	if err := t.choose(ctx, p, n); err != nil {
		return err
	}
	t.progress.Stage("upload", int64(n+p.manifests()))
	manifests, groupCtx := errgroup.WithContext(ctx)
	manifests.SetLimit(manifestsAtOnce)
	pending := make([]atomic.Int32, len(p.shards)) // parcels that a manifest shard waits for
	err := t.send(groupCtx, t.parcels(p, pending), func(shards []int) {
		for _, i := range shards {
			if pending[i].Add(-1) == 0 && p.shards[i].manifest && !p.isLate(i) {
				manifests.Go(func() error { return t.putManifest(groupCtx, p.shards[i].shard) })
			}
		}
	})
	if err := cmp.Or(manifests.Wait(), err); err != nil {
		return err
	}
	for _, parcels := range [][]parcel{t.cutLists(p.searches), t.cut(p.users, nil), t.cut(p.boards, nil)} {
		if err := t.send(ctx, parcels, func([]int) {}); err != nil {
			return err
		}
	}
	late, lateCtx := errgroup.WithContext(ctx)
	late.SetLimit(manifestsAtOnce)
	for i, s := range p.shards {
		if s.manifest && p.isLate(i) {
			late.Go(func() error { return t.putManifest(lateCtx, s.shard) })
		}
	}
	return late.Wait()
}

func (p *plan) isLate(shard int) bool { return p.late && p.shards[shard].newLead }

// choose decides whether to send objects many at once.
func (t *transfer) choose(ctx context.Context, p *plan, n int) error {
	_, able := t.bucket.bucket.(Unpacker)
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
	case t.bulk == BulkOn, errors.Is(err, storage.ErrDamaged), mayPass(err), ctx.Err() != nil:
		return t.explain(err)
	default: // some servers have an answer of their own to what they do not know
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

// parcels cuts the plan into requests and counts those of each shard.
func (t *transfer) parcels(p *plan, pending []atomic.Int32) []parcel {
	var all []parcel
	if !t.packs {
		for i, s := range p.shards {
			all = append(all, t.cut(s.put, []int{i})...)
			if len(s.put) == 0 {
				all = append(all, parcel{shards: []int{i}})
			}
		}
	} else {
		all = packParcels(p)
	}
	for _, parcel := range all {
		for _, i := range parcel.shards {
			pending[i].Add(1)
		}
	}
	return all
}

// cut makes parcels of one entry each, or of many where the server unpacks them.
func (t *transfer) cut(entries []site.Entry, shards []int) []parcel {
	var all []parcel
	for begin, end := 0, 0; begin < len(entries); begin = end {
		end = begin + 1
		if t.packs {
			end = packEnd(entries, begin, 0, 0)
		}
		all = append(all, parcel{entries: entries[begin:end], shards: shards})
	}
	return all
}

// cutLists keeps the search shards of a list together, the first one last: while they
// are put, a search finds parts of the old and of the new list, and should not for long.
// The first one has a request of its own, after the others have arrived: a server may
// unpack the entries of an archive in any order, and side by side. Lists may share both.
func (t *transfer) cutLists(shards []site.Entry) []parcel {
	var all []parcel
	var alone, others, firsts []site.Entry
	flush := func() {
		then := &sequel{entries: firsts}
		parcels := t.cut(others, nil)
		then.waits.Store(int32(len(parcels)))
		for i := range parcels {
			parcels[i].then = then
		}
		all = append(all, parcels...)
		others, firsts = nil, nil
	}
	for _, list := range byList(shards) {
		last := len(list) - 1
		if last == 0 {
			alone = append(alone, list...)
			continue
		}
		if !t.packs || !fits(others, list[:last]) || !fits(firsts, list[last:]) {
			flush()
		}
		others, firsts = append(others, list[:last]...), append(firsts, list[last])
	}
	flush()
	return append(all, t.cut(alone, nil)...)
}

// byList groups the search shards of each list, the first one last.
func byList(shards []site.Entry) [][]site.Entry {
	slices.SortFunc(shards, func(a, b site.Entry) int {
		listA, n := path.Split(string(a.Key))
		listB, m := path.Split(string(b.Key))
		return cmp.Or(strings.Compare(listA, listB), cmp.Compare(len(m), len(n)), strings.Compare(m, n))
	})
	var lists [][]site.Entry
	for begin, end := 0, 0; begin < len(shards); begin = end {
		list := path.Dir(string(shards[begin].Key))
		for end = begin + 1; end < len(shards) && path.Dir(string(shards[end].Key)) == list; end++ {
		}
		lists = append(lists, shards[begin:end])
	}
	return lists
}

// fits reports whether a pack has room for more entries.
func fits(pack, more []site.Entry) bool {
	return packEnd(slices.Concat(pack, more), 0, 0, 0) == len(pack)+len(more)
}

// packEnd is the end of the entries that still fit into a parcel; at least one fits
// into an empty one.
func packEnd(entries []site.Entry, begin, objects int, bytes int64) int {
	end := begin
	for end < len(entries) && (objects == 0 || objects < packObjects && bytes+entries[end].Size <= packBytes) {
		bytes += entries[end].Size
		objects++
		end++
	}
	return end
}

// packParcels fills parcels across the bounds of shards, in the shards' order.
func packParcels(p *plan) []parcel {
	var all []parcel
	var current parcel
	var bytes int64
	flush := func() {
		if len(current.shards) > 0 {
			all = append(all, current)
		}
		current, bytes = parcel{}, 0
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

// send puts parcels, in their order but many at once. sent is called after each. As many
// are in memory as there are goroutines here: they are read before they get a slot.
func (t *transfer) send(ctx context.Context, parcels []parcel, sent func(shards []int)) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(t.concurrency)
	if t.packs {
		group.SetLimit(min(t.concurrency, packsAtOnce))
	}
	for _, p := range parcels {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := t.sendOne(groupCtx, p.entries); err != nil {
				return err
			}
			sent(p.shards)
			if p.then != nil && p.then.waits.Add(-1) == 0 {
				return t.sendOne(groupCtx, p.then.entries)
			}
			return nil
		})
	}
	err := group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
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

// explain says what to do about a site whose files are not what its manifest says.
func (t *transfer) explain(err error) error {
	if errors.Is(err, storage.ErrDamaged) {
		return fmt.Errorf("the site is damaged: %w: generate it again, with --rebuild", err)
	}
	return err
}

// deleteGone removes what nothing leads to any more.
func (t *transfer) deleteGone(ctx context.Context, keys []site.Key) error {
	if len(keys) == 0 {
		return nil
	}
	t.progress.Stage("delete", int64(len(keys)))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(deletesAtOnce)
	for begin := 0; begin < len(keys); begin += storage.MaxDelete {
		batch := keys[begin:min(begin+storage.MaxDelete, len(keys))]
		group.Go(func() error {
			if err := t.bucket.delete(groupCtx, batch...); err != nil {
				return err
			}
			t.report.addDeleted(len(batch))
			t.progress.AddBytes(int64(len(batch)), 0)
			return nil
		})
	}
	err := group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// deletesAtOnce is small: each request deletes up to a thousand objects.
const deletesAtOnce = 4
