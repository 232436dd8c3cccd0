// Package requests sends the requests of a run to a bucket. Each request waits for room in a
// window, is sent only while a lease is held, and is retried.
package requests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Limits of one attempt, sizes of requests, and waits between attempts.
const (
	AttemptTime     = 30 * time.Second // for a request, besides its body
	attemptTimePack = 5 * time.Minute  // for a request that makes a server store many objects
	packOverhead    = 2 << 10          // approximate bytes that an archive adds to each object
	deleteBytes     = 100              // approximate bytes per key in a request that deletes many
	firstBackoff    = 200 * time.Millisecond
	longestBackoff  = 10 * time.Second
)

// A Bucket sends all requests to a bucket. Each waits for room in the window and is sent only while
// the lease is held. It is cut off when the lease or the hard context ends. After a retryable error,
// it is retried with exponential backoff.
type Bucket struct {
	inner       Store
	window      *window // nil for the lock's requests, which must not wait for others
	retry       retry.Policy
	stagger     func(request string) time.Duration // see publisher.Options; nil outside of simulations
	md5ETags    bool                               // whether ETags of new objects are MD5s; an object with another ETag can be put again
	Concurrency int                                // limit of requests in flight
	hard        context.Context                    // cuts off requests in flight
	lease       Lease                              // nil without a lock
	Log         *slog.Logger
	writes      *writes
	oneDelete   *atomic.Bool // whether the server refuses requests that delete several objects
}

// Settings configures the requests of a run.
type Settings struct {
	Concurrency int           // limit of requests in flight
	Patience    time.Duration // time after the first failure until a request fails
	Log         *slog.Logger
	Retries     *atomic.Int64                      // counts retries
	Stagger     func(request string) time.Duration // delay of each attempt, replacing jitter in simulations; nil means none
}

// New returns a Bucket that sends requests to a store until hard ends.
func New(hard context.Context, to Store, s Settings) *Bucket {
	return &Bucket{
		inner: to, window: newWindow(s.Concurrency), stagger: s.Stagger, Concurrency: s.Concurrency, hard: hard, Log: s.Log, writes: &writes{}, oneDelete: &atomic.Bool{},
		retry: retry.Policy{
			Retryable: Retryable, First: firstBackoff, Longest: longestBackoff, Patience: s.Patience, NoJitter: s.Stagger != nil,
			Hint: "check --endpoint, and that the server is up", Log: s.Log, Retries: s.Retries,
		},
	}
}

// Settled reports whether no write of the run can arrive anymore.
func (b *Bucket) Settled() bool { return b.writes.settled() }

// Now returns the time by the bucket's clock.
func (b *Bucket) Now() time.Time { return b.inner.Now() }

// Lateness is how long after its signing a request may take effect. S3 refuses requests whose time
// differs by more than 15 minutes from its own (RequestTimeTooSkewed), and the sender's clock may
// be wrong by as much. The rest allows for differences between the bucket's clocks.
const Lateness = time.Hour

// writes tracks the requests of a run that change the bucket.
type writes struct {
	unanswered atomic.Pointer[time.Time] // end of the last request without an answer; nil if none
}

// record remembers a request that the server may still carry out.
func (w *writes) record(ctx context.Context, err error) {
	if err != nil && (storage.Unanswered(err) || ctx.Err() != nil) {
		now := time.Now()
		w.unanswered.Store(&now)
	}
}

func (w *writes) settled() bool {
	at := w.unanswered.Load()
	return at == nil || time.Since(*at) > Lateness
}

// WithHard returns the same bucket with another hard context.
func (b *Bucket) WithHard(hard context.Context) *Bucket {
	bounded := *b
	bounded.hard = hard
	return &bounded
}

// WithoutWindow returns the same bucket without a window: requests about the lock must not wait for
// others.
func (b *Bucket) WithoutWindow() *Bucket {
	free := *b
	free.window = nil
	return &free
}

// Under returns the same bucket, which sends requests only while a lease is held. md5ETags reports
// whether ETags of new objects are MD5s.
func (b *Bucket) Under(lease Lease, md5ETags bool) *Bucket {
	leased := *b
	leased.lease, leased.md5ETags = lease, md5ETags
	return &leased
}

// Do sends a request without a body. See send.
func (b *Bucket) Do(soft context.Context, limit time.Duration, request string, attempt func(context.Context) error) error {
	return b.send(soft, limit, 0, request, attempt)
}

// send attempts a request until it succeeds, fails permanently, or patience ends. No attempt begins
// after the end of soft. An attempt may take limit, plus the time for its bytes.
func (b *Bucket) send(soft context.Context, limit time.Duration, bytes int64, request string, attempt func(context.Context) error) error {
	var taken flight
	policy := b.retry
	policy.Before = func() (err error) {
		if b.stagger != nil {
			time.Sleep(b.stagger(request))
		}
		taken, err = b.window.take(soft, bytes)
		return err
	}
	return policy.Do(soft, func() error {
		err := b.attempt(b.window.timeFor(limit, bytes), attempt)
		b.window.give(taken, err == nil, err != nil && Retryable(err))
		return err
	}, "request", request)
}

// ErrNotHeld means that an attempt was not made, or was cut off, because the lease had ended. It is
// retryable: a heartbeat may renew the lease.
var ErrNotHeld = errors.New("the lock's lease has run out")

var errStalled = errors.New("the listing made no progress")

