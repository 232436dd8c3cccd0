package publisher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Times and sizes of requests.
const (
	attemptTime     = 30 * time.Second // of a request, besides its body
	attemptTimePack = 5 * time.Minute  // of a request that makes a server store many objects
	packOverhead    = 2 << 10          // bytes beside the body of an object in an archive, about
	deleteBytes     = 100              // that a key takes where many are deleted, about
	firstWait       = 200 * time.Millisecond
	longestWait     = 10 * time.Second
)

// A patient bucket tries again what failed for a reason that may go away, with waits
// that grow exponentially and a random part. It starts nothing while the lease is not
// held, and cuts off what is under way when it ends. Every request takes a slot.
type patient struct {
	bucket   Bucket
	slots    *slots // nil for requests that nothing may hold up
	patience time.Duration
	stagger  func(request string) time.Duration // see Options; nil outside of simulations
	plain    bool                               // ETags of what is put now are MD5s; what has another one can be put again
	atOnce   int                                // requests of a settle
	hard     context.Context                    // ends requests that are under way
	lease    *lease                             // nil without a lock
	log      *slog.Logger
	retries  *atomic.Int64
	changes  *changes
}

// changes are the requests of a run that change the bucket.
type changes struct {
	unanswered atomic.Pointer[time.Time] // when the last one ended without an answer; nil if none has
}

// note remembers that the server may go on with a request.
func (c *changes) note(ctx context.Context, err error) {
	if err != nil && (storage.Unanswered(err) || ctx.Err() != nil) {
		now := time.Now()
		c.unanswered.Store(&now)
	}
}

// settled reports whether no request can arrive any more.
func (c *changes) settled() bool {
	at := c.unanswered.Load()
	return at == nil || time.Since(*at) > lateness
}

// with is the same bucket under a lease.
func (p *patient) with(l *lease) *patient {
	leased := *p
	leased.lease = l
	return &leased
}

// until is the same bucket with requests that live no longer than ctx.
func (p *patient) until(ctx context.Context) *patient {
	bounded := *p
	bounded.hard = ctx
	return &bounded
}

// unbounded is the same bucket with requests that take no slots: the lock's must not
// wait until others have arrived.
func (p *patient) unbounded() *patient {
	free := *p
	free.slots = nil
	return &free
}

// do runs attempts until one succeeds. When ctx ends there are no more; the one that
// is under way goes on until p.hard ends too.
func (p *patient) do(ctx context.Context, limit time.Duration, what string, attempt func(context.Context) error) error {
	return p.send(ctx, limit, 0, what, attempt)
}

// send is do for requests with a body, whose time is not in limit.
func (p *patient) send(ctx context.Context, limit time.Duration, bytes int64, what string, attempt func(context.Context) error) error {
	wait := newWaits(p.patience, p.stagger != nil)
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		if p.stagger != nil {
			time.Sleep(p.stagger(what))
		}
		asked := time.Now()
		slot, err := p.slots.take(ctx, bytes)
		if err != nil {
			return struct{}{}, backoff.Permanent(err)
		}
		wait.exclude(time.Since(asked))
		err = p.attempt(p.slots.timeFor(limit, bytes), attempt)
		p.slots.give(slot, err == nil, err != nil && mayPass(err))
		if err != nil && !mayPass(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, next time.Duration) {
		level := slog.LevelInfo
		if p.retries.Add(1) == 1 { // the first one tells a person why nothing moves
			level = slog.LevelWarn
		}
		p.log.Log(ctx, level, "trying again", "request", what, "after", next.Round(time.Millisecond), "error", err)
	}))
	if err != nil && mayPass(err) {
		return fmt.Errorf("%w (tried for %s: check --endpoint, and that the server is up)", err, p.patience)
	}
	return err
}

// waits grow exponentially, until they and the attempts since the first failure have
// taken longer than the patience.
type waits struct {
	*backoff.ExponentialBackOff
	patience time.Duration
	failed   time.Time // first; later by what does not count
}

func newWaits(patience time.Duration, steady bool) *waits {
	w := &waits{backoff.NewExponentialBackOff(), patience, time.Time{}}
	w.InitialInterval, w.MaxInterval, w.Multiplier = firstWait, longestWait, 2
	if steady {
		w.RandomizationFactor = 0
	}
	return w
}

