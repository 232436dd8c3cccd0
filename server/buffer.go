package server

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// A buffer is the memory of an answer that is being made: its body, and what else the making takes. It
// counts against one of the pools of the handler until the answer is rendered.
type buffer struct {
	body []byte

	h       *Handler
	pool    *pool
	used    int64 // bytes
	granted int64 // bytes taken from the pool
}

// A pool is memory for answers that are being made. Large ones have a pool of their own: they may read a
// thousand objects, and nobody else must wait for that. A third one is for those that fit neither: one
// at a time. A pool is safe for concurrent use.
type pool struct {
	memory  *semaphore.Weighted
	most    int64        // bytes of one answer
	any     bool         // it is for one answer of any size: memory is 1, and most means nothing
	waiting *slots       // of requests that wait for memory
	taken   atomic.Int64 // bytes; 0 with any
}

const (
	// A buffer starts with a body of bufferBytes and may grow to bufferGrant without asking for
	// more. Most answers stay below.
	bufferBytes = 2 << 10
	bufferGrant = 8 << 10

	// smallPages is how many answers of the largest size the pool of small ones has room for.
	smallPages = 16
)

// acquire waits for memory. It returns errBusy if ctx ends first, or if too many wait already.
func (p *pool) acquire(ctx context.Context, bytes int64) error {
	if p.tryAcquire(bytes) {
		return nil
	}
	if !p.waiting.tryAcquire() {
		return errBusy
	}
	defer p.waiting.release()
	if p.memory.Acquire(ctx, p.weight(bytes)) != nil {
		return errBusy
	}
	p.count(bytes)
	return nil
}

// waitFor waits for room, or a while. It returns errBusy as acquire does.
func (p *pool) waitFor(ctx context.Context, room <-chan struct{}) error {
	if !p.waiting.tryAcquire() {
		return errBusy
	}
	defer p.waiting.release()
	select {
	case <-room:
	case <-time.After(slowAfter / 4): // some clients may have become slow
	case <-ctx.Done():
		return errBusy
	}
	return nil
}

func (p *pool) tryAcquire(bytes int64) bool {
	if !p.memory.TryAcquire(p.weight(bytes)) {
		return false
	}
	p.count(bytes)
	return true
}

func (p *pool) release(bytes int64) {
	p.count(-bytes)
	p.memory.Release(p.weight(bytes))
}

func (p *pool) weight(bytes int64) int64 {
	if p.any {
		return 1
	}
	return bytes
}

func (p *pool) count(bytes int64) {
	if !p.any {
		p.taken.Add(bytes)
	}
}

// poolFor is the pool for an answer of that many bytes.
func (h *Handler) poolFor(bytes int64) *pool {
	switch {
	case bytes <= h.small.most:
		return h.small
	case bytes <= h.large.most:
		return h.large
	}
	return h.oversize
}

// inBuffer makes an answer with make, in a buffer of the smallest pool that has room for it. It returns
// errBusy if there is none in time.
func (h *Handler) inBuffer(ctx context.Context, fill func(*buffer) error) (*object, error) {
	for bytes := int64(bufferGrant); ; {
		b := &buffer{h: h}
		o, err := b.filled(ctx, bytes, fill)
		if !errors.Is(err, errNoRoom) {
			return o, err
		}
		bytes = max(4*bytes, b.used) // so it ends soon
	}
}

// filled makes an answer within that many bytes, and more if there happens to be room.
func (b *buffer) filled(ctx context.Context, bytes int64, fill func(*buffer) error) (*object, error) {
	if err := b.acquire(ctx, bytes); err != nil {
		return nil, err
	}
	defer b.free() // after a panic too
	if err := fill(b); err != nil {
		return nil, err
	}
	return b.object(), nil
}

// acquire waits for memory for that many bytes; nobody waits with a part of it.
func (b *buffer) acquire(ctx context.Context, bytes int64) error {
	b.pool = b.h.poolFor(bytes)
	// What clients have not read yet bounds what is made for others. One page of any size does not keep small
	// answers out.
	sent, beyond := &b.h.cache.tracker.sent, int64(0)
	if b.pool == b.h.small {
		beyond = mostPageBytes
	}
	for {
		if err := b.pool.acquire(ctx, bytes); err != nil {
			return err
		}
		room := sent.room(beyond)
		if room == nil {
			break
		}
		b.pool.release(bytes)
		if err := b.pool.waitFor(ctx, room); err != nil {
			return err
		}
	}
	b.granted = bytes
	b.body = make([]byte, 0, bufferBytes)
	b.used = max(b.used, bufferBytes)
	return nil
}

// expect waits for about that many bytes more, before anything is read for the answer: take does not wait, and
// an answer that finds no room then is made again. An answer that reads many objects counts as a large one. The
// body must be empty yet.
func (b *buffer) expect(ctx context.Context, bytes, objects int) error {
	all := b.used + int64(bytes)
	if objects > manyObjects {
		all = max(all, b.h.small.most+1)
	}
	if b.pool.any || all <= b.granted {
		return nil
	}
	if b.h.poolFor(all) == b.pool && b.pool.tryAcquire(all-b.granted) {
		b.granted = all
		return nil
	}
	b.free()
	return b.acquire(ctx, all)
}

// mustBeLarge is expect for an answer that has a body already: it returns errNoRoom if this is a small buffer.
func (b *buffer) mustBeLarge(objects int) error {
	if objects <= manyObjects || b.pool != b.h.small {
		return nil
	}
	b.used = max(b.used, b.h.small.most+1)
	return errNoRoom
}

// manyObjects is how many objects of the usual size a small answer may be made of. Shards count
// as shardObjects.
const (
	manyObjects  = 128
	shardObjects = 8
)

// take counts that many bytes more. It returns errNoRoom if there is no memory: it does not wait, because
// the caller may hold a shard, and this buffer a part of the memory.
func (b *buffer) take(bytes int) error {
	b.used += int64(bytes)
	more := b.used - b.granted
	if b.pool.any || more <= 0 {
		return nil
	}
	if b.used > b.pool.most || !b.pool.tryAcquire(more) {
		return errNoRoom
	}
	b.granted += more
	return nil
}

// grow makes sure that the body can take that many more bytes.
func (b *buffer) grow(bytes int) error {
	if len(b.body)+bytes <= cap(b.body) {
		return nil
	}
	size := max(2*cap(b.body), len(b.body)+bytes)
	if err := b.take(size - cap(b.body)); err != nil {
		return err
	}
	b.body = append(make([]byte, 0, size), b.body...)
	return nil
}

// object makes an object of the body, whose memory counts as that of an answer being sent.
func (b *buffer) object() *object {
	body := b.body
	if cap(body)-len(body) > len(body)/8 {
		body = bytes.Clone(body)
	}
	return b.h.cache.computedObject(body)
}

// free gives the memory back. It may be called again.
func (b *buffer) free() {
	b.body = nil
	if b.granted > 0 {
		b.pool.release(b.granted)
		b.granted = 0
	}
}
