package compute

import (
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
)

// Make makes an answer with fill, which is called again if it finds no memory, or objects of two sites. The
// caller releases the object. The error is gate.ErrBusy if there is no memory in time, else one of fill.
func (m *Maker) Make(ctx context.Context, s Site, r Request, fill func(*Answer) error) (o *cache.Object, err error) {
	err = m.consistent(ctx, s, func(read reader) error {
		o, err = m.fit(ctx, read, r, fill)
		return err
	})
	return o, err
}

// Read calls f with an answer that has no memory, again if f finds objects of two sites.
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

// consistent calls try, and if that returns fetch.ErrMixed, again with a reader past the cache.
func (m *Maker) consistent(ctx context.Context, s Site, try func(reader) error) error {
	err := try(reader{m.cache, s, false})
	if !errors.Is(err, fetch.ErrMixed) {
		return err
	}
	// After a publish that was cut off, a list may stay mixed: it must not occupy all requests.
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

// fit makes an answer with fill, at the smallest gate that has room for it. It returns gate.ErrBusy if there
// is none in time.
func (m *Maker) fit(ctx context.Context, read reader, r Request, fill func(*Answer) error) (*cache.Object, error) {
	for bytes := int64(firstGrant); ; {
		a := m.answer(ctx, read, r)
		o, err := a.filled(bytes, fill)
		if !errors.Is(err, errNoRoom) {
			return o, err
		}
		bytes = max(4*bytes, a.used) // so it ends soon
	}
}

// filled makes an answer within that many bytes, and more if there happens to be room.
func (a *Answer) filled(bytes int64, fill func(*Answer) error) (*cache.Object, error) {
	if err := a.acquire(bytes); err != nil {
		return nil, err
	}
	defer a.free() // after a panic too
	if err := fill(a); err != nil {
		return nil, err
	}
	return a.object(), nil
}
