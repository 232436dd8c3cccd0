package output

import (
	"crypto/md5"
	"crypto/sha256"
	"hash"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
)

const (
	// budgetPerWorker is the average limit of bytes rendered before their turn.
	budgetPerWorker = 8 << 20
	// pieceBytes is the limit of bytes that a chunk holds during its turn.
	pieceBytes = 1 << 20
	// entryBytes is the size of an object besides its body: a header and padding in a tar file.
	entryBytes = 1 << 10
)

// A piece is a sequence of rendered objects for the output.
type piece struct {
	batch    Batch
	objects  int64
	rendered int64 // bytes of the objects
	bytes    int64 // bytes of the piece
	budget   int64 // released when the piece is finished
}

// A chunkWriter renders the objects of a chunk within a memory budget shared by all chunks. Before
// its turn, a chunk takes the bytes it needs from the budget, or waits for its turn. During its
// turn, it hands over piece after piece. So only one chunk at a time exceeds its share, by the
// object being rendered and a copy of it in the output.
type chunkWriter struct {
	out    Output
	ticket *inorder.Ticket[piece]
	all    *entryStore // receives the entries; nil for none
	budget *semaphore.Weighted
	piece  piece
	err    error // the first error, after which nothing is rendered
	chunkBuffers
}

// chunkBuffers are buffers of a chunkWriter, for reuse.
type chunkBuffers struct {
	body    []byte
	entries []site.Entry // entries of the piece
	hasher  *hasher
}

// emit renders an object into the piece.
func (w *chunkWriter) emit(size int, render func(b []byte) []byte, keys ...site.Key) {
	if w.err == nil {
		w.err = w.admit(int64(len(keys)*(size+entryBytes) + max(0, size-cap(w.body))))
	}
	if w.err != nil {
		return
	}
	w.body = render(slices.Grow(w.body[:0], size))
	e := w.hasher.entry("", w.body)
	for _, e.Key = range keys {
		w.entries = append(w.entries, e)
		if w.err == nil {
			w.err = w.piece.batch.Put(e, w.body)
		}
	}
}

// admit waits until this many more bytes can be rendered.
func (w *chunkWriter) admit(bytes int64) error {
	if !w.ticket.IsDue() && w.budget.TryAcquire(bytes) {
		w.piece.budget += bytes
		w.piece.bytes += bytes
		return nil
	}
	if err := w.ticket.Wait(); err != nil {
		return err
	}
	if w.piece.bytes+bytes > pieceBytes && len(w.entries) > 0 {
		p, err := w.last()
		if err != nil {
			return err
		}
		if err := w.ticket.HandOver(p); err != nil {
			return err
		}
		w.piece = piece{batch: w.out.Begin()}
	}
	w.piece.bytes += bytes
	return nil
}

// last returns the piece, and stores its entries.
func (w *chunkWriter) last() (piece, error) {
	if w.err != nil {
		return w.piece, w.err
	}
	if w.all != nil {
		if err := w.all.add(w.entries); err != nil {
			return w.piece, err
		}
	}
	w.piece.objects = int64(len(w.entries))
	for _, e := range w.entries {
		w.piece.rendered += e.Size
	}
	w.entries = w.entries[:0]
	return w.piece, nil
}

// A hasher computes entries of objects, one at a time, faster than site.NewEntry. It reuses its
// memory.
type hasher struct {
	md5, sha256 hash.Hash
	sum         [sha256.Size]byte
}

func newHasher() *hasher { return &hasher{md5: md5.New(), sha256: sha256.New()} }

// entry returns the same as site.NewEntry. Within a digest each step depends on the previous one,
// so entry alternates between the two digests, and the processor works on both at once.
func (h *hasher) entry(key site.Key, body []byte) site.Entry {
	const block = max(md5.BlockSize, sha256.BlockSize)
	h.md5.Reset()
	h.sha256.Reset()
	for rest := body; len(rest) > 0; rest = rest[min(block, len(rest)):] {
		part := rest[:min(block, len(rest))]
		h.md5.Write(part)
		h.sha256.Write(part)
	}
	e := site.Entry{Key: key, Size: int64(len(body))}
	copy(e.MD5[:], h.md5.Sum(h.sum[:0]))
	copy(e.SHA256[:], h.sha256.Sum(h.sum[:0]))
	return e
}
