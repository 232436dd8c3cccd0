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

// conditional is whether the store has conditional writes. Some servers refuse conditions, and some ignore them.
type conditional struct {
	log   *slog.Logger
	known atomic.Int32 // unknown, yes or no
}

const (
	unknown int32 = iota
	yes
	no
)

// lacking notes that the store has none, and says so once.
func (c *conditional) lacking() {
	if c.known.Swap(no) != no && c.log != nil {
		c.log.Warn("the server has no conditional writes: refreshes look before they write, so two servers, or a server and a publish, can overwrite each other's data if they write at the same moment")
	}
}

// neverHolds is a condition with the ETag of no object.
const neverHolds storage.Condition = "00000000000000000000000000000000"

// putIf stores an object if the condition holds. The first object below site.RefreshPrefix is put under a condition that
// does not hold, too: a store that accepts that ignores conditions. A store in memory needs no such proof.
func (f *Refresher) putIf(ctx context.Context, o storage.Object, condition storage.Condition) error {
	c := f.conditional
	if c.known.Load() == unknown && !f.inMemory && strings.HasPrefix(string(o.Key), string(site.RefreshPrefix)) {
		err := f.fetcher.Put(ctx, f.bucket, o, neverHolds)
		switch {
		case err == nil:
			c.lacking()
			return nil
		case errors.Is(err, storage.ErrCondition): // and whether conditions that hold are accepted, the next request shows
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
