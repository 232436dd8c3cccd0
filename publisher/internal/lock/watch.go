package lock

import (
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/storage"
)

// A watch finds out whether the owner of a lock is alive. It compares no clocks: it waits for
// another heartbeat as long, by the clock of this machine, as the owner may send requests after
// one.
type watch struct {
	bucket *requests.Bucket
	holder Body      // the lock when the watch began
	seen   time.Time // beginning of the watch
	drain  time.Duration
}

// firstPoll is the first interval of a watch; intervals double. It is short because an owner may be
// about to finish.
const firstPoll = 50 * time.Millisecond

func newWatch(bucket *requests.Bucket, holder Body, drain time.Duration) *watch {
	w := &watch{bucket, holder, time.Now(), drain}
	bucket.Log.Warn("another publisher has the lock: watching whether it is alive", "owner", holder.Owner,
		"host", holder.Host, "process", holder.PID, "since", holder.Start.Format(time.RFC3339), "for", w.limit())
	return w
}

// limit returns how long after its last heartbeat an owner's requests may arrive.
func (w *watch) limit() time.Duration { return w.holder.LeaseTime() + w.drain }

// wait returns the lock once its owner has shown no sign of life for the limit, or ErrLocked on the
// first sign of life.
func (w *watch) wait(ctx context.Context) (holder Body, info storage.Info, err error) {
	for pause := firstPoll; ; pause = min(2*pause, max(firstPoll, w.holder.LeaseTime()/Heartbeats/2)) {
		left := w.limit() - time.Since(w.seen)
		select {
		case <-time.After(max(0, min(pause, left))):
		case <-ctx.Done():
			return holder, info, context.Cause(ctx)
		}
		holder, info, err = Read(ctx, w.bucket)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return holder, info, errLockedBy(w.holder, "the lock was just removed; run this again if still needed")
		case err != nil:
			return holder, info, err
		case holder.Released:
			return holder, info, errLockedBy(w.holder, "it just ended; run this again if still needed")
		case holder.ID != w.holder.ID:
			return holder, info, errLockedBy(holder, "it just took over the lock; wait until that run ends")
		case holder.Beats != w.holder.Beats:
			return holder, info, errLockedBy(holder, "it is alive; wait until that run ends, stop it, or use --break-lock")
		case left <= 0:
			return holder, info, nil
		}
	}
}
