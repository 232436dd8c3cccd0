package cache

import (
	"context"
	"errors"

	"github.com/followpress/followpress/server/internal/gate"
)

// A flight is a computation shared by several requests.
type flight struct {
	done   chan struct{} // closed when the answer is ready
	object *Object
	err    error
}

// Computed returns the answer for a key, from the cache or by calling compute. Requests for the
// same key at the same time share one call. The caller must release the object.
func (c *Cache) Computed(ctx context.Context, k Key, compute func(ctx context.Context) (*Object, error)) (*Object, error) {
	if o := c.Peek(k); o != nil {
		c.counts.Hit()
		return o, nil
	}
	c.counts.Missed()
	c.mu.Lock()
	f, shared := c.flights[k]
	if !shared {
		f = &flight{done: make(chan struct{}), err: errNoAnswer}
		c.flights[k] = f
	}
	c.mu.Unlock()
	if shared {
		return c.wait(ctx, f)
	}
	defer func() { // also after a panic
		c.mu.Lock()
		delete(c.flights, k)
		c.mu.Unlock()
		close(f.done)
	}()
	ctx, cancel := c.fetcher.Within(ctx) // the first client may leave while others wait
	defer cancel()
	made, err := compute(ctx)
	if err != nil {
		f.err = err
		return nil, err
	}
	f.object, f.err = c.Keep(k, made), nil
	return made, nil
}

// errNoAnswer is the result of a flight that panicked.
var errNoAnswer = errors.New("the computation failed")

func (c *Cache) wait(ctx context.Context, f *flight) (*Object, error) {
	// While the store hangs, other requests must still get through.
	if !c.gates.Waiting.TryTake(1) {
		return nil, gate.ErrBusy
	}
	defer c.gates.Waiting.Give(1)
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	f.object.Pin()
	return f.object, nil
}

// Keep caches a computed answer for keptFor, and returns it.
func (c *Cache) Keep(k Key, computed *Object) *Object {
	computed.key = k
	c.objects.Set(k, computed)
	return computed
}

// NewComputed makes an object of a computed answer. The caller releases it.
func (c *Cache) NewComputed(body []byte) *Object {
	o := c.newObject(Key{}, body)
	o.computed = true
	o.Pin()
	return o
}
