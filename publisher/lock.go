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

// Errors of concurrent publishers.
var (
	// ErrLocked says that another publisher holds the lock.
	ErrLocked = errors.New("locked")
	// ErrLockLost says that another publisher took the lock, because it had no heartbeat for
	// its lease or by BreakLock.
	ErrLockLost = errors.New("the lock was lost")
)

// A lockBody is the content of the lock object: the publisher that holds the lock, or held it
// last. Each body is unique, and so is its ETag.
type lockBody struct {
	ID        string    `json:"id"` // of the run
	Owner     string    `json:"owner"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Start     time.Time `json:"start"`
	Heartbeat time.Time `json:"heartbeat"` // by the owner's clock; informative
	Beats     int       `json:"beats"`     // changes with each heartbeat
	Lease     float64   `json:"lease_seconds"`
	Released  bool      `json:"released,omitempty"` // the run has ended
	Doubt     *doubt    `json:"doubt,omitempty"`
}

// lease is how long the owner sends requests after a heartbeat. It is limited to maxLease,
// whatever the lock says.
func (b lockBody) lease() time.Duration {
	return time.Duration(min(max(b.Lease, 0), maxLease.Seconds()) * float64(time.Second))
}

// heartbeats is their number per lease: some may fail.
const heartbeats = 4

// drainTime is how long a server may still carry out requests that were cut off. A second was
// measured with MinIO, which unpacks an archive to its end.
const drainTime = 5 * time.Second

// A lock is held from acquire to release, unless another publisher takes it.
type lock struct {
	bucket    *retryingBucket // without lease and window
	body      lockBody        // owned by the heartbeat's goroutine while that runs
	etag      storage.Condition
	found     *doubt        // named by the lock when it was taken
	doubted   bool          // whether, because of found, the bucket may differ from its manifest
	takenOver bool          // whether the run before had not released it
	md5ETags  bool          // whether the ETag of the lock is its MD5
	matched   bool          // whether the lock was taken by a condition that named its ETag
	drain     time.Duration // wait until requests of the run before have ended
	now       func() instant
	lease     *lease
	stop      context.CancelFunc // ends the heartbeat
	stopped   chan struct{}      // closed when the heartbeat has ended
}

// acquire takes the lock and keeps it alive until release. lost is called if another publisher
// takes it. Without conditional writes on the server, acquire returns nil.
func acquire(ctx context.Context, id string, bucket *retryingBucket, o Options, lost context.CancelCauseFunc) (*lock, error) {
	l := &lock{bucket: bucket.withoutWindow(), now: o.clock, body: lockBody{
		ID: id, Owner: o.Owner, Host: hostname(), PID: os.Getpid(),
		Start: time.Now().UTC().Truncate(time.Second), Lease: o.Lease.Seconds(),
	}}
	sent, err := l.take(ctx, o)
	if err == nil {
		err = l.prove(ctx)
	}
	switch {
	case errors.Is(err, storage.ErrUnsupported):
		return nil, l.leave(ctx)
	case errors.Is(err, ErrLockLost):
		return nil, err
	case err != nil:
		if l.etag != "" {
			l.releaseUnused(ctx)
		}
		return nil, err
	}
	l.lease = newLease(o.Lease, sent, o.clock)
	beatCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.stopped = stop, make(chan struct{})
	go l.keepAlive(beatCtx, lost)
	return l, nil
}

// prove returns storage.ErrUnsupported unless the server accepts a condition that holds, and refuses
// one that does not: some servers refuse every ETag, and some ignore conditions.
func (l *lock) prove(ctx context.Context) error {
	if !l.matched {
		if _, err := l.beat(ctx, l.bucket); err != nil {
			return err
		}
	}
	_, _, err := l.write(ctx, l.bucket, neverHolds)
	switch {
	case err == nil:
		return fmt.Errorf("put %s: the server ignores conditions: %w", site.LockKey, storage.ErrUnsupported)
	case errors.Is(err, storage.ErrCondition):
		return nil
	}
	return err
}

// leave frees a lock that a server without conditional writes has. Its doubt stays.
func (l *lock) leave(ctx context.Context) error {
	holder, _, err := readLock(ctx, l.bucket)
	if errors.Is(err, storage.ErrNotFound) || err == nil && holder.Released {
		return nil
	} else if err != nil {
		return err
	}
	l.body.Released = true
	_, _, err = l.write(ctx, l.bucket, storage.Always)
	return err
}

// releaseUnused frees a lock under which nothing was written. If it was taken over, it stays
// instead: the next run must wait as long for the requests of the former owner.
func (l *lock) releaseUnused(ctx context.Context) {
	if l.takenOver {
		l.abandon()
	} else if err := l.release(ctx, sameDoubt); err != nil {
		l.bucket.log.Warn("the lock was not released: the next run will wait for its lease", "error", err)
	}
}

// neverHolds is a condition with the ETag of no object.
const neverHolds storage.Condition = "00000000000000000000000000000000"

// maxLockWrites bounds the attempts to write the lock or the mark while others write it too.
const maxLockWrites = 10

// take writes the lock if it is free. If it is held, take watches it first: a lock without a
// heartbeat for its lease and the drain, by the clock of this machine alone, is abandoned. sent
// is a time before the lock was written.
func (l *lock) take(ctx context.Context, o Options) (sent instant, err error) {
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
		sent = l.now()
		etag, md5ETag, err := l.write(ctx, l.bucket, condition)
		if err == nil {
			l.etag, l.md5ETags, l.matched = storage.Condition(etag), md5ETag, condition != storage.IfAbsent
			return sent, nil
		}
		if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
			return sent, err
		}
	}
	return sent, fmt.Errorf("%w: others keep taking and releasing it: try again", ErrLocked)
}

// inherit takes over from the former holder its doubt, and how long to wait for its requests
// unless it was watched for that time.
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
			// A run that takes the lock from us must wait as long.
			l.body.Lease = max(l.body.Lease, holder.lease().Seconds())
		}
	case !l.found.settled(now):
		l.drain = o.drain
	}
	l.body.Doubt = l.found
}

func errLockedBy(holder lockBody, advice string) error {
	return fmt.Errorf("%w by %s (host %s, process %d) since %s: %s", ErrLocked, holder.Owner, holder.Host,
		holder.PID, holder.Start.Format(time.RFC3339), advice)
}

func (l *lock) write(ctx context.Context, bucket *retryingBucket, condition storage.Condition) (etag string, md5ETag bool, err error) {
	l.body.Heartbeat = time.Now().UTC()
	l.body.Beats++
	return writeLock(ctx, bucket, l.body, condition)
}

// writeLock returns the ETag, and whether that is an MD5.
func writeLock(ctx context.Context, bucket *retryingBucket, body lockBody, condition storage.Condition) (etag string, md5ETag bool, err error) {
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
		body = lockBody{ID: info.ETag, Owner: "a publisher whose lock cannot be read", Lease: DefaultLease.Seconds()}
	}
	return body, info, nil
}

// ownObject is an object beside the site: the lock or the mark.
func ownObject(key site.Key, body []byte) storage.Object {
	return storage.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body,
		ContentType: "application/json", CacheControl: site.NoStore,
	}
}

// keepAlive writes a heartbeat at regular intervals, until ctx ends or the lock is lost.
func (l *lock) keepAlive(ctx context.Context, lost context.CancelCauseFunc) {
	defer close(l.stopped)
	ticker := time.NewTicker(l.lease.length / heartbeats)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		if ctx.Err() != nil { // after a sleep both are ready
			return
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

// heartbeat writes the lock and renews the lease from the time before that write. It gives up
// after a part of the lease, because the next heartbeat may get a better connection.
func (l *lock) heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.lease.length*2/5)
	defer cancel()
	sent, err := l.beat(ctx, l.bucket.withHard(ctx))
	if err == nil {
		l.lease.renew(sent)
	}
	return err
}

// beat writes the lock if it is still ours. sent is a time before that.
func (l *lock) beat(ctx context.Context, bucket *retryingBucket) (sent instant, err error) {
	for range maxLockWrites {
		sent = l.now()
		etag, _, err := l.write(ctx, bucket, l.etag)
		if err == nil {
			l.etag = storage.Condition(etag)
			return sent, nil
		}
		if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
			return sent, err
		}
		if err := l.reread(ctx, bucket); err != nil {
			return sent, err
		}
	}
	return sent, errors.New("others keep writing it")
}

// reread reads the lock after a write whose condition did not hold. If the lock is still ours,
// the answer to an earlier attempt was lost, or another run has added a doubt.
func (l *lock) reread(ctx context.Context, bucket *retryingBucket) error {
	holder, info, err := readLock(ctx, bucket)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return fmt.Errorf("%w: it was removed: this run has stopped", ErrLockLost)
	case err != nil:
		return err
	case holder.ID != l.body.ID:
		return fmt.Errorf("%w to %s (host %s): this run has stopped, and the other one publishes", ErrLockLost, holder.Owner, holder.Host)
	}
	l.etag = storage.Condition(info.ETag)
	l.body.Doubt = l.body.Doubt.merge(holder.Doubt)
	return nil
}

// abandon ends the heartbeat and the lease. The lock stays.
func (l *lock) abandon() {
	if l.lease == nil { // acquire failed before the heartbeat began
		return
	}
	l.stop()
	<-l.stopped
	l.lease.release()
}

// release ends the heartbeat and frees the lock, unless another publisher has taken it. change
// returns the doubt to leave in it, given the one that it has. Another publisher may take it
// at once.
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

func sameDoubt(d *doubt) *doubt { return d }
