package server

import "context"

// A buffer is the memory of an answer that is being made: its body, and what else the making takes. It
// counts against Handler.pages.
type buffer struct {
	body []byte

	h       *Handler
	used    int64 // bytes
	granted int64 // bytes taken from h.pages
	alone   bool  // it holds h.oversize instead
}

const (
	// A buffer starts with a body of bufferBytes and may grow to bufferGrant without asking for
	// more. Most answers stay below.
	bufferBytes = 2 << 10
	bufferGrant = 8 << 10
)

// newBuffer waits for the memory of a buffer; with alone, for being the one buffer that may be of any
// size. It returns errBusy if ctx ends first.
func (h *Handler) newBuffer(ctx context.Context, alone bool) (*buffer, error) {
	memory, granted := h.pages, int64(bufferGrant)
	if alone {
		memory, granted = h.oversize, 1
	}
	if memory.Acquire(ctx, granted) != nil {
		return nil, errBusy
	}
	b := &buffer{body: make([]byte, 0, bufferBytes), h: h, used: bufferBytes, alone: alone}
	if !alone {
		b.granted = granted
		h.pagesTaken.Add(granted)
	}
	return b, nil
}

// expect waits for about that many bytes more, before anything is read for the answer: take does not wait, and
// an answer that finds no room then is made again. It returns errNoRoom if they are more than there are at all.
// The body must be empty yet.
func (b *buffer) expect(ctx context.Context, bytes int) error {
	all := b.used + int64(bytes)
	switch more := all - b.granted; {
	case b.alone || more <= 0:
		return nil
	case all > b.h.pagesBytes:
		return errNoRoom
	case b.h.pages.TryAcquire(more):
		b.granted += more
		b.h.pagesTaken.Add(more)
		return nil
	}
	b.body = nil // nobody waits with a part of the memory
	b.giveBack(b.granted)
	if b.h.pages.Acquire(ctx, all) != nil {
		return errBusy
	}
	b.granted = all
	b.h.pagesTaken.Add(all)
	b.body = make([]byte, 0, bufferBytes)
	return nil
}

// take counts that many bytes more. It returns errNoRoom if there is no memory: it does not wait, because
// the caller may hold a shard, and this buffer a part of the memory.
func (b *buffer) take(bytes int) error {
	b.used += int64(bytes)
	more := b.used - b.granted
	if b.alone || more <= 0 {
		return nil
	}
	if !b.h.pages.TryAcquire(more) {
		return errNoRoom
	}
	b.granted += more
	b.h.pagesTaken.Add(more)
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

// object makes an object of the body. Releasing it gives back what the buffer was granted.
func (b *buffer) object() *object {
	o := newObject(b.body)
	if spare := b.granted - int64(cap(o.body)); spare > 0 && !b.alone {
		b.giveBack(spare)
	}
	o.free = b.free
	return o
}

func (b *buffer) giveBack(bytes int64) {
	b.granted -= bytes
	b.h.pagesTaken.Add(-bytes)
	b.h.pages.Release(bytes)
}

func (b *buffer) free() {
	if b.alone {
		b.h.oversize.Release(1)
	} else {
		b.giveBack(b.granted)
	}
}
