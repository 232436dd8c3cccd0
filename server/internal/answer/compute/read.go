package compute

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// UseObject reads an object and calls f with it; it is not valid any more when f returns. The error is
// storage.ErrNotFound if there is no such object.
func (a *Answer) UseObject(key site.Key, f func(o *cache.Object) error) error {
	o, err := a.read.get(a.ctx, key)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return a.hold(o, func() error { return f(o) })
}

// Use is UseObject for the body.
func (a *Answer) Use(key site.Key, f func(body []byte) error) error {
	return a.UseObject(key, func(o *cache.Object) error { return f(o.Body) })
}

// UseKnown is Use for an object that another one says is there.
func (a *Answer) UseKnown(key site.Key, f func(body []byte) error) error {
	return fetch.MixedIfAbsent(a.Use(key, f))
}

// hold does what reads an object, and releases the object, after a panic too.
func (a *Answer) hold(o *cache.Object, do func() error) error {
	defer o.Release()
	return a.Scan(len(o.Body), do)
}

// A Series is objects that another one says are there, and that are read one after the other.
type Series struct {
	Key       func(n int) site.Key
	From, End int   // numbers of objects: From <= n < End
	Alone     int   // objects at the beginning that are read one at a time; those after them are read ahead
	Bytes     int64 // expected of an object; the largest of late corrects it
}

// ShardBytes is about the size of a shard.
const ShardBytes = 200 * site.SearchShardSize

// One request reads as many objects at the same time as aheadBytes hold, but so many at least and most.
// More would often be in vain: nobody knows how many a search needs.
const (
	aheadBytes = 1 << 20
	leastAhead = 8
	mostAhead  = 64
)

// Objects yields the objects of a series, each valid until the next. It prefetches some of them while memory
// allows. It ends after an error.
func (a *Answer) Objects(s Series) iter.Seq2[*cache.Object, error] {
	return func(yield func(*cache.Object, error) bool) {
		ctx, cancel := context.WithCancel(a.ctx)
		defer cancel() // ends the prefetches that are not needed any more
		var begun []func() (*cache.Object, error)
		for n := s.From; n < s.End; n++ {
			atOnce := int(min(max(aheadBytes/s.Bytes, leastAhead), mostAhead))
			for next := n + len(begun); n >= s.From+s.Alone && next < min(s.End, n+atOnce); next++ {
				wait := a.prefetch(ctx, s.Key(next), s.Bytes)
				if wait == nil {
					break // there may be memory later
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
// cached, it starts nothing and the function does the reading. It returns nil if there is no memory. An
// object that nobody waits for yet is released as soon as others wait for its memory, and when ctx ends;
// the function reads it again then.
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

// Kept returns the body that the cache keeps under a key that no object has, if its length is bytes. Otherwise Kept renders
// the body and keeps it. The caller releases the object.
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

// scanBytes is the size from which an object takes the processor for a while: some 0.1 ms.
const scanBytes = 32 << 10

// Scan runs work that takes a processor in proportion to that many bytes, such as matching the rows of a shard. At most
// half the processors scan at a time, so that requests for unique terms do not slow down others. The work must not wait:
// it calls neither Scan nor a function that reads objects.
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
		time.Sleep(time.Since(begun)) // half of the only one
	}
	return err
}
