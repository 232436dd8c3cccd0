package publisher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Errors of publishers that meet.
var (
	// ErrLocked says that somebody else publishes.
	ErrLocked = errors.New("locked")
	// ErrLockLost says that somebody else took the lock, after it went without a
	// heartbeat for its lease or was broken.
	ErrLockLost = errors.New("the lock was lost")
)

// A lockBody is what the lock object says: who publishes, or who did last. The object
// is never deleted, only replaced under a condition, so that no request that arrives
// late can free somebody else's lock. Each body is unique, and so is its ETag.
type lockBody struct {
	ID        string    `json:"id"` // of the run
	Owner     string    `json:"owner"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Start     time.Time `json:"start"`
	Heartbeat time.Time `json:"heartbeat"` // by the owner's clock, for people
	Beats     int       `json:"beats"`     // another number is a sign of life
	Lease     float64   `json:"lease_seconds"`
	Released  bool      `json:"released,omitempty"` // the run has ended
	Doubt     *doubt    `json:"doubt,omitempty"`
}

// lease is how long the owner sends requests after a heartbeat. Nobody waits longer
// than maxLease, whatever a lock says.
func (b lockBody) lease() time.Duration {
	return time.Duration(min(max(b.Lease, 0), maxLease.Seconds()) * float64(time.Second))
}

// heartbeats in a lease: some may fail.
const heartbeats = 4

// drainTime is how long a server may be busy with requests of somebody who is gone: a
// second was seen with MinIO, which unpacks an archive to its end.
const drainTime = 5 * time.Second

// A lock is held from acquire to release, as long as nobody takes it.
type lock struct {
	bucket    *retryingBucket // without a lease: what asks for the lock does not need it
	body      lockBody        // of the heartbeat's goroutine while that runs
	etag      storage.Condition
	found     *doubt        // that the lock named when it was taken
	doubted   bool          // whether found means that the bucket may not be what its manifest says
	takenOver bool          // from a run that had not ended
	md5ETags  bool          // its ETag is its MD5
	drain     time.Duration // until the requests of the run that it was taken from have ended
	lease     *lease
	beating   chan struct{} // closed when the heartbeat has ended
	stop      context.CancelFunc
}

// acquire takes the lock and keeps it alive until release; lost is called if
// somebody else takes it. It gives nil where the server has no conditional writes:
// then there is nothing to be locked with.
func acquire(ctx context.Context, id string, bucket *retryingBucket, o Options, lost context.CancelCauseFunc) (*lock, error) {
	l := &lock{bucket: bucket.withoutSlots(), body: lockBody{
		ID: id, Owner: o.Owner, Host: hostname(), PID: os.Getpid(),
		Start: time.Now().UTC().Truncate(time.Second), Lease: o.Lease.Seconds(),
	}}
	sent, err := l.take(ctx, o)
	if errors.Is(err, storage.ErrUnsupported) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	// Some servers take conditions and do not look at them.
	switch _, _, err = l.write(ctx, l.bucket, neverHolds); {
	case err == nil, errors.Is(err, storage.ErrUnsupported):
		l.body.Released = true // what it says of doubts counts all the same
		_, _, err := l.write(ctx, l.bucket, storage.Always)
		return nil, err
	case !errors.Is(err, storage.ErrCondition):
		l.releaseUnused(ctx)
		return nil, err
	}
	l.lease = newLease(o.Lease, sent)
	beatCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.beating = stop, make(chan struct{})
	go l.keepAlive(beatCtx, lost)
	return l, nil
}

// giveBack frees a lock under which nothing was done, unless it was taken from somebody
// who may still send something: then others wait as long as this run would have.
func (l *lock) releaseUnused(ctx context.Context) {
	if l.takenOver {
		l.abandon()
	} else if err := l.release(ctx, sameDoubt); err != nil {
		l.bucket.log.Warn("the lock was not released: others will wait for its lease", "error", err)
	}
}

// neverHolds is the ETag of no object.
const neverHolds storage.Condition = "00000000000000000000000000000000"

// takes bounds how often somebody else may be faster.
const maxLockWrites = 10

// take writes the lock where it is free. Where it is held, take watches it: one that
// gives no sign of life for its lease and the drain, by the clock of this machine
// alone, is abandoned. sent is a time before the lock was written.
func (l *lock) take(ctx context.Context, o Options) (sent time.Time, err error) {
	watched := false
	for range maxLockWrites {
		holder, info, err := readLock(ctx, l.bucket)
		condition := storage.Condition(info.ETag)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			holder, condition = lockBody{Released: true}, storage.IfAbsent
		case err != nil:
			return sent, err
		case holder.ID == l.body.ID: // the answer to an earlier attempt was lost
			l.etag = condition
			return sent, nil
		case !holder.Released && !o.BreakLock:
			if holder, info, err = newWatch(l.bucket, holder, o.drain).wait(ctx); err != nil {
				return sent, err
			}
			condition, watched = storage.Condition(info.ETag), true
		}
		l.inherit(holder, info, o, watched)
		sent = time.Now()
		etag, plain, err := l.write(ctx, l.bucket, condition)
		if err == nil {
			l.etag, l.md5ETags = storage.Condition(etag), plain
			return sent, nil
		}
		if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
			return sent, err
		}
	}
	return sent, fmt.Errorf("%w: others take and release it all the time: try again", ErrLocked)
}

// inherit takes over what the lock said of runs before: a doubt, and how long to wait
// for the owner, unless it was watched for that time.
func (l *lock) inherit(holder lockBody, info storage.Info, o Options, watched bool) {
	now := l.bucket.inner.Now()
	l.found, l.doubted, l.takenOver, l.drain = holder.Doubt.notInFuture(now), holder.doubted(), !holder.Released, 0
	l.body.Lease = o.Lease.Seconds()
	switch {
	case l.takenOver:
		l.bucket.log.Warn("taking over the lock", "owner", holder.Owner, "host", holder.Host)
		l.found, l.doubted = l.found.merge(holder.doubtOf(info, now)), true
		if !watched {
			l.drain = holder.lease() + o.drain
			// Who takes it from us in the meantime has to wait as long.
			l.body.Lease = max(l.body.Lease, holder.lease().Seconds())
		}
	case !l.found.settled(now):
		l.drain = o.drain
	}
	l.body.Doubt = l.found
}

// lockedBy is the error where somebody else has the lock.
func errLockedBy(holder lockBody, what string) error {
	return fmt.Errorf("%w by %s (host %s, process %d) since %s: %s", ErrLocked, holder.Owner, holder.Host,
		holder.PID, holder.Start.Format(time.RFC3339), what)
}

func (l *lock) write(ctx context.Context, bucket *retryingBucket, condition storage.Condition) (etag string, plain bool, err error) {
	l.body.Heartbeat = time.Now().UTC()
	l.body.Beats++
	return writeLock(ctx, bucket, l.body, condition)
}

// writeLock gives the ETag, and whether that is an MD5.
func writeLock(ctx context.Context, bucket *retryingBucket, body lockBody, condition storage.Condition) (etag string, plain bool, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return "", false, fmt.Errorf("encode the lock: %w", err)
	}
	o := ownObject(site.LockKey, text)
	etag, err = bucket.put(ctx, o, condition)
	return etag, etag == o.MD5.String(), err
}

func readLock(ctx context.Context, bucket *retryingBucket) (body lockBody, info storage.Info, err error) {
	text, info, err := bucket.read(ctx, site.LockKey)
	if err != nil {
		return body, info, err
	}
	if err := json.Unmarshal(text, &body); err != nil {
		body = lockBody{ID: info.ETag, Owner: "somebody whose lock cannot be read", Lease: DefaultLease.Seconds()}
	}
	return body, info, nil
}

// ownObject is an object that is none of the site's.
func ownObject(key site.Key, body []byte) storage.Object {
	return storage.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body,
		ContentType: "application/json", CacheControl: site.NoStore,
	}
}

// keepAlive writes the lock again and again, so that others see it live.
func (l *lock) keepAlive(ctx context.Context, lost context.CancelCauseFunc) {
	defer close(l.beating)
	ticker := time.NewTicker(l.lease.length / heartbeats)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := l.heartbeat(ctx)
		if errors.Is(err, ErrLockLost) {
			lost(err)
			return
		}
		if err != nil && ctx.Err() == nil {
			l.bucket.log.Warn("the lock's heartbeat failed", "error", err)
		}
	}
}

// heartbeat writes the lock and renews the lease, from before a write that succeeded: that
// is the one which others see. It takes a part of the lease at most, since another
// connection may fare better.
func (l *lock) heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.lease.length*2/5)
	defer cancel()
	bucket := l.bucket.withHard(ctx)
	for range maxLockWrites {
		sent := time.Now()
		etag, _, err := l.write(ctx, bucket, l.etag)
		if err == nil {
			l.etag = storage.Condition(etag)
			l.lease.renew(sent)
			return nil
		}
		if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if err := l.reread(ctx, bucket); err != nil {
			return err
		}
	}
	return errors.New("others write it all the time")
}

// again looks at the lock after a write whose condition did not hold. If it is still
// ours, the answer to an earlier attempt was lost, or somebody has added a doubt.
func (l *lock) reread(ctx context.Context, bucket *retryingBucket) error {
	holder, info, err := readLock(ctx, bucket)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return fmt.Errorf("%w: somebody has removed it: this run stopped, and the bucket is as they left it", ErrLockLost)
	case err != nil:
		return err
	case holder.ID != l.body.ID:
		return fmt.Errorf("%w to %s (host %s): this run stopped, and the bucket is theirs", ErrLockLost, holder.Owner, holder.Host)
	}
	l.etag = storage.Condition(info.ETag)
	l.body.Doubt = l.body.Doubt.merge(holder.Doubt)
	return nil
}

// abandon ends the heartbeat and the lease. The lock stays.
func (l *lock) abandon() {
	if l.lease == nil { // it was never kept alive
		return
	}
	l.stop()
	<-l.beating
	l.lease.release()
}

// release ends the heartbeat and frees the lock, unless somebody else has it. What is
// still doubtful stays in it: change makes that of what was. From then on others may
// publish.
func (l *lock) release(ctx context.Context, change func(*doubt) *doubt) error {
	l.abandon()
	ctx, cancel := finalContext(ctx)
	defer cancel()
	bucket := l.bucket.withHard(ctx)
	l.body.Released = true
	was := l.body.Doubt
	for range maxLockWrites {
		l.body.Doubt = change(was)
		_, _, err := l.write(ctx, bucket, l.etag)
		if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		l.body.Doubt = was
		if err := l.reread(ctx, bucket); errors.Is(err, ErrLockLost) {
			return nil
		} else if err != nil {
			return err
		}
		was = l.body.Doubt
	}
	return ErrLocked
}

// sameDoubt leaves a doubt as it was.
func sameDoubt(d *doubt) *doubt { return d }
