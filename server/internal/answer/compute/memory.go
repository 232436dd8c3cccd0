package compute

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

const (
	// An answer starts with a body of firstBytes and may grow to firstGrant without asking for
	// more. Most answers stay below.
	firstBytes = 2 << 10
	firstGrant = 8 << 10

	// smallAnswers is how many answers of the largest size the gate of small ones has room for.
	smallAnswers = 16
)

// LeastBytes is the least size of Gates.Small and Gates.Large.
const LeastBytes = firstGrant

// MostPageBytes is the size of a page from which on it ends, whatever its limit is: it would take memory
// in proportion to the texts of foreign profiles. It has one entry at least.
const MostPageBytes = 8 << 20

// PageEnds reports whether that many bytes more are too much for a page.
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

// acquire waits for memory for that many bytes; nobody waits with less than it wants.
func (a *Answer) acquire(bytes int64) error {
	a.gate = a.maker.gateFor(bytes)
	// What clients have not read yet bounds what is made for others. One page of any size does not keep small
	// answers out.
	beyond := int64(0)
	if a.gate == a.maker.gates.Small {
		beyond = MostPageBytes
	}
	if err := a.gate.Take(a.ctx, bytes); err != nil {
		return err
	}
	a.granted = bytes // also while this waits for room: who came later must not come first
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

// Expect waits for about that many bytes more, before anything is read for the answer: Take does not wait, and
// an answer that finds no room then is made again. An answer that reads many objects counts as a large one. The
// body must be empty yet.
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

// MustBeLarge is Expect for an answer that has a body already, and reads that many objects: it returns an error
// if the answer counts as a small one, so that it is made again as a large one.
func (a *Answer) MustBeLarge(objects int) error {
	if objects <= manyObjects || a.gate != a.maker.gates.Small {
		return nil
	}
	a.used = max(a.used, a.maker.mostSmall()+1)
	return errNoRoom
}

// manyObjects is how many objects of the usual size a small answer may be made of.
const manyObjects = 128

// ShardObjects is as how many objects a shard counts.
const ShardObjects = 8

// What an entry takes, about, in bytes.
const (
	SetEntryBytes   = 48 // of a set of addresses
	StateEntryBytes = 96 // of a map of addresses to states
)

// Take counts that many bytes more. It returns an error if there is no memory: it does not wait, because
// the caller may hold a shard, and this answer some of the memory.
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

// Grow makes sure that the body can take that many more bytes.
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

// object makes an object of the body, whose memory counts as that of an answer being sent.
func (a *Answer) object() *cache.Object {
	body := a.Body
	if cap(body)-len(body) > len(body)/8 {
		body = bytes.Clone(body)
	}
	return a.maker.cache.NewComputed(body)
}

// free gives the memory back. It may be called again.
func (a *Answer) free() {
	a.Body = nil
	if a.granted > 0 {
		a.gate.Give(a.granted)
		a.granted = 0
	}
}
