package lock

import (
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/storage"
)

// A Keeper takes and leaves the lock for a run.
type Keeper struct {
	ID       string           // the run
	Bucket   *requests.Bucket // without a lease
	Options  Options
	Unlocked func() // called when the server turns out to have no conditional writes
}

// A Tenure describes a taken lock.
type Tenure struct {
	Held    *Lock  // nil if the run publishes without a lock
	Found   *Doubt // doubt named by the lock
	Doubted bool   // whether the bucket may differ from its manifest because of Found
}

// An Aftermath is the doubt to leave in the lock after the steps under it.
type Aftermath struct {
	Ended       *Doubt // the earlier doubt, once this run has made sure that its cause is over
	Marked      []Run  // runs named by this run's mark; nil if it wrote none
	Interleaved bool   // another run wrote the root, so objects of both may be mixed
}

// Take takes the lock if the server has conditional writes, and waits until no request of the
// previous run can arrive. After an error there is nothing to leave. It calls lost if another
// publisher takes the lock.
func (k *Keeper) Take(ctx context.Context, lost context.CancelCauseFunc) (Tenure, error) {
	held, err := Acquire(ctx, k.ID, k.Bucket, k.Options, lost)
	if err != nil {
		return Tenure{}, err
	}
	if held == nil {
		k.Unlocked()
		return k.Read(ctx)
	}
	if held.Drain > 0 {
		k.Bucket.Log.Warn("waiting until the other run's requests arrive or expire", "for", held.Drain.Round(time.Second))
		select {
		case <-time.After(held.Drain):
		case <-ctx.Done():
			held.ReleaseUnused(ctx)
			return Tenure{}, context.Cause(ctx)
		}
	}
	return Tenure{held, held.Found, held.Doubted}, nil
}

// Under returns the bucket, which sends requests only while the lock is held.
func (k *Keeper) Under(t Tenure) *requests.Bucket {
	if t.Held == nil {
		return k.Bucket
	}
	return k.Bucket.Under(t.Held.Lease, t.Held.MD5ETags)
}

// Leave frees the lock, and leaves a doubt in it if requests of this run may still arrive. ctx is
// the one that Take ended when the lock was lost.
func (k *Keeper) Leave(ctx context.Context, t Tenure, left Aftermath) {
	switch {
	case t.Held == nil:
		k.change(ctx, func(lock *Body) bool {
			was := lock.Doubt
			if lock.Released { // no other publisher is running
				lock.ID, lock.Owner = k.ID, k.Options.Owner
			}
			lock.Doubt = k.remaining(left, t.Found.Merge(was.NotInFuture(k.Bucket.Now())))
			return !lock.Doubt.Equal(was)
		})
	case errors.Is(context.Cause(ctx), ErrLockLost):
		t.Held.Abandon()
		k.change(ctx, func(lock *Body) bool {
			lock.Doubt = lock.Doubt.Merge(k.doubt(k.ID))
			return true
		})
	default:
		if err := t.Held.Release(ctx, func(was *Doubt) *Doubt { return k.remaining(left, was) }); err != nil {
			k.Bucket.Log.Warn("lock not released: the next run will wait for its lease and compare with a listing", "lease", k.Options.Lease, "error", err)
		}
	}
}

// Read reads the doubt from the lock, for a run that does not take the lock.
func (k *Keeper) Read(ctx context.Context) (Tenure, error) {
	body, info, err := Read(ctx, k.Bucket)
	if errors.Is(err, storage.ErrNotFound) {
		return Tenure{}, nil
	} else if err != nil {
		return Tenure{}, err
	}
	now := k.Bucket.Now()
	t := Tenure{Found: body.Doubt.NotInFuture(now), Doubted: body.Doubted()}
	if !body.Released {
		t.Found, t.Doubted = t.Found.Merge(body.DoubtOf(info, now)), true
	}
	return t, nil
}

// doubt returns a new doubt about requests of the run with this ID, or of several runs if id is "".
func (k *Keeper) doubt(id string) *Doubt { return &Doubt{Run: id, Since: k.Bucket.Now().UTC()} }

// remaining returns the doubt to leave in the lock at the end of this run: the earlier one unless
// this run ended it, and a new one if requests of this run may still arrive.
func (k *Keeper) remaining(left Aftermath, was *Doubt) *Doubt {
	if was.Equal(left.Ended) {
		was = nil
	}
	switch {
	case left.Interleaved:
		was = was.Merge(k.doubt(""))
	case !k.Bucket.Settled():
		was = was.Merge(k.doubt(k.ID))
	}
	if was == nil {
		return nil
	}
	return was.WithSites(left.Marked)
}

// change changes the doubt in a lock that another run may hold.
func (k *Keeper) change(ctx context.Context, change func(*Body) bool) {
	ctx, cancel := FinalContext(ctx)
	defer cancel()
	if err := Change(ctx, k.Bucket.WithoutWindow().WithHard(ctx), change); err != nil {
		k.Bucket.Log.Warn("cannot record in the lock that requests may still arrive; verify the bucket in an hour", "error", err)
	}
}

// IsConsistent reports whether, according to mark and lock, the bucket equals its manifest.
func (k *Keeper) IsConsistent(ctx context.Context) (bool, error) {
	mark, err := ReadMark(ctx, k.Bucket)
	if err != nil || mark != nil {
		return false, err
	}
	lock, _, err := Read(ctx, k.Bucket)
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil
	}
	// A run that takes the lock ends an old doubt.
	return err == nil && lock.Released && !lock.Doubted() && (lock.Doubt == nil || !lock.Doubt.Settled(k.Bucket.Now())), err
}
