package publisher

import (
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/storage"
)

// A watch looks at a lock that somebody else has, to find out whether its owner is
// alive. It compares no clocks: it waits for another heartbeat, as long by the clock of
// this machine as the owner may send requests after one.
type watch struct {
	bucket *retryingBucket
	holder lockBody // as it was first seen
	seen   time.Time
	drain  time.Duration
}

// firstLook is how soon a watch looks again: who has only a moment's work left is not
// waited for long.
const firstPoll = 50 * time.Millisecond

func newWatch(bucket *retryingBucket, holder lockBody, drain time.Duration) *watch {
	w := &watch{bucket, holder, time.Now(), drain}
	bucket.log.Warn("somebody else has the lock: watching whether they are alive", "owner", holder.Owner,
		"host", holder.Host, "process", holder.PID, "since", holder.Start.Format(time.RFC3339), "for", w.limit())
	return w
}

// limit is how long after its last heartbeat an owner's requests may arrive.
func (w *watch) limit() time.Duration { return w.holder.lease() + w.drain }

// wait gives the lock as it is when the owner has given no sign of life for the limit;
// ErrLocked as soon as it has given one.
func (w *watch) wait(ctx context.Context) (holder lockBody, info storage.Info, err error) {
	for pause := firstPoll; ; pause = min(2*pause, max(firstPoll, w.holder.lease()/heartbeats/2)) {
		left := w.limit() - time.Since(w.seen)
		select {
		case <-time.After(max(0, min(pause, left))):
		case <-ctx.Done():
			return holder, info, context.Cause(ctx)
		}
		holder, info, err = readLock(ctx, w.bucket)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return holder, info, errLockedBy(w.holder, "somebody has just removed the lock: run this again if that is still needed")
		case err != nil:
			return holder, info, err
		case holder.Released:
			return holder, info, errLockedBy(w.holder, "it has just ended: run this again if that is still needed")
		case holder.ID != w.holder.ID:
			return holder, info, errLockedBy(holder, "it has just taken over the lock: wait until that run ends")
		case holder.Beats != w.holder.Beats:
			return holder, info, errLockedBy(holder, "it is alive: wait until that run ends, or stop it; --break-lock takes the lock all the same")
		case left <= 0:
			return holder, info, nil
		}
	}
}
