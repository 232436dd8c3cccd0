package server

import (
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

// An unlessReader is a store that can be asked whether an object has changed.
type unlessReader interface {
	ReadUnless(ctx context.Context, key site.Key, etag string) ([]byte, storage.Info, error)
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
	until := time.Now().Add(f.timeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	return body, f.twice(ctx, "read", func(ctx context.Context) error {
		body, err = f.store.Get(ctx, key)
		return err
	})
}

// read is get for what is to be replaced.
func (f *fetcher) read(ctx context.Context, bucket Bucket, key site.Key) (body []byte, info storage.Info, err error) {
	err = f.twice(ctx, "read", func(ctx context.Context) error {
		body, info, err = bucket.Read(ctx, key)
		return err
	})
	return body, info, err
}

// root reads the root of the site. Where the store can tell that it has not changed
// since it had this ETag, the error is storage.ErrUnchanged.
func (f *fetcher) root(ctx context.Context, was string) (root *site.Root, etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var body []byte
	var info storage.Info
	err = f.twice(ctx, "read", func(ctx context.Context) error {
		if store, ok := f.store.(unlessReader); ok && was != "" {
			body, info, err = store.ReadUnless(ctx, site.RootKey, was)
		} else if store, ok := f.store.(Bucket); ok {
			body, info, err = store.Read(ctx, site.RootKey)
		} else {
			body, err = f.store.Get(ctx, site.RootKey)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	parsed, err := site.ParseRoot(body)
	return &parsed, info.ETag, err
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
