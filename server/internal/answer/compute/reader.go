package compute

import (
	"context"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/site"
)

// A reader reads objects of one version of a site.
type reader struct {
	cache  *cache.Cache
	site   Site
	renews bool // bypass the cache
}

func (r reader) key(key site.Key) cache.Key { return cache.Key{Version: r.site.Version, Key: key} }

// get returns an object or storage.ErrNotFound. The caller releases the object.
func (r reader) get(ctx context.Context, key site.Key) (*cache.Object, error) {
	if r.renews {
		return r.cache.Renew(ctx, r.key(key))
	}
	return r.cache.Get(ctx, r.key(key))
}

// has reports whether get would return without waiting.
func (r reader) has(key site.Key) bool { return !r.renews && r.cache.Has(r.key(key)) }
