package compute

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"

	"github.com/followpress/followpress/internal/panics"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// UseObject reads an object and calls f with it. The object is valid until f returns. UseObject
// returns storage.ErrNotFound if there is no such object.
func (a *Answer) UseObject(key site.Key, f func(o *cache.Object) error) error {
	o, err := a.read.get(a.ctx, key)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return a.hold(o, func() error { return f(o) })
}

// Use calls f with the body of an object, like UseObject.
func (a *Answer) Use(key site.Key, f func(body []byte) error) error {
	return a.UseObject(key, func(o *cache.Object) error { return f(o.Body) })
}

// UseKnown is Use for an object that another object refers to.
func (a *Answer) UseKnown(key site.Key, f func(body []byte) error) error {
	return fetch.MixedIfAbsent(a.Use(key, f))
}

// hold calls do and releases the object, also after a panic.
func (a *Answer) hold(o *cache.Object, do func() error) error {
	defer o.Release()
	return a.Scan(len(o.Body), do)
}

// A Series is a sequence of existing objects to read in order.
type Series struct {
	Key       func(n int) site.Key
	From, End int   // object numbers: From <= n < End
	Alone     int   // number of first objects read one at a time; later ones are prefetched
	Bytes     int64 // expected size of an object, corrected by the largest recent one
}

// ShardBytes is the approximate size of a shard.
const ShardBytes = 200 * site.SearchShardSize

// One request prefetches the objects that aheadBytes hold, within the bounds below. More would
// often be wasted: nobody knows how many objects a search needs.
const (
	aheadBytes = 1 << 20
	leastAhead = 8
	mostAhead  = 64
)

// Objects yields the objects of a series, each valid until the next. It prefetches while memory
// allows, and ends after an error.
func (a *Answer) Objects(s Series) iter.Seq2[*cache.Object, error] {
	return func(yield func(*cache.Object, error) bool) {
		ctx, cancel := context.WithCancel(a.ctx)
		defer cancel() // ends prefetches no longer needed
		var begun []func() (*cache.Object, error)
		for n := s.From; n < s.End; n++ {
			atOnce := int(min(max(aheadBytes/s.Bytes, leastAhead), mostAhead))
			for next := n + len(begun); n >= s.From+s.Alone && next < min(s.End, n+atOnce); next++ {
				wait := a.prefetch(ctx, s.Key(next), s.Bytes)
				if wait == nil {
					break // try again when memory may be free
				}
				begun = append(begun, wait)
			}
			var o *cache.Object
			var err error
			if len(begun) > 0 {
				o, err = begun[0]()
				begun = begun[1:]
			} else {
				o, err = a.read.get(ctx, s.Key(n))
			}
			more := false
			if err == nil {
				s.Bytes = max(s.Bytes-s.Bytes/8, int64(len(o.Body)))
				err = a.hold(o, func() error {
					more = yield(o, nil)
					return nil
				})
			}
			if err != nil {
				yield(nil, fetch.MixedIfAbsent(err))
			}
			if !more {
				return
			}
		}
	}
}

// prefetch starts to read an object and returns a function that waits for it. If the object is
// cached, prefetch starts nothing and the function reads the object. prefetch returns nil if there
// is no memory. A prefetched object that nobody waits for yet is released when others wait for its
// memory, and when ctx ends; the function then reads the object again.
func (a *Answer) prefetch(ctx context.Context, key site.Key, size int64) (wait func() (*cache.Object, error)) {
	m, read := a.maker, a.read
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
			defer panics.Catch(&r.err)
			if r.object, r.err = get(); r.err == nil {
				wanted = m.cache.GateFor(r.object.Bytes()).Wanted()
			}
		}()
		if errors.Is(r.err, gate.ErrBusy) { // the object was not needed yet; let the function try again
			return
		}
		select {
		case results <- r: // the function is waiting
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
			if !ok { // the prefetch gave its memory up
				return get()
			}
			return r.object, r.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Kept returns a body cached under a key that no object of a site has, if its length is bytes.
// Otherwise Kept renders the body and caches it. The caller releases the object.
func (a *Answer) Kept(key site.Key, bytes int, render func() ([]byte, error)) (*cache.Object, error) {
	k := a.read.key(key)
	if !a.read.renews {
		if o := a.maker.cache.Peek(k); o != nil {
			if len(o.Body) == bytes {
				return o, nil
			}
			o.Release()
		}
	}
	body, err := render()
	if err != nil {
		return nil, err
	}
	return a.maker.cache.Keep(k, a.maker.cache.NewComputed(body)), nil
}

// scanBytes is the object size from which scanning takes noticeable processor time, some 0.1 ms.
const scanBytes = 32 << 10

// Scan runs do, which takes processor time in proportion to bytes, such as matching the rows of a
// shard. At most half of the processors scan at a time, so that requests for unique terms do not
// slow down others. do must not wait: it must call neither Scan nor a function that reads objects.
func (a *Answer) Scan(bytes int, do func() error) error {
	if bytes < scanBytes {
		return do()
	}
	scanning := a.maker.gates.Scanning
	if err := scanning.Take(a.ctx, 1); err != nil {
		return err
	}
	defer scanning.Give(1)
	begun := time.Now()
	err := do()
	if runtime.GOMAXPROCS(0) == 1 {
		time.Sleep(time.Since(begun)) // use half of the only processor
	}
	return err
}
