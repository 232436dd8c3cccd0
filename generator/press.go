package generator

import (
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/followpress/followpress/site"
)

const (
	// roomPerWorker is how many bytes are rendered before their turn, on average.
	roomPerWorker = 8 << 20
	// pieceBytes is how many bytes are held back when their turn has come.
	pieceBytes = 1 << 20
	// entryBytes is what an object takes beside its body: in a tar file a header, and
	// padding.
	entryBytes = 1 << 10
)

// A piece is a run of rendered objects that are not yet finished.
type piece struct {
	batch   batch
	entries []site.Entry
	bytes   int64
	room    int64 // that it takes, until it is finished
}

// A press renders the objects of a chunk. However large they are, few bytes are
// rendered and not yet finished: before its turn a chunk takes what it needs from the
// room that all share, or waits; when its turn has come it hands on piece after piece.
// So there is one chunk at a time that holds more than its share: the object that it
// renders, and a copy of it in the output.
type press struct {
	out   output
	place *place[piece]
	room  *semaphore.Weighted
	body  []byte
	piece piece
	err   error // the first one; nothing is rendered after it
}

func newPress(out output, p *place[piece], room *semaphore.Weighted) *press {
	return &press{out: out, place: p, room: room, piece: piece{batch: out.begin()}}
}

// emit is an emitter.
func (p *press) emit(size int, render func(b []byte) []byte, keys ...site.Key) {
	if p.err == nil {
		p.err = p.admit(int64(len(keys)*(size+entryBytes) + max(0, size-cap(p.body))))
	}
	if p.err != nil {
		return
	}
	p.body = render(slices.Grow(p.body[:0], size))
	entry := site.Entry{Size: int64(len(p.body)), MD5: site.Sum(p.body)}
	for _, entry.Key = range keys {
		p.piece.entries = append(p.piece.entries, entry)
		if p.err == nil {
			p.err = p.piece.batch.put(entry, p.body)
		}
	}
}

// admit waits until so many bytes more can be rendered.
func (p *press) admit(bytes int64) error {
	if !p.place.come() && p.room.TryAcquire(bytes) {
		p.piece.room += bytes
		p.piece.bytes += bytes
		return nil
	}
	if err := p.place.wait(); err != nil {
		return err
	}
	if p.piece.bytes+bytes > pieceBytes && len(p.piece.entries) > 0 {
		if err := p.place.give(p.piece); err != nil {
			return err
		}
		p.piece = piece{batch: p.out.begin()}
	}
	p.piece.bytes += bytes
	return nil
}
