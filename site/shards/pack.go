package shards

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/klauspost/compress/gzip"

	"github.com/followpress/followpress/site"
)

// Limits of texts, in bytes. What followpress writes does not come near them.
const (
	maxShard = 16 << 20
	maxIndex = 64 << 10
	maxDelta = 256 << 10
)

// packers are compressors for reuse. Each takes most of a MiB, so there are no more than cores. (A sync.Pool would drop
// them at every garbage collection.)
var packers = make(chan *gzip.Writer, runtime.GOMAXPROCS(0))

func newPacker() *gzip.Writer {
	select {
	case w := <-packers:
		return w
	default:
		// The fastest level makes files as small as others do: digests are most of them.
		w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is valid
		}
		return w
	}
}

// Pack compresses a text. Equal texts give equal bytes, as long as the version of the compressor is the same.
func Pack(text []byte) []byte {
	var b bytes.Buffer
	b.Grow(len(text)/2 + 64)
	w := newPacker()
	w.Reset(&b)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // a bytes.Buffer takes everything
	}
	select {
	case packers <- w:
	default:
	}
	return b.Bytes()
}

// An unpacker decompresses one body after the other.
type unpacker struct {
	gzip.Reader

	body bytes.Reader
}

// unpackers are for reuse, and no more than packers are.
var unpackers = make(chan *unpacker, runtime.GOMAXPROCS(0))

func newUnpacker() *unpacker {
	select {
	case r := <-unpackers:
		return r
	default:
		return new(unpacker)
	}
}

// free keeps the unpacker for reuse, without the body.
func (r *unpacker) free() {
	r.body.Reset(nil)
	select {
	case unpackers <- r:
	default:
	}
}

// unpack returns the text of an object, if it has at most that many bytes: a few bytes can be a text of any size.
func unpack(key site.Key, body []byte, most int) ([]byte, error) {
	r := newUnpacker()
	defer r.free()
	r.body.Reset(body)
	if err := r.Reset(&r.body); err != nil {
		return nil, fmt.Errorf("read %s: it is no gzip file: %w: %w", key, err, site.ErrMalformed)
	}
	const mostRatio = 1032                                         // of the size of a text to that of its gzip file (RFC 1951)
	size := uint64(binary.LittleEndian.Uint32(body[len(body)-4:])) // as the file says; it has a header at least
	text := bytes.NewBuffer(make([]byte, 0, int(min(size, uint64(most), uint64(len(body))*mostRatio))+bytes.MinRead))
	if _, err := text.ReadFrom(io.LimitReader(r, int64(most)+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", key, err, site.ErrMalformed)
	}
	if text.Len() > most {
		return nil, fmt.Errorf("read %s: its text has more than %d KiB: %w", key, most>>10, site.ErrMalformed)
	}
	return text.Bytes(), nil
}

// Parse reads the object of a shard, as New made it.
func Parse(shard string, body []byte) (site.Manifest, error) {
	text, err := unpack(site.ManifestKey(shard), body, maxShard)
	if err != nil {
		return site.Manifest{}, err
	}
	return site.ParseManifest(shard, text)
}
