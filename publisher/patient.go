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

// Times of requests.
const (
	attemptTime     = 30 * time.Second // of a request, besides its body
	attemptTimePack = 5 * time.Minute  // of a request that makes a server store many objects
	slowest         = 64 << 10         // bytes a second at which a body must get on
	firstWait       = 200 * time.Millisecond
	longestWait     = 10 * time.Second
)

// A patient bucket tries again what failed for a reason that may go away, with waits
// that grow exponentially and a random part. It starts nothing while the lease is not
// held, and cuts off what is under way when it ends.
type patient struct {
	bucket   Bucket
	patience time.Duration
	atOnce   int             // requests of a settle
	hard     context.Context // ends requests that are under way
	lease    *lease          // nil without a lock
	log      *slog.Logger
	retries  *atomic.Int64
	cut      *atomic.Bool // a request was cut off, by hard or by its limit
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

// do runs attempts until one succeeds. When ctx ends there are no more; the one that
// is under way goes on until p.hard ends too.
func (p *patient) do(ctx context.Context, limit time.Duration, what string, attempt func(context.Context) error) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval, wait.Multiplier = firstWait, longestWait, 2
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		if err := context.Cause(ctx); err != nil {
			return struct{}{}, backoff.Permanent(err)
		}
		err := p.attempt(limit, attempt)
		if err != nil && !mayPass(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(p.patience), backoff.WithNotify(func(err error, next time.Duration) {
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
		return p.noteCut(ctx, attempt(ctx))
	}
	leased, end, err := p.lease.context(ctx)
	if err != nil {
		return err
	}
	defer end()
	err = p.noteCut(ctx, attempt(leased))
	if err != nil && !p.lease.held() {
		return errors.Join(errNotHeld, err)
	}
	return err
}

// noteCut remembers that a request was cut off: the server may go on with it.
func (p *patient) noteCut(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		p.cut.Store(true)
	}
	return err
}

func timeFor(bytes int) time.Duration {
	return attemptTime + time.Duration(bytes/slowest)*time.Second
}

func (p *patient) read(ctx context.Context, key site.Key) (body []byte, info storage.Info, err error) {
	err = p.do(ctx, attemptTime, "get "+string(key), func(ctx context.Context) (err error) {
		body, info, err = p.bucket.Read(ctx, key)
		return err
	})
	return body, info, err
}

func (p *patient) put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error) {
	err = p.do(ctx, timeFor(len(o.Body)), "put "+string(o.Key), func(ctx context.Context) (err error) {
		etag, err = p.bucket.Put(ctx, o, condition)
		return err
	})
	return etag, err
}

func (p *patient) delete(ctx context.Context, keys ...site.Key) error {
	limit := attemptTime
	if len(keys) > 1 {
		limit = attemptTimePack
	}
	return p.do(ctx, limit, "delete", func(ctx context.Context) error { return p.bucket.Delete(ctx, keys) })
}

// list begins again after the last key that it found. A listing is many requests:
// patience begins again where one found something.
func (p *patient) list(ctx context.Context, found func(storage.Info) error) error {
	const wholeBucket = 24 * time.Hour
	var last site.Key
	for {
		begun := last
		err := p.do(ctx, wholeBucket, "list", func(attempt context.Context) error {
			attempt, cancel := context.WithCancel(attempt)
			defer cancel()
			stalled := time.AfterFunc(attemptTime, cancel)
			defer stalled.Stop()
			err := p.bucket.List(attempt, "", last, func(info storage.Info) error {
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
	return p.do(ctx, attemptTimePack, "put an archive", func(ctx context.Context) error {
		return p.bucket.(Unpacker).PutMany(ctx, objects)
	})
}

func (p *patient) unpacks(ctx context.Context, objects []storage.Object) (yes bool, err error) {
	err = p.do(ctx, attemptTimePack, "put an archive", func(ctx context.Context) (err error) {
		yes, err = p.bucket.(Unpacker).Unpacks(ctx, objects)
		return err
	})
	return yes, err
}
