package publisher

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/storage"
)

// A History knows the log of all events, which a bucket keeps beside its site.
type History interface {
	// Extend calls put with each object that the bucket lacks, one after the other, and with the index
	// last. index is that of the bucket, nil if it has none. Without put it only says what there is to
	// do. An error says that the bucket has another log, or that the events cannot be read.
	Extend(ctx context.Context, index []byte, put func(LogObject) error) (LogReport, error)
}

// A LogObject is a bundle of the log, or its index.
type LogObject struct {
	Key      site.Key
	Body     []byte
	Full     bool // a bundle that never changes again
	Replaces bool // the index of the bucket names one with this key
}

// A LogReport says what a run did to the log, or would do.
type LogReport struct {
	Rows    uint64 `json:"rows"`
	Bundles int    `json:"bundles"`
	Put     int    `json:"put"`    // bundles that were put, or would be
	Bytes   int64  `json:"bytes"`  // of those that were put
	Behind  bool   `json:"behind"` // the bucket has more rows than the events, and keeps them
	Changed bool   `json:"-"`      // the index is another one than that of the bucket
}

// immutable is the Cache-Control of a bundle that is full.
const immutable = "public, max-age=31536000, immutable"

// logUnchanged reports whether the bucket has all of the log, or there is none to put.
func (r *run) logUnchanged(ctx context.Context) (bool, error) {
	if r.options.History == nil {
		return true, nil
	}
	index, _, err := r.logIndex(ctx)
	if err != nil {
		return false, err
	}
	report, err := r.options.History.Extend(ctx, index, nil)
	r.report.Log = &report
	return err == nil && !report.Changed, err
}

func (r *run) logIndex(ctx context.Context) ([]byte, storage.Condition, error) {
	index, info, err := r.bucket.read(ctx, site.LogIndexKey)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, storage.IfAbsent, nil
	}
	return index, storage.Condition(info.ETag), err
}

// extendLog puts what the log lacks. Bundles come before the index, and all of it before the site: a
// run that is cut off leaves a log as the old index names it, of which the last bundle may have more rows.
func (r *run) extendLog(ctx context.Context) error {
	if r.options.History == nil {
		return nil
	}
	index, condition, err := r.logIndex(ctx)
	if err != nil {
		return err
	}
	r.options.Progress.Stage("log", 0)
	report, err := r.options.History.Extend(ctx, index, func(o LogObject) error {
		if o.Key == site.LogIndexKey {
			err := r.durably(ctx, func() error { return nil }) // what it names
			if err == nil {
				err = r.putLog(ctx, o, condition)
			}
			return err
		}
		was := storage.IfAbsent
		if o.Replaces {
			_, info, err := r.bucket.read(ctx, o.Key)
			if err == nil {
				was = storage.Condition(info.ETag)
			} else if !errors.Is(err, storage.ErrNotFound) {
				return err
			}
		}
		defer r.options.Progress.AddBytes(1, int64(len(o.Body)))
		return r.putLog(ctx, o, was)
	})
	r.report.Log = &report
	if err != nil {
		return fmt.Errorf("the log of events: %w", err)
	}
	if report.Behind {
		r.options.Log.Warn("the bucket's log of events has more rows than the state of --history, and stays")
	}
	return r.durably(ctx, func() error { return nil })
}

// putLog puts an object of the log in the place of what is there, if that is still what the condition
// names. A bundle that the index does not name is what a run has left that was cut off.
func (r *run) putLog(ctx context.Context, o LogObject, condition storage.Condition) error {
	route := site.RouteBy(routes.LogBundle)
	cacheControl := route.CacheControl
	switch {
	case o.Key == site.LogIndexKey:
		route = site.RouteBy(routes.LogIndex)
	case o.Full:
		cacheControl = immutable
	}
	object := storage.Object{
		Entry: site.Entry{Key: o.Key, Size: int64(len(o.Body)), MD5: site.Sum(o.Body)}, Body: o.Body,
		ContentType: route.ContentType, CacheControl: cacheControl,
	}
	for range maxLockWrites {
		_, err := r.bucket.put(ctx, object, condition)
		if errors.Is(err, storage.ErrUnsupported) {
			r.warnUnlocked()
			_, err = r.bucket.put(ctx, object, storage.Always)
		}
		if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		body, info, err := r.bucket.read(ctx, o.Key)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			condition = storage.IfAbsent
		case err != nil:
			return err
		case bytes.Equal(body, o.Body):
			return nil // an earlier attempt has succeeded, or an earlier run
		case o.Key == site.LogIndexKey:
			return fmt.Errorf("put %s: another publisher wrote it during this run, and may lack what this run put: publish again, and run followpress verify", o.Key)
		default:
			condition = storage.Condition(info.ETag)
		}
	}
	return fmt.Errorf("put %s: others keep replacing it: try again", o.Key)
}
