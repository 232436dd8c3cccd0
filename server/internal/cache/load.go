package cache

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// loaded passes a loaded object, pinned, to the request that loaded it. The cache may drop the
// object before the request pins it; meanwhile other requests must find it rather than load it
// again.
type loaded struct{ atomic.Pointer[Object] }

// loadedKey is the key of a *loaded in a context.
type loadedKey struct{}

// nothingLoaded replaces the object when no request waits for it any longer.
var nothingLoaded Object

// take takes over a pinned object.
func (l *loaded) take(o *Object) {
	if !l.CompareAndSwap(nil, o) {
		o.Release()
	}
}

func (l *loaded) release() {
	if o := l.Swap(&nothingLoaded); o != nil {
		o.Release()
	}
}

// A loader reads objects for a cache. Package otter calls it.
type loader struct{ *Cache }

func (c loader) Reload(ctx context.Context, k Key, _ *Object) (*Object, error) {
	if !c.gates.Rereads.TryTake(1) {
		return nil, gate.ErrBusy
	}
	defer c.gates.Rereads.Give(1)
	return c.load(ctx, k, false, nil)
}

// indexBytes is the memory for the index of a full search shard with names of some length.
const indexBytes = 96 << 10

// Load reads an object, once for all requests that wait for the key.
func (c loader) Load(ctx context.Context, k Key) (*Object, error) {
	by, _ := ctx.Value(loadedKey{}).(*loaded)
	if by != nil {
		if o := c.tracker.find(k); o != nil { // loaded a moment ago
			by.take(o)
			return o, nil
		}
	}
	return c.load(ctx, k, k.WithoutTags, by)
}

// load reads an object. If derive is set, it makes records without tags from records already in
// memory. It also passes the object to by, unless by is nil.
func (c *Cache) load(ctx context.Context, k Key, derive bool, by *loaded) (o *Object, err error) {
	// A gate counts the body until Load returns, then the cache does.
	var held int64
	release := func() {
		if held > 0 {
			c.tracker.gateFor(held).Give(held)
			held = 0
		}
	}
	defer release()
	defer func() {
		if o != nil && by != nil {
			o.Pin() // before its memory stops being counted
			by.take(o)
		}
	}()
	_, _, isShard := site.ParseSearchShardKey(k.Key)
	admit := func(ctx context.Context, size int64) error {
		release() // from an earlier attempt
		if size == 0 {
			return nil
		}
		if isShard {
			size += min(size/2, indexBytes)
		}
		if err := c.tracker.gateFor(size).Take(ctx, size); err != nil {
			return err
		}
		held = size
		return nil
	}
	if derive {
		if o, err := c.derived(ctx, k, admit); o != nil || err != nil {
			return o, err
		}
	}
	body, err := c.fetcher.GetAdmitted(ctx, k.Key, admit)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if k.WithoutTags {
		body = scan.AppendWithoutTags(body[:0], body) // nobody shares this body, and the result is never longer
	}
	o = c.newObject(k, body)
	if isShard {
		if index, ok := scan.IndexShard(body); ok {
			o.Index = index
		}
	}
	return o, nil
}

// derived returns records without tags, made from cached records that are not stale, or nil. It
// calls admit with the size before it allocates.
func (c *Cache) derived(ctx context.Context, k Key, admit func(ctx context.Context, size int64) error) (*Object, error) {
	whole := Key{Version: k.Version, Key: k.Key}
	records := c.peekYoung(whole)
	if records == nil {
		return nil, nil
	}
	size := len(records.Body)
	records.Release() // no request may wait for memory while it holds an object
	if err := admit(ctx, int64(size)); err != nil {
		return nil, err
	}
	if records = c.peekYoung(whole); records == nil {
		return nil, nil
	}
	defer records.Release()
	o := c.newObject(k, scan.AppendWithoutTags(make([]byte, 0, len(records.Body)), records.Body))
	o.read = records.read
	return o, nil
}
