package compute

import (
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
)

// Make makes an answer by calling fill. It calls fill again if memory ran out or if the objects
// belong to two sites. The caller releases the returned object. Make returns gate.ErrBusy if no
// memory becomes free in time, else the error of fill.
func (m *Maker) Make(ctx context.Context, s Site, r Request, fill func(*Answer) error) (o *cache.Object, err error) {
	err = m.consistent(ctx, s, func(read reader) error {
		o, err = m.fit(ctx, read, r, fill)
		return err
	})
	return o, err
}

// Read calls f with an answer that has no memory. It calls f again if the objects belong to two
// sites.
func (m *Maker) Read(ctx context.Context, s Site, f func(*Answer) error) error {
	return m.consistent(ctx, s, func(read reader) error { return f(m.answer(ctx, read, Request{})) })
}

func (m *Maker) answer(ctx context.Context, read reader, r Request) *Answer {
	return &Answer{Request: r, Root: read.site.Root, ctx: ctx, read: read, maker: m}
}

const (
	firstReread = 50 * time.Millisecond
	lastReread  = 1600 * time.Millisecond
)

// consistent calls try. If try returns fetch.ErrMixed, consistent calls it again with a reader that
// bypasses the cache.
func (m *Maker) consistent(ctx context.Context, s Site, try func(reader) error) error {
	err := try(reader{m.cache, s, false})
	if !errors.Is(err, fetch.ErrMixed) {
		return err
	}
	// An interrupted publish may leave a list mixed for long; retries must not occupy all requests.
	if !m.gates.Mixed.TryTake(1) {
		return err
	}
	defer m.gates.Mixed.Give(1)
	for wait := firstReread; errors.Is(err, fetch.ErrMixed) && wait <= lastReread; wait *= 2 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
		err = try(reader{m.cache, m.reload(ctx), true})
	}
	return err
}

// fit makes an answer at the smallest gate that has room for it. It returns gate.ErrBusy if none
// has room in time.
func (m *Maker) fit(ctx context.Context, read reader, r Request, fill func(*Answer) error) (*cache.Object, error) {
	for bytes := int64(firstGrant); ; {
		a := m.answer(ctx, read, r)
		o, err := a.filled(bytes, fill)
		if !errors.Is(err, errNoRoom) {
			return o, err
		}
		bytes = max(4*bytes, a.used) // growing fast keeps the number of tries small
	}
}

// filled makes an answer with bytes of memory, or more if more is free.
func (a *Answer) filled(bytes int64, fill func(*Answer) error) (*cache.Object, error) {
	if err := a.acquire(bytes); err != nil {
		return nil, err
	}
	defer a.free() // also after a panic
	if err := fill(a); err != nil {
		return nil, err
	}
	return a.object(), nil
}
