// Package lock keeps publishers of one bucket apart, by the lock with its lease, the doubt about
// late requests that the lock names, and the mark of what a run has begun.
package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

var (
	// ErrLocked means that another publisher holds the lock.
	ErrLocked = errors.New("locked")
	// ErrLockLost means that another publisher took the lock: it had no heartbeat for its lease, or
	// BreakLock was set.
	ErrLockLost = errors.New("the lock was lost")
)

// A Body is the content of the lock object: the publisher that holds the lock, or held it last.
// Each body is unique, and so is its ETag.
type Body struct {
	ID        string    `json:"id"` // ID of the run
	Owner     string    `json:"owner"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Start     time.Time `json:"start"`
	Heartbeat time.Time `json:"heartbeat"` // by the owner's clock; informative
	Beats     int       `json:"beats"`     // changes with each heartbeat
	Lease     float64   `json:"lease_seconds"`
	Released  bool      `json:"released,omitempty"` // the run has ended
	Doubt     *Doubt    `json:"doubt,omitempty"`
}

// LeaseTime returns how long the owner sends requests after a heartbeat, at most MaxLease.
func (b Body) LeaseTime() time.Duration {
	return time.Duration(min(max(b.Lease, 0), MaxLease.Seconds()) * float64(time.Second))
}

// Lengths of leases.
const (
	DefaultLease = time.Minute
	MinLease     = time.Second // leaves room for a few heartbeats
	MaxLease     = time.Hour   // bounds how long others wait for a run that was killed
)

// Heartbeats is the number of heartbeats per lease: some may fail.
const Heartbeats = 4

// DrainTime is how long a server may continue requests that were cut off. MinIO, which unpacks an
// archive to its end, was measured at one second.
const DrainTime = 5 * time.Second

// Options configures how to take the lock.
type Options struct {
	Owner string        // named in the lock
	Lease time.Duration // how long the lock is held after each heartbeat
	Drain time.Duration // how long a server may continue requests that were cut off
	Break bool          // take the lock even from a live publisher, after waiting for its lease to end
	Clock func() Instant
}

// A Lock is held from Acquire to Release, unless another publisher takes it.
type Lock struct {
	bucket    *requests.Bucket // without lease and window
	body      Body             // owned by the heartbeat's goroutine while it runs
	etag      storage.Condition
	Found     *Doubt        // doubt named by the lock when it was taken
	Doubted   bool          // whether the bucket may differ from its manifest because of Found
	takenOver bool          // whether the previous run had not released it
	MD5ETags  bool          // whether the ETag of the lock is its MD5
	matched   bool          // whether a condition naming its ETag took the lock
	Drain     time.Duration // time until requests of the previous run have ended
	now       func() Instant
	Lease     *lease
	stop      context.CancelFunc // ends the heartbeat
	stopped   chan struct{}      // closed when the heartbeat has ended
}

// Acquire takes the lock and keeps it alive until Release. It calls lost if another publisher takes
// the lock. If the server has no conditional writes, Acquire returns nil.
func Acquire(ctx context.Context, id string, bucket *requests.Bucket, o Options, lost context.CancelCauseFunc) (*Lock, error) {
	l := &Lock{bucket: bucket.WithoutWindow(), now: o.Clock, body: Body{
		ID: id, Owner: o.Owner, Host: Hostname(), PID: os.Getpid(),
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
			l.ReleaseUnused(ctx)
		}
		return nil, err
	}
	l.Lease = newLease(o.Lease, sent, o.Clock)
	beatCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.stopped = stop, make(chan struct{})
	go l.keepAlive(beatCtx, lost)
	return l, nil
}

// ID returns the ID of the run that holds the lock.
func (l *Lock) ID() string { return l.body.ID }

// prove returns storage.ErrUnsupported unless the server accepts a true condition and rejects a
// false one: some servers reject every ETag, and some ignore conditions.
func (l *Lock) prove(ctx context.Context) error {
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

// leave frees the lock on a server without conditional writes. Its doubt stays.
func (l *Lock) leave(ctx context.Context) error {
	holder, _, err := Read(ctx, l.bucket)
	if errors.Is(err, storage.ErrNotFound) || err == nil && holder.Released {
		return nil
	} else if err != nil {
		return err
	}
	l.body.Released = true
	_, _, err = l.write(ctx, l.bucket, storage.Always)
	return err
}

// ReleaseUnused frees a lock under which nothing was written. A lock that was taken over stays
// instead: the next run must wait as long for the requests of the former owner.
func (l *Lock) ReleaseUnused(ctx context.Context) {
	if l.takenOver {
		l.Abandon()
	} else if err := l.Release(ctx, SameDoubt); err != nil {
		l.bucket.Log.Warn("lock not released: the next run will wait for its lease", "error", err)
	}
}

// neverHolds is a condition with the ETag of no object.
const neverHolds storage.Condition = "00000000000000000000000000000000"

// maxLockWrites bounds the attempts to write the lock or the mark while others write it too.
const maxLockWrites = 10

// take writes the lock if it is free. If it is held, take watches it first: a lock without a
// heartbeat for its lease and the drain time, by the clock of this machine alone, is abandoned.
// sent is a time before the lock was written.
func (l *Lock) take(ctx context.Context, o Options) (sent Instant, err error) {
	watched := false
	for range maxLockWrites {
		holder, info, err := Read(ctx, l.bucket)
		condition := storage.Condition(info.ETag)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			holder, condition = Body{Released: true}, storage.IfAbsent
		case err != nil:
			return sent, err
		case holder.ID == l.body.ID: // the answer to an earlier attempt was lost
			l.etag = condition
			return sent, nil
		case !holder.Released && !o.Break:
			if holder, info, err = newWatch(l.bucket, holder, o.Drain).wait(ctx); err != nil {
				return sent, err
			}
			condition, watched = storage.Condition(info.ETag), true
		}
		l.inherit(holder, info, o, watched)
		sent = l.now()
		etag, md5ETag, err := l.write(ctx, l.bucket, condition)
		if err == nil {
			l.etag, l.MD5ETags, l.matched = storage.Condition(etag), md5ETag, condition != storage.IfAbsent
			return sent, nil
		}
		if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
			return sent, err
		}
	}
	return sent, fmt.Errorf("%w: others keep taking and releasing it; try again", ErrLocked)
}

// inherit takes over the former holder's doubt, and the time to wait for its requests unless it was
// watched for that time.
func (l *Lock) inherit(holder Body, info storage.Info, o Options, watched bool) {
	now := l.bucket.Now()
	l.Found, l.Doubted, l.takenOver, l.Drain = holder.Doubt.NotInFuture(now), holder.Doubted(), !holder.Released, 0
	l.body.Lease = o.Lease.Seconds()
	switch {
	case l.takenOver:
		l.bucket.Log.Warn("taking over the lock", "owner", holder.Owner, "host", holder.Host)
		l.Found, l.Doubted = l.Found.Merge(holder.DoubtOf(info, now)), true
		if !watched {
			l.Drain = holder.LeaseTime() + o.Drain
			// A run that takes this lock must wait as long.
			l.body.Lease = max(l.body.Lease, holder.LeaseTime().Seconds())
		}
	case !l.Found.Settled(now):
		l.Drain = o.Drain
	}
	l.body.Doubt = l.Found
}

func errLockedBy(holder Body, advice string) error {
	return fmt.Errorf("%w by %s (host %s, process %d) since %s: %s", ErrLocked, holder.Owner, holder.Host,
		holder.PID, holder.Start.Format(time.RFC3339), advice)
}

func (l *Lock) write(ctx context.Context, bucket *requests.Bucket, condition storage.Condition) (etag string, md5ETag bool, err error) {
	l.body.Heartbeat = time.Now().UTC()
	l.body.Beats++
	return writeLock(ctx, bucket, l.body, condition)
}

// writeLock returns the ETag, and whether that is an MD5.
func writeLock(ctx context.Context, bucket *requests.Bucket, body Body, condition storage.Condition) (etag string, md5ETag bool, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return "", false, fmt.Errorf("encode the lock: %w", err)
	}
	o := OwnObject(site.LockKey, text)
	etag, err = bucket.Put(ctx, o, condition)
	return etag, etag == o.MD5.String(), err
}

// Read reads the lock. A body that is not JSON counts as the lock of an unknown publisher. Read
// returns storage.ErrNotFound if there is no lock.
func Read(ctx context.Context, bucket *requests.Bucket) (body Body, info storage.Info, err error) {
	text, info, err := bucket.Read(ctx, site.LockKey)
	if err != nil {
		return body, info, err
	}
	if err := json.Unmarshal(text, &body); err != nil {
		body = Body{ID: info.ETag, Owner: "an unknown publisher (unreadable lock)", Lease: DefaultLease.Seconds()}
	}
	return body, info, nil
}

// OwnObject returns the object of the lock or the mark.
func OwnObject(key site.Key, body []byte) storage.Object {
	return storage.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body,
		ContentType: "application/json", CacheControl: site.NoStore,
	}
}

// keepAlive writes a heartbeat at regular intervals, until ctx ends or the lock is lost.
func (l *Lock) keepAlive(ctx context.Context, lost context.CancelCauseFunc) {
	defer close(l.stopped)
	ticker := time.NewTicker(l.Lease.length / Heartbeats)
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
			l.bucket.Log.Warn("the lock's heartbeat failed", "error", err)
		}
	}
}

// heartbeat writes the lock and renews the lease from the time before the write. It gives up after
// a part of the lease, because the next heartbeat may get a better connection.
func (l *Lock) heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.Lease.length*2/5)
	defer cancel()
	sent, err := l.beat(ctx, l.bucket.WithHard(ctx))
	if err == nil {
		l.Lease.renew(sent)
	}
	return err
}

// beat writes the lock if this run still holds it. sent is a time before the write.
func (l *Lock) beat(ctx context.Context, bucket *requests.Bucket) (sent Instant, err error) {
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
	return sent, errors.New("others keep writing the lock")
}

// reread reads the lock after a write whose condition did not hold. If this run still holds the
// lock, the answer to an earlier attempt was lost, or another run has added a doubt.
func (l *Lock) reread(ctx context.Context, bucket *requests.Bucket) error {
	holder, info, err := Read(ctx, bucket)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return fmt.Errorf("%w: it was removed; this run has stopped", ErrLockLost)
	case err != nil:
		return err
	case holder.ID != l.body.ID:
		return fmt.Errorf("%w to %s (host %s); this run has stopped, and the other one publishes", ErrLockLost, holder.Owner, holder.Host)
	}
	l.etag = storage.Condition(info.ETag)
	l.body.Doubt = l.body.Doubt.Merge(holder.Doubt)
	return nil
}

// Abandon ends the heartbeat and the lease. The lock stays.
func (l *Lock) Abandon() {
	if l.Lease == nil { // Acquire failed before the heartbeat began
		return
	}
	l.stop()
	<-l.stopped
	l.Lease.release()
}

// Release ends the heartbeat and frees the lock, unless another publisher has taken it. change maps
// the lock's doubt to the doubt to leave in it. Another publisher may take the lock at once.
func (l *Lock) Release(ctx context.Context, change func(*Doubt) *Doubt) error {
	l.Abandon()
	ctx, cancel := FinalContext(ctx)
	defer cancel()
	bucket := l.bucket.WithHard(ctx)
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

// Time limits of releasing the lock. A person who interrupts a run does not want to wait; otherwise
// waiting is cheaper than the listing that an unreleased lock causes.
const (
	releaseTime            = 45 * time.Second // one request that hangs, and a retry
	releaseTimeInterrupted = 2 * time.Second
)

// FinalContext returns a context for the last steps of a run, even after ctx has ended.
func FinalContext(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := releaseTime
	if ctx.Err() != nil {
		limit = releaseTimeInterrupted
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// Hostname returns the name of this machine, or "unknown".
func Hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}

// NewID returns a unique name for a run.
func NewID() string { return rand.Text() }

// SameDoubt returns the doubt unchanged, for a release that leaves it in the lock.
func SameDoubt(d *Doubt) *Doubt { return d }

// Try takes and frees the lock, to detect a server without conditional writes before the first
// publish. It leaves a lock alone that is held or has a doubt.
func Try(ctx context.Context, bucket *requests.Bucket, o Options) error {
	holder, _, err := Read(ctx, bucket)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		return err
	case !holder.Released:
		return errLockedBy(holder, "conditional writes were not tried")
	case holder.Doubt != nil:
		return nil
	}
	held, err := Acquire(ctx, NewID(), bucket, o, func(error) {})
	if err != nil {
		return err
	}
	if held == nil {
		return fmt.Errorf("%w; publish works without a lock, so run one publisher at a time", storage.ErrUnsupported)
	}
	return held.Release(ctx, SameDoubt)
}
