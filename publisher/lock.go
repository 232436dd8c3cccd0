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

// A lockBody is what the lock object says.
type lockBody struct {
	ID        string    `json:"id"`
	Owner     string    `json:"owner"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Start     time.Time `json:"start"`
	Heartbeat time.Time `json:"heartbeat"` // by the owner's clock; the bucket's tells the age
	Lease     float64   `json:"lease_seconds"`
}

func (b lockBody) lease() time.Duration { return time.Duration(b.Lease * float64(time.Second)) }

// betweenTakes is a moment for others to finish what they do with the lock.
const betweenTakes = 50 * time.Millisecond

// heartbeats in a lease: some may fail.
const heartbeats = 4

// drainTime is how long a server may be busy with requests of somebody who is gone: a
// second was seen with MinIO, which unpacks an archive to its end.
const drainTime = 5 * time.Second

// A lock is held from acquire to release, as long as nobody takes it.
type lock struct {
	bucket *patient // without a lease: what asks for the lock does not need it
	body   lockBody
	etag   storage.Condition
	wait   time.Duration // until the one that it was taken from knows, and its requests have ended
	lease  *lease
	beat   chan struct{} // closed when the heartbeat has ended
	stop   context.CancelFunc
}

// acquire takes the lock and keeps it alive until release; lost is called if
// somebody else takes it. It gives nil where the server has no conditional writes:
// then there is nothing to be locked with.
func acquire(ctx context.Context, bucket *patient, o Options, lost context.CancelCauseFunc) (*lock, error) {
	now := time.Now()
	l := &lock{bucket: bucket.unbounded(), body: lockBody{
		ID: newID(), Owner: o.Owner, Host: hostname(), PID: os.Getpid(),
		Start: now.UTC().Truncate(time.Second), Lease: o.Lease.Seconds(),
	}}
	sent, err := l.take(ctx, o)
	if errors.Is(err, storage.ErrUnsupported) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	// Some servers take conditions and do not look at them.
	if _, err = l.write(ctx, neverHolds); !errors.Is(err, storage.ErrCondition) {
		removed := bucket.delete(ctx, site.LockKey)
		if err == nil || errors.Is(err, storage.ErrUnsupported) {
			return nil, removed
		}
		return nil, err
	}
	l.lease = newLease(o.Lease, sent)
	beatCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.beat = stop, make(chan struct{})
	go l.keepAlive(beatCtx, lost)
	return l, nil
}

// neverHolds is the ETag of no object.
const neverHolds storage.Condition = "00000000000000000000000000000000"

// take writes the lock where there is none, or where the one that is there is ours
// to take. sent is a time before it was written.
func (l *lock) take(ctx context.Context, o Options) (sent time.Time, err error) {
	condition := storage.IfAbsent
	for range 10 { // others may take and release it between our requests
		sent := time.Now()
		etag, err := l.write(ctx, condition)
		if err == nil {
			l.etag = storage.Condition(etag)
			return sent, nil
		}
		if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
			return sent, err
		}
		holder, info, err := l.read(ctx)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			condition = storage.IfAbsent
			time.Sleep(betweenTakes)
			continue
		case err != nil:
			return sent, err
		case holder.ID == l.body.ID: // the answer to an earlier attempt was lost
			l.etag = storage.Condition(info.ETag)
			return sent, nil
		}
		age := l.bucket.bucket.Now().Sub(info.Modified)
		if age <= holder.lease()+time.Second && !o.BreakLock { // clocks tell whole seconds
			return sent, fmt.Errorf("%w by %s (host %s, process %d) since %s, last heartbeat %s ago: wait until that run ends, "+
				"or use --break-lock if it cannot be alive; the lock is free %s after its last heartbeat", ErrLocked, holder.Owner, holder.Host,
				holder.PID, holder.Start.Format(time.RFC3339), max(0, age).Round(time.Second), holder.lease())
		}
		l.bucket.log.Warn("taking over the lock", "owner", holder.Owner, "host", holder.Host, "age", age.Round(time.Second))
		condition = storage.Condition(info.ETag)
		l.wait = max(0, holder.lease()/heartbeats+o.drain-age)
	}
	return sent, fmt.Errorf("%w: others take and release it all the time: try again", ErrLocked)
}

func (l *lock) write(ctx context.Context, condition storage.Condition) (etag string, err error) {
	l.body.Heartbeat = time.Now().UTC()
	text, err := json.Marshal(l.body)
	if err != nil {
		return "", fmt.Errorf("encode the lock: %w", err)
	}
	return l.bucket.put(ctx, ownObject(site.LockKey, text), condition)
}

func (l *lock) read(ctx context.Context) (body lockBody, info storage.Info, err error) {
	text, info, err := l.bucket.read(ctx, site.LockKey)
	if err != nil {
		return body, info, err
	}
	if err := json.Unmarshal(text, &body); err != nil {
		body = lockBody{Owner: "somebody whose lock cannot be read", Lease: DefaultLease.Seconds()}
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
	defer close(l.beat)
	ticker := time.NewTicker(l.lease.length / heartbeats)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		sent := time.Now()
		etag, err := l.write(ctx, l.etag)
		if errors.Is(err, storage.ErrCondition) || errors.Is(err, storage.ErrNotFound) {
			holder, info, readErr := l.read(ctx)
			switch {
			case readErr == nil && holder.ID == l.body.ID: // the answer to an earlier attempt was lost
				etag, err = info.ETag, nil
			case readErr == nil:
				lost(fmt.Errorf("%w to %s (host %s): this run stopped, and the bucket is theirs", ErrLockLost, holder.Owner, holder.Host))
				return
			case errors.Is(readErr, storage.ErrNotFound):
				lost(fmt.Errorf("%w: somebody else has taken and released it: this run stopped, and the bucket is as they left it", ErrLockLost))
				return
			default:
				err = readErr
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				l.bucket.log.Warn("the lock's heartbeat failed", "error", err)
			}
			continue
		}
		l.etag = storage.Condition(etag)
		l.lease.renew(sent)
	}
}

// abandon ends the heartbeat and reports whether the lock was held until then.
func (l *lock) abandon() (held bool) {
	l.stop()
	<-l.beat
	held = l.lease.held()
	l.lease.release()
	return held
}

// release ends the heartbeat and removes the lock, unless it is not ours any more:
// somebody may have broken it since the last heartbeat.
func (l *lock) release(ctx context.Context) error {
	if !l.abandon() {
		return nil
	}
	l.bucket = l.bucket.until(ctx)
	holder, _, err := l.read(ctx)
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && holder.ID != l.body.ID:
		return nil
	case err != nil:
		return err
	}
	return l.bucket.delete(ctx, site.LockKey)
}
