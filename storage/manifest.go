package storage

import (
	"context"
	"sync"

	"github.com/followpress/followpress/site"
)

// A ManifestReader reads a manifest in the parts that the finer of two manifests has, so that two
// sites with shards of different sizes can be compared part by part. It keeps a few shards at most.
// Methods may be called from many goroutines.
type ManifestReader struct {
	digits int // of the names of the shards
	read   func(ctx context.Context, shard string) ([]site.Entry, error)

	mu    sync.Mutex
	split *lru[string, *splitShard]
}

// A splitShard is a shard whose entries belong to several parts.
type splitShard struct {
	ready chan struct{} // closed once it was read
	parts map[string][]site.Entry
	err   error
}

// maxSplit is the number of split shards to keep: parts come almost in their order.
const maxSplit = 4

// NewManifestReader returns a reader of a manifest whose shards have names of that many digits. read
// reads a shard.
func NewManifestReader(digits int, read func(ctx context.Context, shard string) ([]site.Entry, error)) *ManifestReader {
	return &ManifestReader{digits: digits, read: read, split: newLRU[string, *splitShard](maxSplit)}
}

// Digits is the number of digits of the names of the shards.
func (r *ManifestReader) Digits() int { return r.digits }

// Entries returns the entries of a part, by key. Its name has as many digits as those of the shards, or more.
// The first call for a part of a shard reads the shard; others wait for it.
func (r *ManifestReader) Entries(ctx context.Context, part string) ([]site.Entry, error) {
	if len(part) == r.digits {
		return r.read(ctx, part)
	}
	name := part[:r.digits]
	r.mu.Lock()
	s, ok := r.split.get(name)
	if !ok {
		s = &splitShard{ready: make(chan struct{}), parts: map[string][]site.Entry{}}
		r.split.put(name, s, 1)
	}
	r.mu.Unlock()
	if !ok {
		defer close(s.ready)
		var entries []site.Entry
		entries, s.err = r.read(ctx, name)
		for _, e := range entries {
			of := site.ManifestShard(e.Key, len(part))
			s.parts[of] = append(s.parts[of], e)
		}
		return s.parts[part], s.err
	}
	select {
	case <-s.ready:
		return s.parts[part], s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
