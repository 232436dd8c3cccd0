package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A Store holds a site: a folder, a tar file, memory or a bucket. Its methods are
// called from many goroutines.
type Store interface {
	// Get reads a whole object; storage.ErrNotFound if the site has none with that
	// key. Any other error means that it could not tell. The caller must not change
	// the body.
	Get(ctx context.Context, key site.Key) ([]byte, error)
}

// A Bucket is a store whose objects a refresh can replace.
type Bucket interface {
	Store
	// Read is Get, with the ETag that a condition of Put may name.
	Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error)
	// Put replaces an object; storage.ErrCondition if the condition does not hold.
	Put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error)
}

// An admitter is a store that tells the size of an object before it takes memory for
// it. Where admit fails, that is the error. The body is the caller's.
type admitter interface {
	GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error)
}

// A describer is a store that tells of an object without its body what Read does.
type describer interface {
	Stat(ctx context.Context, key site.Key) (storage.Info, error)
}

// An infoReader is a store that tells when an object was put.
type infoReader interface {
	Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error)
}

// A reopener is a store that has to look itself whether another site has taken the
// place of the one that is open. It says so if that cannot be used, and goes on with
// what it has. When it returns, every object is found without delay.
type reopener interface {
	Reopen(ctx context.Context) error
}

// A fetcher makes requests of a store, within a time limit, and once more where that may help.
type fetcher struct {
	store   Store
	timeout time.Duration // of both tries
	metrics *metrics
}

// betweenTries lets a server that restarts, or a connection that was cut, come back.
const betweenTries = 50 * time.Millisecond

// get reads an object. It goes on if the client leaves, for others may wait for the
// same read, but not after the deadline of ctx: an answer may take many reads.
func (f *fetcher) get(ctx context.Context, key site.Key) (body []byte, err error) {
	ctx, cancel := f.within(ctx)
	defer cancel()
	return body, f.twice(ctx, "read", func(ctx context.Context) error {
		body, err = f.store.Get(ctx, key)
		return err
	})
}

// getAdmitted is get for an object whose size has to be admitted. The body is the caller's.
func (f *fetcher) getAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) (body []byte, err error) {
	ctx, cancel := f.within(ctx)
	defer cancel()
	return body, f.twice(ctx, "read", func(ctx context.Context) error {
		if store, ok := f.store.(admitter); ok {
			body, err = store.GetAdmitted(ctx, key, admit)
			return err
		}
		if body, err = f.store.Get(ctx, key); err != nil {
			return err
		}
		body = bytes.Clone(body)
		return admit(ctx, int64(len(body)))
	})
}

func (f *fetcher) within(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(f.timeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// read is get for what is to be replaced.
func (f *fetcher) read(ctx context.Context, bucket Bucket, key site.Key) (body []byte, info storage.Info, err error) {
	err = f.twice(ctx, "read", func(ctx context.Context) error {
		body, info, err = bucket.Read(ctx, key)
		return err
	})
	return body, info, err
}

// root reads the root of the site. The error is storage.ErrUnchanged where it was not
// put again since it was this one, not even with the same bytes, as far as the store
// can tell.
func (f *fetcher) root(ctx context.Context, was storage.Info) (root *site.Root, info storage.Info, err error) {
	if store, ok := f.store.(reopener); ok {
		if err := store.Reopen(ctx); err != nil { // which may take long, and does not hang
			return nil, info, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var body []byte
	err = f.twice(ctx, "read", func(ctx context.Context) error {
		if store, ok := f.store.(describer); ok && was.ETag != "" {
			if info, err = store.Stat(ctx, site.RootKey); err != nil || samePut(info, was) {
				return cmp.Or(err, storage.ErrUnchanged)
			}
		}
		store, ok := f.store.(infoReader)
		if !ok {
			body, err = f.store.Get(ctx, site.RootKey)
			return err
		}
		body, info, err = store.Read(ctx, site.RootKey)
		if err == nil && samePut(info, was) {
			return storage.ErrUnchanged
		}
		return err
	})
	if err != nil {
		return nil, info, err
	}
	parsed, err := site.ParseRoot(body)
	return &parsed, info, err
}

// samePut reports whether two looks at an object saw the same Put.
func samePut(a, b storage.Info) bool {
	return a.ETag == b.ETag && a.ETag != "" && a.Modified.Equal(b.Modified) && a.Place == b.Place
}

// settledAfter is longer than the second that times of S3 are rounded to.
const settledAfter = 2 * time.Second

// settled reports whether an object, if it were put again now, would have another time.
func (f *fetcher) settled(info storage.Info) bool {
	store, ok := f.store.(interface{ Now() time.Time })
	return !ok || info.Modified.Nanosecond() != 0 || store.Now().Sub(info.Modified) > settledAfter
}

// twice makes a request of the store, and makes it again where that may help.
func (f *fetcher) twice(ctx context.Context, operation string, try func(context.Context) error) error {
	err := f.once(ctx, operation, try)
	if !storage.Temporary(err) {
		return err
	}
	select {
	case <-time.After(betweenTries):
		return f.once(ctx, operation, try)
	case <-ctx.Done():
		return err
	}
}

// once leaves half of the time for another try: what hangs may be the connection only.
func (f *fetcher) once(ctx context.Context, operation string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout/2)
	defer cancel()
	begun := time.Now()
	err := try(ctx)
	result := "done"
	switch {
	case errors.Is(err, storage.ErrNotFound):
		result = "absent"
	case errors.Is(err, storage.ErrUnchanged):
		result = "unchanged"
	case errors.Is(err, storage.ErrCondition):
		result = "condition"
	case err != nil:
		result = "error"
	}
	f.metrics.store.WithLabelValues(operation, result).Observe(time.Since(begun).Seconds())
	return err
}
