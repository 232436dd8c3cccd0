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

// Size limits of texts in bytes, far above what followpress writes.
const (
	maxShard = 16 << 20
	maxIndex = 64 << 10
	maxDelta = 256 << 10
)

// packers are idle compressors. Each takes most of a MiB, so there is at most one per core. (A sync.Pool would drop
// them at every garbage collection.)
var packers = make(chan *gzip.Writer, runtime.GOMAXPROCS(0))

func newPacker() *gzip.Writer {
	select {
	case w := <-packers:
		return w
	default:
		// Other levels hardly make smaller files, which are mostly digests.
		w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is valid
		}
		return w
	}
}

// Pack compresses a text. Equal texts give equal bytes with the same version of the compressor.
func Pack(text []byte) []byte {
	var b bytes.Buffer
	b.Grow(len(text)/2 + 64)
	w := newPacker()
	w.Reset(&b)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // a bytes.Buffer does not fail
	}
	select {
	case packers <- w:
	default:
	}
	return b.Bytes()
}

// An unpacker is a reusable decompressor.
type unpacker struct {
	gzip.Reader

	body bytes.Reader
}

// unpackers are idle decompressors, at most one per core.
var unpackers = make(chan *unpacker, runtime.GOMAXPROCS(0))

func newUnpacker() *unpacker {
	select {
	case r := <-unpackers:
		return r
	default:
		return new(unpacker)
	}
}

// free returns the unpacker for reuse, without its body.
func (r *unpacker) free() {
	r.body.Reset(nil)
	select {
	case unpackers <- r:
	default:
	}
}

// unpack returns the text of an object, and fails if it is longer than most bytes: a few bytes can expand to any
// size.
func unpack(key site.Key, body []byte, most int) ([]byte, error) {
	r := newUnpacker()
	defer r.free()
	r.body.Reset(body)
	if err := r.Reset(&r.body); err != nil {
		return nil, fmt.Errorf("read %s: not a gzip file: %w: %w", key, err, site.ErrMalformed)
	}
	const mostRatio = 1032                                         // maximum compression of gzip (RFC 1951)
	size := uint64(binary.LittleEndian.Uint32(body[len(body)-4:])) // according to the file, which has at least a header
	text := bytes.NewBuffer(make([]byte, 0, int(min(size, uint64(most), uint64(len(body))*mostRatio))+bytes.MinRead))
	if _, err := text.ReadFrom(io.LimitReader(r, int64(most)+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", key, err, site.ErrMalformed)
	}
	if text.Len() > most {
		return nil, fmt.Errorf("read %s: its text has more than %d KiB: %w", key, most>>10, site.ErrMalformed)
	}
	return text.Bytes(), nil
}

// Parse decodes the object of a shard.
func Parse(shard string, body []byte) (site.Manifest, error) {
	text, err := unpack(site.ManifestKey(shard), body, maxShard)
	if err != nil {
		return site.Manifest{}, err
	}
	return site.ParseManifest(shard, text)
}
