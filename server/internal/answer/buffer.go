package answer

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/gate"
)

// errNoRoom says that an answer does not fit the memory that it has.
var errNoRoom = errors.New("no memory for the answer")

// A buffer is the memory of an answer that is being made: its body, and what else the making takes. It
// counts at one of the gates of the maker until the answer is rendered.
type buffer struct {
	body []byte

	m       *Maker
	gate    *gate.Gate
	used    int64 // bytes
	granted int64 // bytes taken at the gate
}

const (
	// A buffer starts with a body of bufferBytes and may grow to bufferGrant without asking for
	// more. Most answers stay below.
	bufferBytes = 2 << 10
	bufferGrant = 8 << 10

	// smallAnswers is how many answers of the largest size the gate of small ones has room for.
	smallAnswers = 16
)

// LeastBytes is the least size of Gates.Small and Gates.Large.
const LeastBytes = bufferGrant

func (m *Maker) mostSmall() int64 { return max(m.gates.Small.Size/smallAnswers, bufferGrant) }

func (m *Maker) gateFor(bytes int64) *gate.Gate {
	switch {
	case bytes <= m.mostSmall():
		return m.gates.Small
	case bytes <= m.gates.Large.Size:
		return m.gates.Large
	}
	return m.gates.Oversize
}

// inBuffer makes an answer with fill, in a buffer at the smallest gate that has room for it. It returns
// gate.ErrBusy if there is none in time.
func (m *Maker) inBuffer(ctx context.Context, fill func(*buffer) error) (*cache.Object, error) {
	for bytes := int64(bufferGrant); ; {
		b := &buffer{m: m}
		o, err := b.filled(ctx, bytes, fill)
		if !errors.Is(err, errNoRoom) {
			return o, err
		}
		bytes = max(4*bytes, b.used) // so it ends soon
	}
}

// filled makes an answer within that many bytes, and more if there happens to be room.
func (b *buffer) filled(ctx context.Context, bytes int64, fill func(*buffer) error) (*cache.Object, error) {
	if err := b.acquire(ctx, bytes); err != nil {
		return nil, err
	}
	defer b.free() // after a panic too
	if err := fill(b); err != nil {
		return nil, err
	}
	return b.object(), nil
}

// acquire waits for memory for that many bytes; nobody waits with less than it wants.
func (b *buffer) acquire(ctx context.Context, bytes int64) error {
	b.gate = b.m.gateFor(bytes)
	// What clients have not read yet bounds what is made for others. One page of any size does not keep small
	// answers out.
	beyond := int64(0)
	if b.gate == b.m.gates.Small {
		beyond = mostPageBytes
	}
	if err := b.gate.Take(ctx, bytes); err != nil {
		return err
	}
	b.granted = bytes // also while this waits for room: who came later must not come first
	for room := b.m.cache.Room(beyond); room != nil; room = b.m.cache.Room(beyond) {
		if err := waitFor(ctx, b.gate.Line, room); err != nil {
			b.free()
			return err
		}
	}
	b.body = make([]byte, 0, bufferBytes)
	b.used = max(b.used, bufferBytes)
	return nil
}

// waitFor waits in a line for room, or a while. It returns gate.ErrBusy as Gate.Take does.
func waitFor(ctx context.Context, line *gate.Gate, room <-chan struct{}) error {
	if !line.TryTake(1) {
		return gate.ErrBusy
	}
	defer line.Give(1)
	select {
	case <-room:
	case <-time.After(cache.SlowAfter / 4): // some clients may have become slow
	case <-ctx.Done():
		return gate.ErrBusy
	}
	return nil
}

// expect waits for about that many bytes more, before anything is read for the answer: take does not wait, and
// an answer that finds no room then is made again. An answer that reads many objects counts as a large one. The
// body must be empty yet.
func (b *buffer) expect(ctx context.Context, bytes, objects int) error {
	all := b.used + int64(bytes)
	if objects > manyObjects {
		all = max(all, b.m.mostSmall()+1)
	}
	if b.gate.AnySize || all <= b.granted {
		return nil
	}
	if b.m.gateFor(all) == b.gate && b.gate.TryTake(all-b.granted) {
		b.granted = all
		return nil
	}
	b.free()
	return b.acquire(ctx, all)
}

// mustBeLarge is expect for an answer that has a body already: it returns errNoRoom if this is a small buffer.
func (b *buffer) mustBeLarge(objects int) error {
	if objects <= manyObjects || b.gate != b.m.gates.Small {
		return nil
	}
	b.used = max(b.used, b.m.mostSmall()+1)
	return errNoRoom
}

// manyObjects is how many objects of the usual size a small answer may be made of. Shards count
// as shardObjects.
const (
	manyObjects  = 128
	shardObjects = 8
)

// take counts that many bytes more. It returns errNoRoom if there is no memory: it does not wait, because
// the caller may hold a shard, and this buffer some of the memory.
func (b *buffer) take(bytes int) error {
	b.used += int64(bytes)
	more := b.used - b.granted
	if b.gate.AnySize || more <= 0 {
		return nil
	}
	if b.gate == b.m.gates.Small && b.used > b.m.mostSmall() || !b.gate.TryTake(more) {
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
func (b *buffer) object() *cache.Object {
	body := b.body
	if cap(body)-len(body) > len(body)/8 {
		body = bytes.Clone(body)
	}
	return b.m.cache.NewComputed(body)
}

// free gives the memory back. It may be called again.
func (b *buffer) free() {
	b.body = nil
	if b.granted > 0 {
		b.gate.Give(b.granted)
		b.granted = 0
	}
}
