package answer

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// A reader reads objects of the site.
type reader struct {
	get     func(ctx context.Context, key site.Key) (*cache.Object, error) // or storage.ErrNotFound; the caller releases the object
	has     func(key site.Key) bool                                        // whether get returns without waiting
	renews  bool                                                           // get reads past the cache
	version cache.Version                                                  // of the site
}

const (
	firstReread = 50 * time.Millisecond
	lastReread  = 1600 * time.Millisecond
)

// consistent makes an answer from objects of the site. If try returns fetch.ErrMixed, it tries again with a
// reader past the cache.
func (m *Maker) consistent(ctx context.Context, v Site, try func(reader, *site.Root) (*cache.Object, error)) (*cache.Object, error) {
	o, err := try(reader{
		version: v.Version,
		get: func(ctx context.Context, key site.Key) (*cache.Object, error) {
			return m.cache.Get(ctx, cache.Key{Version: v.Version, Key: key})
		},
		has: func(key site.Key) bool { return m.cache.Has(cache.Key{Version: v.Version, Key: key}) },
	}, v.Root)
	if !errors.Is(err, fetch.ErrMixed) {
		return o, err
	}
	// After a publish that was cut off, a list may stay mixed: it must not occupy all requests.
	if !m.gates.Mixed.TryTake(1) {
		return nil, err
	}
	defer m.gates.Mixed.Give(1)
	for wait := firstReread; errors.Is(err, fetch.ErrMixed) && wait <= lastReread; wait *= 2 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
		v := m.reload(ctx) // a new variable: the prefetches of the last try still use the old one
		o, err = try(reader{
			version: v.Version,
			get: func(ctx context.Context, key site.Key) (*cache.Object, error) {
				return m.cache.Renew(ctx, cache.Key{Version: v.Version, Key: key})
			},
			has: func(site.Key) bool { return false }, renews: true,
		}, v.Root)
	}
	return o, err
}

// One request reads as many objects at the same time as aheadBytes hold, but so many at least and most.
// More would often be in vain: nobody knows how many a search needs.
const (
	aheadBytes = 1 << 20
	leastAhead = 8
	mostAhead  = 64
)

// readAhead yields the objects with the keys of from <= n < end in order. It prefetches some
// of them while memory allows. size is the expected size of an object in bytes; the
// largest of late corrects it.
func (m *Maker) readAhead(ctx context.Context, read reader, key func(n int) site.Key, from, end int, size int64) iter.Seq2[*cache.Object, error] {
	return func(yield func(*cache.Object, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends the prefetches that are not needed any more
		var begun []func() (*cache.Object, error)
		for n := from; n < end; n++ {
			atOnce := int(min(max(aheadBytes/size, leastAhead), mostAhead))
			for next := n + len(begun); next < min(end, n+atOnce); next++ {
				wait := m.prefetch(ctx, read, key(next), size)
				if wait == nil && next > n {
					break // there may be memory later
				}
				begun = append(begun, wait)
			}
			if begun[0] == nil {
				begun[0] = func() (*cache.Object, error) { return read.get(ctx, key(n)) }
			}
			o, err := begun[0]()
			begun = begun[1:]
			if err == nil {
				size = max(size-size/8, int64(len(o.Body)))
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// prefetch starts to read an object and returns a function that waits for it. If the object is
// cached, it starts nothing and the function does the reading. It returns nil if there is no memory. An
// object that nobody waits for yet is released as soon as others wait for its memory, and when ctx ends;
// the function reads it again then.
func (m *Maker) prefetch(ctx context.Context, read reader, key site.Key, size int64) (wait func() (*cache.Object, error)) {
	get := func() (*cache.Object, error) { return read.get(ctx, key) }
	if read.has(key) {
		return get
	}
	if m.gates.Waiting.IsHalfTaken() || m.cache.GateFor(size).Crowded() || !m.gates.Ahead.TryTake(size) {
		return nil
	}
	type result struct {
		object *cache.Object
		err    error
	}
	results := make(chan result)
	go func() {
		defer m.gates.Ahead.Give(size)
		defer close(results)
		var r result
		var wanted <-chan struct{}
		func() {
			defer fetch.Guard(&r.err)
			if r.object, r.err = get(); r.err == nil {
				wanted = m.cache.GateFor(r.object.Bytes()).Wanted()
			}
		}()
		if errors.Is(r.err, gate.ErrBusy) { // this object was not needed yet: let the function try again
			return
		}
		select {
		case results <- r: // at once
			return
		default:
		}
		select {
		case results <- r:
			return
		case <-wanted:
		case <-ctx.Done():
		}
		if r.err == nil {
			r.object.Release()
		}
	}()
	return func() (*cache.Object, error) {
		select {
		case r, ok := <-results:
			if !ok { // the prefetch gave up its memory
				return get()
			}
			return r.object, r.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// scanBytes is the size from which an object takes the processor for a while: some 0.1 ms.
const scanBytes = 32 << 10

// scan does what takes the processor in proportion to that many bytes, such as matching the rows of a shard. Half
// of the processors are enough for that: requests for unique terms must not slow down others. Nobody who is let in
// waits for anything.
func (m *Maker) scan(ctx context.Context, bytes int, do func() error) error {
	if bytes < scanBytes {
		return do()
	}
	if err := m.gates.Scanning.Take(ctx, 1); err != nil {
		return err
	}
	defer m.gates.Scanning.Give(1)
	begun := time.Now()
	err := do()
	if runtime.GOMAXPROCS(0) == 1 {
		time.Sleep(time.Since(begun)) // half of the only one
	}
	return err
}
