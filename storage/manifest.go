package storage

import (
	"context"
	"slices"
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
	split []*splitShard // the last ones
}

// A splitShard is a shard whose entries belong to several parts.
type splitShard struct {
	name  string
	ready chan struct{} // closed once it was read
	parts map[string][]site.Entry
	err   error
}

// maxSplit is the number of split shards to keep: parts come almost in their order.
const maxSplit = 4

// NewManifestReader returns a reader of a manifest whose shards have names of that many digits. read
// reads a shard.
func NewManifestReader(digits int, read func(ctx context.Context, shard string) ([]site.Entry, error)) *ManifestReader {
	return &ManifestReader{digits: digits, read: read}
}

// Digits is the number of digits of the names of the shards.
func (r *ManifestReader) Digits() int { return r.digits }

// Entries returns the entries of a part, by key. Its name has as many digits as those of the shards, or more.
func (r *ManifestReader) Entries(ctx context.Context, part string) ([]site.Entry, error) {
	if len(part) == r.digits {
		return r.read(ctx, part)
	}
	s, first := r.splitOf(part)
	if first {
		s.split(ctx, len(part), r.read)
	}
	select {
	case <-s.ready:
		return s.parts[part], s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// splitOf returns the shard that a part belongs to. The first caller has to read it.
func (r *ManifestReader) splitOf(part string) (s *splitShard, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := part[:r.digits]
	for _, s := range r.split {
		if s.name == name {
			return s, false
		}
	}
	s = &splitShard{name: name, ready: make(chan struct{})}
	r.split = append(r.split, s)
	if len(r.split) > maxSplit {
		r.split = slices.Delete(r.split, 0, 1)
	}
	return s, true
}

func (s *splitShard) split(ctx context.Context, digits int, read func(context.Context, string) ([]site.Entry, error)) {
	defer close(s.ready)
	entries, err := read(ctx, s.name)
	s.parts, s.err = map[string][]site.Entry{}, err
	for _, e := range entries {
		part := site.ManifestShard(e.Key, digits)
		s.parts[part] = append(s.parts[part], e)
	}
}
