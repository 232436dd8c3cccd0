package shards

import (
	"context"
	"slices"
	"sync"

	"github.com/followpress/followpress/site"
)

// A Split reads a manifest in the parts that the finer of two manifests has, so that two
// sites with shards of different sizes can be compared part by part. It keeps a few shards at most.
// Methods may be called from many goroutines.
type Split struct {
	digits int // of the names of the shards
	read   func(ctx context.Context, shard string) ([]site.Entry, error)

	mu    sync.Mutex
	split []*splitShard // the last ones, by when they were asked for first; under mu
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

// NewSplit returns a reader of a manifest whose shards have names of that many digits. read
// reads a shard.
func NewSplit(digits int, read func(ctx context.Context, shard string) ([]site.Entry, error)) *Split {
	return &Split{digits: digits, read: read}
}

// Digits is the number of digits of the names of the shards.
func (r *Split) Digits() int { return r.digits }

// Entries returns the entries of a part, by key. Its name has as many digits as those of the shards, or more.
// The first call for a part of a shard reads the shard; others wait for it.
func (r *Split) Entries(ctx context.Context, part string) ([]site.Entry, error) {
	if len(part) == r.digits {
		return r.read(ctx, part)
	}
	name := part[:r.digits]
	r.mu.Lock()
	at := slices.IndexFunc(r.split, func(s *splitShard) bool { return s.name == name })
	if at < 0 {
		r.split = append(r.split[max(0, len(r.split)-maxSplit+1):], &splitShard{name: name, ready: make(chan struct{}), parts: map[string][]site.Entry{}})
		s := r.split[len(r.split)-1]
		r.mu.Unlock()
		defer close(s.ready)
		var entries []site.Entry
		entries, s.err = r.read(ctx, name)
		for _, e := range entries {
			of := site.ManifestShard(e.Key, len(part))
			s.parts[of] = append(s.parts[of], e)
		}
		return s.parts[part], s.err
	}
	s := r.split[at]
	r.mu.Unlock()
	select {
	case <-s.ready:
		return s.parts[part], s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