// exclude says that for so long the request was not tried.
func (w *waits) exclude(d time.Duration) {
	if !w.failed.IsZero() {
		w.failed = w.failed.Add(d)
	}
}

// NextBackOff is called after each failure.
func (w *waits) NextBackOff() time.Duration {
	if w.failed.IsZero() {
		w.failed = time.Now()
	}
	next := w.ExponentialBackOff.NextBackOff()
	if time.Since(w.failed)+next > w.patience {
		return backoff.Stop
	}
	return next
}

// errStalled says that a listing did not get on.
var errStalled = errors.New("the listing stands still")

// mayPass reports whether an attempt failed for a reason that may go away.
func mayPass(err error) bool {
	return storage.Temporary(err) || errors.Is(err, errNotHeld) || errors.Is(err, errStalled)
}

func (p *patient) attempt(limit time.Duration, attempt func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(p.hard, limit)
	defer cancel()
	if p.lease == nil {
		return attempt(ctx)
	}
	leased, end, err := p.lease.context(ctx)
	if err != nil {
		return err
	}
	defer end()
	err = attempt(leased)
	if err != nil && !p.lease.held() {
		return errors.Join(errNotHeld, err)
	}
	return err
}

// change is send for what changes the bucket.
func (p *patient) change(ctx context.Context, limit time.Duration, bytes int64, what string, attempt func(context.Context) error) error {
	return p.send(ctx, limit, bytes, what, func(ctx context.Context) error {
		err := attempt(ctx)
		p.changes.note(ctx, err)
		return err
	})
}

func (p *patient) read(ctx context.Context, key site.Key) (body []byte, info storage.Info, err error) {
	err = p.do(ctx, attemptTime, "get "+string(key), func(ctx context.Context) (err error) {
		body, info, err = p.bucket.Read(ctx, key)
		return err
	})
	return body, info, err
}

func (p *patient) put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error) {
	send := p.change
	if o.Key == site.LockKey { // late ones fail: each has a condition of its own
		send = p.send
	}
	err = send(ctx, attemptTime, int64(len(o.Body)), "put "+string(o.Key), func(ctx context.Context) (err error) {
		etag, err = p.bucket.Put(ctx, o, condition)
		return err
	})
	return etag, err
}

func (p *patient) delete(ctx context.Context, keys ...site.Key) error {
	limit, bytes := attemptTime, int64(0)
	if len(keys) > 1 {
		limit, bytes = attemptTimePack, int64(len(keys)*deleteBytes)
	}
	return p.change(ctx, limit, bytes, "delete "+string(keys[0]), func(ctx context.Context) error { return p.bucket.Delete(ctx, keys) })
}

// list begins again after the last key that it found. A listing is many requests:
// patience begins again where one found something.
func (p *patient) list(ctx context.Context, prefix site.Key, found func(storage.Info) error) error {
	const wholeBucket = 24 * time.Hour
	var last site.Key
	for {
		begun := last
		err := p.do(ctx, wholeBucket, "list", func(attempt context.Context) error {
			attempt, cancel := context.WithCancel(attempt)
			defer cancel()
			stalled := time.AfterFunc(attemptTime, cancel)
			defer stalled.Stop()
			err := p.bucket.List(attempt, prefix, last, func(info storage.Info) error {
				if err := context.Cause(ctx); err != nil {
					return err
				}
				stalled.Reset(attemptTime)
				last = info.Key
				return found(info)
			})
			if err != nil && attempt.Err() != nil && p.hard.Err() == nil {
				return fmt.Errorf("%w: nothing in %s", errStalled, attemptTime)
			}
			return err
		})
		if err == nil || !mayPass(err) || last == begun {
			return err
		}
	}
}

func (p *patient) putMany(ctx context.Context, objects []storage.Object) error {
	bytes := int64(0)
	for _, o := range objects {
		bytes += o.Size + packOverhead
	}
	return p.change(ctx, attemptTimePack, bytes, "put an archive from "+string(objects[0].Key), func(ctx context.Context) error {
		return p.bucket.(Unpacker).PutMany(ctx, objects)
	})
}

func (p *patient) unpacks(ctx context.Context, objects []storage.Object) (yes bool, err error) {
	err = p.change(ctx, attemptTimePack, 0, "put an archive from "+string(objects[0].Key), func(ctx context.Context) (err error) {
		yes, err = p.bucket.(Unpacker).Unpacks(ctx, objects)
		return err
	})
	return yes, err
}
