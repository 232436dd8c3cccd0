package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/maypok86/otter/v2"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// An object is an object of the site with its entity tag.
type object struct {
	body []byte
	etag string // the MD5 in quotation marks, as S3 gives it
}

// A version counts the sites that took each other's place in a store. Cached
// objects belong to the version under which they were asked for, so that noticing
// a new site is enough to forget the old one.
type version uint64

// A cache keeps the objects of a store that are asked for often, up to a number of
// bytes, and reads each only once however many ask at the same time. It remembers
// what is not there too.
type cache struct {
	store   Store
	objects *otter.Cache[cacheKey, *object] // nil is an object that is not there
}

type cacheKey struct {
	version version
	key     site.Key
}

// entryOverhead is about what an entry takes beside its key and its body.
const entryOverhead = 200

func newCache(store Store, bytes uint64) (*cache, error) {
	objects, err := otter.New(&otter.Options[cacheKey, *object]{
		MaximumWeight: bytes,
		Weigher: func(k cacheKey, o *object) uint32 {
			weight := entryOverhead + len(k.key)
			if o != nil {
				weight += len(o.body)
			}
			return uint32(weight)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of %d bytes: %w", bytes, err)
	}
	return &cache{store, objects}, nil
}

// get gives an object, or storage.ErrNotFound.
func (c *cache) get(ctx context.Context, v version, key site.Key) (*object, error) {
	o, err := c.objects.Get(ctx, cacheKey{v, key}, otter.LoaderFunc[cacheKey, *object](c.load))
	if err == nil && o == nil {
		err = storage.ErrNotFound
	}
	return o, err
}

func (c *cache) load(ctx context.Context, k cacheKey) (*object, error) {
	// Others may wait for this read: it goes on if the first to ask goes away.
	body, err := c.store.Get(context.WithoutCancel(ctx), k.key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return newObject(body), nil
}

func newObject(body []byte) *object {
	return &object{body, `"` + site.Sum(body).String() + `"`}
}
