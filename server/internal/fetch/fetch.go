// Package fetch reads the objects of a site from its store, with time limits and one retry.
package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// A Store holds a site: a folder, a tar file, memory or a bucket. It must be safe for concurrent
// use.
type Store interface {
	// Get returns the whole object. It returns storage.ErrNotFound only if the site has no such
	// object. Any other error means that the store could not tell, or wraps checked.ErrAltered, and
	// clients get a 502. The caller must not change the body.
	Get(ctx context.Context, key site.Key) ([]byte, error)
}

// A Bucket is a store that can replace objects, as refreshes need. Package storage has two.
type Bucket interface {
	Store
	// Read is Get, and also returns the ETag for the condition of a Put.
	Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error)
	// Put writes an object and returns its ETag. If the condition does not hold, Put changes
	// nothing and returns storage.ErrCondition.
	Put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error)
}

// ErrMixed means that the objects of an answer belong to two sites, because the site was replaced
// while they were read.
var ErrMixed = errors.New("the site changed while it was read")

// MixedIfAbsent turns storage.ErrNotFound into ErrMixed, for an object that another object refers
// to.
func MixedIfAbsent(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return ErrMixed
	}
	return err
}

// An admitter calls admit with the size of an object, in bytes, before it allocates memory for it,
// and returns errors of admit unchanged. The caller may change the body.
type admitter interface {
	GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error)
}

// A describer returns the Info of an object without its body.
type describer interface {
	Stat(ctx context.Context, key site.Key) (storage.Info, error)
}

// An infoReader returns the Info of an object with its body.
type infoReader interface {
	Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error)
}

// A reopener looks for a new site only on request, like a tar file that was replaced. Reopen
// returns when the new site is open and indexed. If the new site is unusable, Reopen fails and the
// store keeps the old one.
type reopener interface {
	Reopen(ctx context.Context) error
}

// A Fetcher reads from a store within a time limit and retries once. It is safe for concurrent use.
type Fetcher struct {
	Store   Store
	Timeout time.Duration // limit for both attempts together
	Live    bool          // the root may be that of a live site
	// Observe is called after each request: operation is read or write, result as named in the
	// metrics.
	Observe func(operation, result string, took time.Duration)
}

// betweenTries gives a restarting server or a broken connection time to recover.
const betweenTries = 50 * time.Millisecond

// Get reads an object. It ignores cancellation of ctx, because others may wait for the same read,
// but obeys its deadline, because an answer may take many reads.
func (f *Fetcher) Get(ctx context.Context, key site.Key) (body []byte, err error) {
	ctx, end := f.uncancelled(ctx)
	return body, f.withRetry(ctx, end, "read", func(ctx context.Context) error {
		body, err = f.Store.Get(ctx, key)
		return err
	})
}

// GetAdmitted is Get, but calls admit with the size of the object before it allocates the body (see
// admitter). The caller may change the body.
func (f *Fetcher) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) (body []byte, err error) {
	ctx, end := f.uncancelled(ctx)
	return body, f.withRetry(ctx, end, "read", func(ctx context.Context) error {
		if store, ok := f.Store.(admitter); ok {
			body, err = store.GetAdmitted(ctx, key, admit)
			return err
		}
		if body, err = f.Store.Get(ctx, key); err != nil {
			return err
		}
		body = bytes.Clone(body)
		return admit(ctx, int64(len(body)))
	})
}

// Within returns a context that ends with the time limit or the deadline of ctx, but not when ctx
// is canceled.
func (f *Fetcher) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := f.uncancelled(ctx)
	return context.WithDeadline(ctx, end)
}

