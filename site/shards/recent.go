package shards

import (
	"context"
	"slices"
	"sync"
)

// A recent caches the last results of reads by name. Concurrent calls for a name share one read; after an error, the next
// call reads again.
type recent[T any] struct {
	most int // number of results

	mu  sync.Mutex
	all []*reading[T] // oldest request first; under mu
}

// A reading is a result, or a read in progress.
type reading[T any] struct {
	name  string
	ready chan struct{} // closed after the read
	value T
	err   error
}

// get returns the result of read for a name.
func (c *recent[T]) get(ctx context.Context, name string, read func() (T, error)) (T, error) {
	c.mu.Lock()
	if at := slices.IndexFunc(c.all, func(r *reading[T]) bool { return r.name == name }); at >= 0 {
		known := c.all[at]
		c.mu.Unlock()
		select {
		case <-known.ready:
			return known.value, known.err
		case <-ctx.Done():
			return *new(T), context.Cause(ctx)
		}
	}
	r := &reading[T]{name: name, ready: make(chan struct{})}
	c.all = append(slices.Clone(c.all[max(0, len(c.all)+1-c.most):]), r)
	c.mu.Unlock()
	defer close(r.ready)
	if r.value, r.err = read(); r.err != nil {
		c.forget(name)
	}
	return r.value, r.err
}

// forget drops the result for a name.
func (c *recent[T]) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = slices.DeleteFunc(c.all, func(r *reading[T]) bool { return r.name == name })
}