// Retryable reports whether another attempt may succeed.
func Retryable(err error) bool {
	return storage.Temporary(err) || errors.Is(err, ErrNotHeld) || errors.Is(err, errStalled)
}

// attempt runs one attempt, which ends with the limit, the hard context or the lease.
func (b *Bucket) attempt(limit time.Duration, attempt func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(b.hard, limit)
	defer cancel()
	if b.lease == nil {
		return attempt(ctx)
	}
	leased, end, err := b.lease.Context(ctx)
	if err != nil {
		return err
	}
	defer end()
	err = attempt(leased)
	// A heartbeat may have renewed the lease since it cut off this attempt.
	if err != nil && (errors.Is(leased.Err(), ErrNotHeld) || !b.lease.Held()) {
		return errors.Join(ErrNotHeld, err)
	}
	return err
}

// sendWrite is like send, for a request that changes the bucket.
func (b *Bucket) sendWrite(soft context.Context, limit time.Duration, bytes int64, request string, attempt func(context.Context) error) error {
	return b.send(soft, limit, bytes, request, func(ctx context.Context) error {
		err := attempt(ctx)
		b.writes.record(ctx, err)
		return err
	})
}

func (b *Bucket) Read(soft context.Context, key site.Key) (body []byte, info storage.Info, err error) {
	err = b.Do(soft, AttemptTime, "get "+string(key), func(ctx context.Context) (err error) {
		body, info, err = b.inner.Read(ctx, key)
		return err
	})
	return body, info, err
}

// Put stores an object under a condition and returns its ETag.
func (b *Bucket) Put(soft context.Context, o storage.Object, condition storage.Condition) (etag string, err error) {
	send := b.sendWrite
	if o.Key == site.LockKey { // a late one does no harm: its condition no longer holds
		send = b.send
	}
	err = send(soft, AttemptTime, int64(len(o.Body)), "put "+string(o.Key), func(ctx context.Context) (err error) {
		etag, err = b.inner.Put(ctx, o, condition)
		if err != nil && etag != "" && condition != storage.Always {
			condition = storage.Condition(etag) // the server stored other bytes: replace them
		}
		return err
	})
	return etag, err
}

// Delete deletes up to storage.MaxDelete objects with one request, or one by one if the server
// accepts no more, such as Google Cloud Storage.
func (b *Bucket) Delete(soft context.Context, keys ...site.Key) error {
	if len(keys) > 1 && !b.oneDelete.Load() {
		err := b.sendWrite(soft, attemptTimePack, int64(len(keys)*deleteBytes), "delete "+string(keys[0]), func(ctx context.Context) error {
			return b.inner.Delete(ctx, keys)
		})
		if !errors.Is(err, storage.ErrUnsupported) {
			return err
		}
		if !b.oneDelete.Swap(true) {
			b.Log.Info("the server deletes one object per request", "error", err)
		}
	}
	return Parallel(soft, b.Concurrency, len(keys), func(ctx context.Context, i int) error {
		return b.sendWrite(ctx, AttemptTime, 0, "delete "+string(keys[i]), func(ctx context.Context) error {
			return b.inner.Delete(ctx, keys[i:i+1])
		})
	})
}

// List calls found with each object below prefix, in the order of keys. A listing takes many
// requests: after a failure it continues after the last key, and patience starts over after any
// progress.
func (b *Bucket) List(soft context.Context, prefix site.Key, found func(storage.Info) error) error {
	const wholeBucket = 24 * time.Hour
	var last site.Key
	for {
		begun := last
		err := b.Do(soft, wholeBucket, "list", func(attempt context.Context) error {
			attempt, cancel := context.WithCancel(attempt)
			defer cancel()
			stalled := time.AfterFunc(AttemptTime, cancel)
			defer stalled.Stop()
			err := b.inner.List(attempt, prefix, last, func(info storage.Info) error {
				if err := context.Cause(soft); err != nil {
					return err
				}
				stalled.Reset(AttemptTime)
				last = info.Key
				return found(info)
			})
			if err != nil && attempt.Err() != nil && b.hard.Err() == nil {
				return fmt.Errorf("%w: nothing in %s", errStalled, AttemptTime)
			}
			return err
		})
		if err == nil || !Retryable(err) || last == begun {
			return err
		}
	}
}

// CanUnpack reports whether the server may unpack archives.
func (b *Bucket) CanUnpack() bool {
	_, able := b.inner.(Unpacker)
	return able
}

// PutMany stores objects by one archive that the server unpacks. The store must be an Unpacker.
func (b *Bucket) PutMany(soft context.Context, objects []storage.Object) error {
	bytes := int64(0)
	for _, o := range objects {
		bytes += o.Size + packOverhead
	}
	return b.sendWrite(soft, attemptTimePack, bytes, "put an archive from "+string(objects[0].Key), func(ctx context.Context) error {
		return b.inner.(Unpacker).PutMany(ctx, objects)
	})
}

// Unpacks stores objects by one archive, and reports whether the server unpacked it. The store must be an Unpacker.
func (b *Bucket) Unpacks(soft context.Context, objects []storage.Object) (yes bool, err error) {
	err = b.sendWrite(soft, attemptTimePack, 0, "put an archive from "+string(objects[0].Key), func(ctx context.Context) (err error) {
		yes, err = b.inner.(Unpacker).Unpacks(ctx, objects)
		return err
	})
	return yes, err
}
