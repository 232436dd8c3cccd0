package shards

import (
	"context"
	"slices"
	"sync"

	"github.com/followpress/followpress/site"
)

// A Split reads a manifest in the parts of a finer one, so that two sites with shards of different sizes can be
// compared part by part. It caches a few shards. It is safe for concurrent use.
type Split struct {
	digits int // digits of shard names
	read   func(ctx context.Context, shard string) ([]site.Entry, error)

	mu    sync.Mutex
	split []*splitShard // at most maxSplit, oldest request first; under mu
}

// A splitShard is a shard whose entries are divided into parts.
type splitShard struct {
	name  string
	ready chan struct{} // closed after the read
	parts map[string][]site.Entry
	err   error
}

// maxSplit is the number of cached shards: parts are requested roughly in order.
const maxSplit = 4

// NewSplit returns a Split of a manifest whose shard names have that many digits. read reads a shard.
func NewSplit(digits int, read func(ctx context.Context, shard string) ([]site.Entry, error)) *Split {
	return &Split{digits: digits, read: read}
}

// Digits returns the number of digits of shard names.
func (r *Split) Digits() int { return r.digits }

// Entries returns the entries of a part, sorted by key. Part names have at least as many digits as shard names. The
// first call for a shard reads it; concurrent calls wait.
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
			target := site.ManifestShard(e.Key, len(part))
			s.parts[target] = append(s.parts[target], e)
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
