package publisher

import (
	"context"
	"sync/atomic"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
)

// ConfigOf returns the configuration of a site. If from is nil, it returns a configuration with the
// default base path and all objects that a site may have, because the site is not known yet. It
// fails if the site has no valid root.
func ConfigOf(ctx context.Context, from Site) (site.Config, error) {
	if from == nil {
		return site.AllFeatures().WithDefaults()
	}
	source, err := origin.Open(ctx, from)
	if err != nil {
		return site.Config{}, err
	}
	return source.Root.Config, nil
}

// A setUpper is a Bucket that SetUp can create and open to readers.
type setUpper interface {
	Create(ctx context.Context) (created bool, err error)
	AllowRead(ctx context.Context, patterns []string) error
	AllowOrigins(ctx context.Context) error
}

// Skipped begins the lines of SetUp about skipped steps.
const Skipped = "skipped: "

// SetUp makes a bucket ready for a site with this configuration: it creates the bucket, lets
// everybody read the site's objects and nothing else, allows web pages of any origin to (CORS), and
// tests whether publishers can exclude each other. done has one line per step. A step that the
// server does not support or permit is marked in done (Skipped), without an error. SetUp can be
// repeated.
func SetUp(ctx context.Context, to interface {
	Bucket
	setUpper
}, c site.Config, o Options) (done []string, err error) {
	if o, err = o.WithDefaults(); err != nil {
		return nil, err
	}
	l := newLifetimes(ctx)
	defer l.end()
	bucket := requests.New(l.hard, to, o.requests(new(atomic.Int64)))
	var created bool
	err = bucket.Do(l.soft, requests.AttemptTime, "create the bucket", func(ctx context.Context) (err error) {
		created, err = to.Create(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if created {
		done = append(done, "created")
	} else {
		done = append(done, "exists")
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"public read access to the site's objects", func(ctx context.Context) error { return to.AllowRead(ctx, c.PublicKeys()) }},
		{"CORS for web pages of any origin", to.AllowOrigins},
		{"a lock between publishers (conditional writes)", func(ctx context.Context) error { return lock.Try(ctx, bucket, o.lock()) }},
	} {
		if err := bucket.Do(l.soft, requests.AttemptTime, step.name, step.do); err != nil {
			if ctx.Err() != nil || requests.Retryable(err) {
				return done, err
			}
			done = append(done, Skipped+step.name+": "+err.Error())
			continue
		}
		done = append(done, step.name)
	}
	return done, nil
}
