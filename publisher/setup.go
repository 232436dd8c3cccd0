package publisher

import (
	"context"
	"sync/atomic"

	"github.com/followpress/followpress/site"
)

// ConfigOf is the configuration of a site, the default one where there is none yet.
func ConfigOf(ctx context.Context, from Site) (site.Config, error) {
	if from == nil {
		return site.Config{}.WithDefaults()
	}
	source, err := openSource(ctx, from)
	if err != nil {
		return site.Config{}, err
	}
	return source.root.Config, nil
}

// SetUp makes a bucket ready: it is there, everybody may read the objects of a site
// with this configuration, and nothing else, and pages of any origin may. done says in
// words what was done, and what the server cannot do or forbids; that is no error.
func SetUp(ctx context.Context, to interface {
	Bucket
	SetUpper
}, c site.Config, o Options) (done []string, err error) {
	if o, err = o.WithDefaults(); err != nil {
		return nil, err
	}
	l := newLifetimes(ctx)
	defer l.end()
	bucket := newRetryingBucket(l.hard, to, o, new(atomic.Int64))
	var created bool
	err = bucket.do(l.soft, attemptTime, "create the bucket", func(ctx context.Context) (err error) {
		created, err = to.Create(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if created {
		done = append(done, "created")
	} else {
		done = append(done, "was there")
	}
	for _, step := range []struct {
		words string
		do    func(context.Context) error
	}{
		{"everybody may read the site's objects", func(ctx context.Context) error { return to.AllowRead(ctx, c.PublicKeys()) }},
		{"pages of any origin may read them (CORS)", to.AllowOrigins},
	} {
		if err := bucket.do(l.soft, attemptTime, step.words, step.do); err != nil {
			if ctx.Err() != nil || isRetryable(err) {
				return done, err
			}
			done = append(done, "not done: "+step.words+": "+err.Error())
			continue
		}
		done = append(done, step.words)
	}
	return done, nil
}