// uncancelled returns a context that never ends, and the time at which Within's context would.
func (f *Fetcher) uncancelled(ctx context.Context) (_ context.Context, end time.Time) {
	end = time.Now().Add(f.Timeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	return context.WithoutCancel(ctx), end
}

// Read is Get for an object that is about to be replaced. It ends with ctx.
func (f *Fetcher) Read(ctx context.Context, bucket Bucket, key site.Key) (body []byte, info storage.Info, err error) {
	err = f.withRetry(ctx, time.Time{}, "read", func(ctx context.Context) error {
		body, info, err = bucket.Read(ctx, key)
		return err
	})
	return body, info, err
}

// ErrUnchanged means that the root was not replaced since it was read.
var ErrUnchanged = errors.New("the object has not changed")

// Root reads the root of the site. It returns ErrUnchanged if the root was not written since was,
// as far as the store knows; a write of the same bytes counts.
func (f *Fetcher) Root(ctx context.Context, was storage.Info) (root *site.Root, info storage.Info, err error) {
	if store, ok := f.Store.(reopener); ok {
		if err := store.Reopen(ctx); err != nil { // without time limit: this may take long, but does not hang
			return nil, info, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	var body []byte
	err = f.withRetry(ctx, time.Time{}, "read", func(ctx context.Context) error {
		if store, ok := f.Store.(describer); ok && was.ETag != "" {
			if info, err = store.Stat(ctx, site.RootKey); err != nil || SamePut(info, was) {
				return cmp.Or(err, ErrUnchanged)
			}
		}
		store, ok := f.Store.(infoReader)
		if !ok {
			body, err = f.Store.Get(ctx, site.RootKey)
			return err
		}
		body, info, err = store.Read(ctx, site.RootKey)
		if err == nil && SamePut(info, was) {
			return ErrUnchanged
		}
		return err
	})
	if err != nil {
		return nil, info, err
	}
	parse := site.ParseRoot
	if f.Live {
		parse = site.ParseServedRoot
	}
	parsed, err := parse(body)
	return &parsed, info, err
}

// SamePut reports whether two Infos describe the same Put of an object.
func SamePut(a, b storage.Info) bool {
	return a.ETag == b.ETag && a.ETag != "" && a.Modified.Equal(b.Modified) && a.Place == b.Place
}

// settledAfter is longer than a second, the resolution of times in S3.
const settledAfter = 2 * time.Second

// Settled reports whether any later Put of the object gets another time than info's.
func (f *Fetcher) Settled(info storage.Info) bool {
	store, ok := f.Store.(interface{ Now() time.Time })
	return !ok || info.Modified.Nanosecond() != 0 || store.Now().Sub(info.Modified) > settledAfter
}

// Put writes an object if the condition holds. It ends with ctx.
func (f *Fetcher) Put(ctx context.Context, bucket Bucket, o storage.Object, condition storage.Condition) error {
	return f.withRetry(ctx, time.Time{}, "write", func(ctx context.Context) error {
		_, err := bucket.Put(ctx, o, condition)
		return err
	})
}

// withRetry makes a request to the store, and a second one if the error is retryable. It makes more
// requests while a site is being replaced and the store cannot decide between both. All requests
// end with ctx and at end, unless end is zero.
func (f *Fetcher) withRetry(ctx context.Context, end time.Time, operation string, try func(context.Context) error) error {
	for wait, retried := betweenTries, false; ; wait *= 2 {
		err := f.attempt(ctx, end, operation, try)
		again := errors.Is(err, checked.ErrBetween) || storage.Temporary(err) && !retried
		if !again || !end.IsZero() && time.Until(end) <= wait {
			return err
		}
		retried = true
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// attempt makes one request and counts it. The request may take half of the time limit, which
// leaves time for another if only the connection hangs. Only its context has a timer: most requests
// are over before it matters, and timers cost more than reading a small file.
func (f *Fetcher) attempt(ctx context.Context, end time.Time, operation string, try func(context.Context) error) error {
	begun := time.Now()
	until := begun.Add(f.Timeout / 2)
	if !end.IsZero() && end.Before(until) {
		until = end
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := try(ctx)
	result := "done"
	switch {
	case errors.Is(err, storage.ErrNotFound):
		result = "absent"
	case errors.Is(err, ErrUnchanged):
		result = "unchanged"
	case errors.Is(err, storage.ErrCondition):
		result = "condition"
	case err != nil:
		result = "error"
	}
	f.Observe(operation, result, time.Since(begun))
	return err
}
