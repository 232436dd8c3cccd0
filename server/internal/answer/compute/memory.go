package compute

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/gate"
)

// errNoRoom means that an answer exceeds the memory it was given.
var errNoRoom = errors.New("no memory for the answer")

const (
	// An answer starts with a body of firstBytes and may grow to firstGrant without asking for
	// more. Most answers stay below firstGrant.
	firstBytes = 2 << 10
	firstGrant = 8 << 10

	// smallAnswers is the number of largest small answers that fit the gate of small ones.
	smallAnswers = 16
)

// LeastBytes is the minimum size of Gates.Small and Gates.Large.
const LeastBytes = firstGrant

// MostPageBytes ends a page early, regardless of its limit, because profiles of strangers may have
// long texts. A page has at least one entry.
const MostPageBytes = 8 << 20

// PageEnds reports whether more bytes would exceed the size limit of a page.
func (a *Answer) PageEnds(more int) bool { return len(a.Body)+more > MostPageBytes }

func (m *Maker) mostSmall() int64 { return max(m.gates.Small.Size/smallAnswers, firstGrant) }

func (m *Maker) gateFor(bytes int64) *gate.Gate {
	switch {
	case bytes <= m.mostSmall():
		return m.gates.Small
	case bytes <= m.gates.Large.Size:
		return m.gates.Large
	}
	return m.gates.Oversize
}

// acquire waits for memory for the given bytes, and holds none while it waits.
func (a *Answer) acquire(bytes int64) error {
	a.gate = a.maker.gateFor(bytes)
	// Answers that clients have not read yet limit the answers in the making. One page of any size
	// does not keep small answers out.
	beyond := int64(0)
	if a.gate == a.maker.gates.Small {
		beyond = MostPageBytes
	}
	if err := a.gate.Take(a.ctx, bytes); err != nil {
		return err
	}
	a.granted = bytes // even while waiting for room: later requests must not overtake
	for room := a.maker.cache.Room(beyond); room != nil; room = a.maker.cache.Room(beyond) {
		if err := waitFor(a.ctx, a.gate.Line, room); err != nil {
			a.free()
			return err
		}
	}
	a.Body = make([]byte, 0, firstBytes)
	a.used = max(a.used, firstBytes)
	return nil
}

// waitFor waits in a line until there is room or some time has passed. It returns gate.ErrBusy like
// Gate.Take.
func waitFor(ctx context.Context, line *gate.Gate, room <-chan struct{}) error {
	if !line.TryTake(1) {
		return gate.ErrBusy
	}
	defer line.Give(1)
	select {
	case <-room:
	case <-time.After(cache.SlowAfter / 4): // a client may have become slow, which frees memory
	case <-ctx.Done():
		return gate.ErrBusy
	}
	return nil
}

// Expect waits for about bytes more memory before anything is read for the answer. Take does not
// wait; an answer that finds no room is made again. An answer that reads many objects counts as
// large. The body must still be empty.
func (a *Answer) Expect(bytes, objects int) error {
	all := a.used + int64(bytes)
	if objects > manyObjects {
		all = max(all, a.maker.mostSmall()+1)
	}
	if a.gate.AnySize || all <= a.granted {
		return nil
	}
	if a.maker.gateFor(all) == a.gate && a.gate.TryTake(all-a.granted) {
		a.granted = all
		return nil
	}
	a.free()
	return a.acquire(all)
}

// MustBeLarge is Expect for an answer whose body is not empty and that reads objects more objects:
// if the answer counts as small, MustBeLarge returns an error that has it made again as a large
// one.
func (a *Answer) MustBeLarge(objects int) error {
	if objects <= manyObjects || a.gate != a.maker.gates.Small {
		return nil
	}
	a.used = max(a.used, a.maker.mostSmall()+1)
	return errNoRoom
}

// manyObjects is the number of objects that a small answer may read at most.
const manyObjects = 128

// ShardObjects is the number of usual objects that one shard counts as.
const ShardObjects = 8

// Approximate memory per entry, in bytes.
const (
	SetEntryBytes   = 48 // in a set of addresses
	StateEntryBytes = 96 // in a map from addresses to states
)

// Take counts bytes more. It returns an error if there is no memory. It does not wait, because the
// caller may hold a shard and some memory.
func (a *Answer) Take(bytes int) error {
	a.used += int64(bytes)
	more := a.used - a.granted
	if a.gate.AnySize || more <= 0 {
		return nil
	}
	if a.gate == a.maker.gates.Small && a.used > a.maker.mostSmall() || !a.gate.TryTake(more) {
		return errNoRoom
	}
	a.granted += more
	return nil
}

// Grow makes room for bytes more in the body.
func (a *Answer) Grow(bytes int) error {
	if len(a.Body)+bytes <= cap(a.Body) {
		return nil
	}
	size := max(2*cap(a.Body), len(a.Body)+bytes)
	if err := a.Take(size - cap(a.Body)); err != nil {
		return err
	}
	a.Body = append(make([]byte, 0, size), a.Body...)
	return nil
}

// object turns the body into an object, whose memory counts as that of an answer being sent.
func (a *Answer) object() *cache.Object {
	body := a.Body
	if cap(body)-len(body) > len(body)/8 {
		body = bytes.Clone(body)
	}
	return a.maker.cache.NewComputed(body)
}

// free gives the memory back. Calling it again has no effect.
func (a *Answer) free() {
	a.Body = nil
	if a.granted > 0 {
		a.gate.Give(a.granted)
		a.granted = 0
	}
}
