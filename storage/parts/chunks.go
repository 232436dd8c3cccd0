package parts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/followpress/followpress/storage/internal/lru"
	"github.com/followpress/followpress/storage/internal/object"
)

// chunkBytes is the size of a chunk. A server sends about that much in the time of a request's latency.
const chunkBytes = 1 << 20

// chunksInFlight is the maximum number of chunks being read.
const chunksInFlight = 16

// Memory for chunks in addition to those in flight. The system caches the files of a folder, too.
const (
	chunksOfBucket = 48 << 20
	chunksOfFolder = 8 << 20
)

// A partFile is the state of a part.
type partFile struct {
	name string

	mu      sync.Mutex
	known   *object.Version // nil until the first read
	touched int64           // chunk of the last object that was read alone
}

func (f *partFile) version() *object.Version {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known
}

// chunks reads parts. A first publish reads every object, roughly in the order of the parts; later ones read few. So
// the first object of a chunk is read alone, and the second one reads the whole chunk.
type chunks struct {
	site    *Site
	cached  *lru.Cache[chunkID, []byte]
	flights singleflight.Group
	slots   chan struct{}
}

type chunkID struct {
	name string
	n    int64
}

func newChunks(s *Site, memory int64) *chunks {
	return &chunks{site: s, cached: lru.New[chunkID, []byte](memory), slots: make(chan struct{}, chunksInFlight)}
}

// read fills a buffer from an offset of a part.
func (c *chunks) read(ctx context.Context, f *partFile, offset int64, into []byte) error {
	if f.version() == nil {
		if _, err := c.get(ctx, f, 0); err != nil {
			return err
		}
	}
	n := int64(len(into))
	if size := f.version().Size; offset+n > size {
		return fmt.Errorf("%s of %s ends after %d bytes: %w", f.name, c.site.parts.store, size, ErrBroken)
	}
	if n > chunkBytes || !c.worthwhile(f, offset/chunkBytes) {
		return c.readAlone(ctx, f, offset, into)
	}
	for len(into) > 0 {
		chunk, err := c.get(ctx, f, offset/chunkBytes)
		if err != nil {
			return err
		}
		copied := copy(into, chunk[offset%chunkBytes:])
		into, offset = into[copied:], offset+int64(copied)
	}
	return nil
}

// worthwhile reports whether to read a whole chunk for an object in it.
func (c *chunks) worthwhile(f *partFile, n int64) bool {
	if _, ok := c.cached.Get(chunkID{f.name, n}); ok {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	isSecond := f.touched == n
	f.touched = n
	return isSecond || n == 0
}

func (c *chunks) readAlone(ctx context.Context, f *partFile, offset int64, into []byte) error {
	version := f.version()
	err := c.site.parts.do(ctx, int64(len(into)), "read "+f.name, func(ctx context.Context) error {
		_, _, err := c.site.parts.store.read(ctx, f.name, version, offset, into)
		return err
	})
	return c.explain(f, err)
}

// get returns a chunk. Concurrent calls share one read.
func (c *chunks) get(ctx context.Context, f *partFile, n int64) ([]byte, error) {
	if chunk, ok := c.cached.Get(chunkID{f.name, n}); ok {
		return chunk, nil
	}
	chunk, err := await(ctx, c.site, &c.flights, fmt.Sprint(f.name, " ", n), func(ctx context.Context) ([]byte, error) {
		return c.load(ctx, f, n)
	})
	return chunk, c.explain(f, err)
}

// load reads a chunk and caches it. The first read of a part sets its version.
func (c *chunks) load(ctx context.Context, f *partFile, n int64) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if chunk, ok := c.cached.Get(chunkID{f.name, n}); ok {
		return chunk, nil
	}
	version, offset := f.version(), n*chunkBytes
	buffer := make([]byte, chunkBytes)
	if version != nil {
		buffer = buffer[:min(chunkBytes, version.Size-offset)]
	}
	var got int64
	var is object.Version
	err := c.site.parts.do(ctx, chunkBytes, fmt.Sprintf("read chunk %d of %s", n, f.name), func(ctx context.Context) (err error) {
		got, is, err = c.site.parts.store.read(ctx, f.name, version, offset, buffer)
		return err
	})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	if f.known == nil {
		f.known = &is
	}
	f.mu.Unlock()
	chunk := buffer
	if got < chunkBytes {
		chunk = bytes.Clone(buffer[:got])
	}
	c.cached.Put(chunkID{f.name, n}, chunk, int64(len(chunk)))
	return chunk, nil
}

// explain adds the file to an error. A deadline is retryable, as for a single request.
func (c *chunks) explain(f *partFile, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, object.ErrNotFound):
		return fmt.Errorf("%s has no %s: %w", c.site.parts.store, f.name, ErrBroken)
	case errors.Is(err, context.DeadlineExceeded) && !object.Temporary(err):
		return &object.UnansweredError{Err: fmt.Errorf("read %s: %w", f.name, err)}
	}
	return fmt.Errorf("read %s: %w", f.name, err)
}

// await calls load once for concurrent callers with the same key, and returns its result, or an error if ctx ends
// before. load continues as long as the site is open.
func await[T any](ctx context.Context, s *Site, flights *singleflight.Group, key string, load func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	s.running.Go(func() {
		value, err, _ := flights.Do(key, func() (any, error) { return load(s.lifetime) })
		if err != nil {
			done <- result{err: err}
			return
		}
		done <- result{value: value.(T)}
	})
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
