package shards

import (
	"context"

	"github.com/followpress/followpress/site"
)

// A Split reads a manifest in the parts of a finer one, so that two sites with shards of different sizes can be
// compared part by part. It caches a few shards. It is safe for concurrent use.
type Split struct {
	digits int // digits of shard names
	read   func(ctx context.Context, shard string) ([]site.Entry, error)
	split  recent[map[string][]site.Entry] // parts of shards
}

// maxSplit is the number of cached shards: parts are requested roughly in order.
const maxSplit = 4

// NewSplit returns a Split of a manifest whose shard names have that many digits. read reads a shard.
func NewSplit(digits int, read func(ctx context.Context, shard string) ([]site.Entry, error)) *Split {
	return &Split{digits: digits, read: read, split: recent[map[string][]site.Entry]{most: maxSplit}}
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
	parts, err := r.split.get(ctx, name, func() (map[string][]site.Entry, error) {
		entries, err := r.read(ctx, name)
		parts := map[string][]site.Entry{}
		for _, e := range entries {
			target := site.ManifestShard(e.Key, len(part))
			parts[target] = append(parts[target], e)
		}
		return parts, err
	})
	return parts[part], err
}
