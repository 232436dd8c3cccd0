package fresh

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// conditional records whether the store has conditional writes. Some servers reject conditions, and
// some ignore them.
type conditional struct {
	log   *slog.Logger
	known atomic.Int32 // unknown, yes or no
}

const (
	unknown int32 = iota
	yes
	no
)

// lacking records that the store has no conditional writes, and logs it once.
func (c *conditional) lacking() {
	if c.known.Swap(no) != no && c.log != nil {
		c.log.Warn("the store has no conditional writes: refreshes compare before they write, so concurrent writers can overwrite each other's data")
	}
}

// neverHolds is a condition with an ETag that no object has.
const neverHolds storage.Condition = "00000000000000000000000000000000"

// putIf writes an object if the condition holds. It first puts the first object below
// site.RefreshPrefix under a condition that does not hold: a store that accepts it ignores
// conditions. A store in memory needs no such test.
func (f *Refresher) putIf(ctx context.Context, o storage.Object, condition storage.Condition) error {
	c := f.conditional
	if c.known.Load() == unknown && !f.options.InMemory && strings.HasPrefix(string(o.Key), string(site.RefreshPrefix)) {
		err := f.fetcher.Put(ctx, f.bucket, o, neverHolds)
		switch {
		case err == nil:
			c.lacking()
			return nil
		case errors.Is(err, storage.ErrCondition): // the next request shows whether conditions that hold are accepted
			c.known.CompareAndSwap(unknown, yes)
		case !errors.Is(err, storage.ErrUnsupported):
			return err
		}
	}
	if c.known.Load() != no {
		err := f.fetcher.Put(ctx, f.bucket, o, condition)
		if !errors.Is(err, storage.ErrUnsupported) {
			return err
		}
		c.lacking()
	}
	_, now, err := f.fetcher.Read(ctx, f.bucket, o.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound) && condition == storage.IfAbsent, err == nil && condition == storage.Condition(now.ETag):
		return f.fetcher.Put(ctx, f.bucket, o, storage.Always)
	case err == nil, errors.Is(err, storage.ErrNotFound):
		return storage.ErrCondition
	}
	return err
}
