package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// RefreshOptions say where fresh data comes from, and how often it may be asked for.
type RefreshOptions struct {
	ProfileUpstream string            // URL with {address}; "" means that details are not refreshed
	BadgeUpstream   string            // URL with {address} and {event_id}; "" means that badges are not refreshed
	BadgeAPIKey     string            // sent to BadgeUpstream as X-API-Key; "" sends none
	Interval        time.Duration     // between refreshes of an object; 60 s
	Rate            float64           // refreshes a second, of all objects; 10
	Transport       http.RoundTripper // of requests to the upstreams; nil means one of their own

	upstreamTimeout time.Duration // of an upstream, for all that one refresh asks of it; 5 s
}

// UpstreamTimeout is for all that one refresh asks of its upstream.
const UpstreamTimeout = 5 * time.Second

const (
	defaultRefreshInterval = time.Minute
	defaultRefreshRate     = 10
	badgesAtOnce           = 8  // requests of one refresh to the badge upstream
	flightsAtOnce          = 16 // each may hold what the upstream sent for many events
	refreshTries           = 3  // to replace an object that others replace at the same time
)

// Refreshes reports whether anything is refreshed.
func (o RefreshOptions) Refreshes() bool { return o.ProfileUpstream != "" || o.BadgeUpstream != "" }

func (o RefreshOptions) withDefaults() RefreshOptions {
	o.Interval = cmp.Or(o.Interval, defaultRefreshInterval)
	o.Rate = cmp.Or(o.Rate, defaultRefreshRate)
	o.upstreamTimeout = cmp.Or(o.upstreamTimeout, UpstreamTimeout)
	return o
}

// Validate says what is wrong with the options.
func (o RefreshOptions) Validate() error {
	_, err := newRefresher(o, &fetcher{}, nil, nil)
	return err
}

// A refresher fetches fresh data and replaces stored objects by it.
type refresher struct {
	bucket   Bucket
	fetcher  *fetcher
	profiles *upstream // nil: none
	badges   *upstream // nil: none
	metrics  *metrics

	flights singleflight.Group // by the key of what is kept
	flying  sync.WaitGroup
	aloft   *room         // flights
	timeout time.Duration // of a flight
	asking  time.Duration // of it, for the upstream
	waiting *room         // requests that wait for a flight

	interval time.Duration
	all      *rate.Limiter
	mu       sync.Mutex
	last     map[site.Key]time.Time // when an object was last refreshed
	swept    time.Time              // when older ones were last taken out of it
}

// newRefresher makes a refresher; nil where nothing is refreshed.
func newRefresher(o RefreshOptions, f *fetcher, waiting *room, m *metrics) (*refresher, error) {
	o = o.withDefaults()
	if o.Interval < 0 || o.Rate < 0 || math.IsInf(o.Rate, 0) || math.IsNaN(o.Rate) {
		return nil, errors.New("the interval and the rate of refreshes must be positive")
	}
	profiles, err := newUpstream(o.ProfileUpstream, "", o.Transport, "{address}")
	if err != nil {
		return nil, fmt.Errorf("profile upstream: %w", err)
	}
	badges, err := newUpstream(o.BadgeUpstream, o.BadgeAPIKey, o.Transport, "{address}", "{event_id}")
	if err != nil {
		return nil, fmt.Errorf("badge upstream: %w", err)
	}
	if profiles == nil && badges == nil {
		return nil, nil
	}
	bucket, ok := f.store.(Bucket)
	if !ok && f.store != nil {
		return nil, errors.New("what is refreshed must be stored: the site must be in a bucket or in a folder")
	}
	return &refresher{
		bucket: bucket, fetcher: f, profiles: profiles, badges: badges, metrics: m,
		timeout: o.upstreamTimeout + f.timeout, asking: o.upstreamTimeout, waiting: waiting, aloft: &room{size: flightsAtOnce},
		interval: o.Interval, all: rate.NewLimiter(rate.Limit(o.Rate), int(math.Ceil(o.Rate))), last: map[site.Key]time.Time{},
	}, nil
}

// refreshes reports whether there is a source for an object.
func (f *refresher) refreshes(object site.ListObject) bool {
	return f != nil && (object == site.Details && f.profiles != nil || object == site.Badges && f.badges != nil)
}

// A tooOftenError says that something was refreshed too often.
type tooOftenError struct{ wait time.Duration }

func (e *tooOftenError) Error() string { return "refreshed too often" }

// A target is an object to refresh.
type target struct {
	config  site.Config
	object  site.ListObject
	tokenID string
}

func (t target) key() site.Key     { return t.config.ListKey(t.tokenID, t.object) }
func (t target) keptKey() site.Key { return site.RefreshKey(t.object, t.tokenID) }

// refresh fetches an object anew and gives it as it is stored then, by way of keep,
// even if nobody waits for it any more. Whoever asks while a refresh of the object is
// under way gets its result. An error that wraps errUpstream means that the stored
// object is as it was.
func (f *refresher) refresh(ctx context.Context, t target, log *slog.Logger, keep func(body []byte) *object) (*object, error) {
	if !f.waiting.enter() {
		return nil, &tooOftenError{site.RetryAfter}
	}
	defer f.waiting.leave()
	flight := f.flights.DoChan(string(t.keptKey()), func() (any, error) {
		f.flying.Add(1)
		defer f.flying.Done()
		if !f.aloft.enter() {
			return nil, &tooOftenError{time.Second}
		}
		defer f.aloft.leave()
		if err := f.admit(t.keptKey(), time.Now()); err != nil {
			return nil, err
		}
		// Others wait for it: it goes on if the first to ask goes away.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.timeout)
		defer cancel()
		body, result, err := f.guarded(ctx, t)
		f.metrics.refreshes.WithLabelValues(string(t.object), result).Inc()
		if err != nil {
			log.Warn("refresh failed", "key", t.key(), "result", result, "error", err)
		} else {
			log.Info("refreshed", "key", t.key(), "result", result)
		}
		if err != nil {
			return nil, err
		}
		return keep(body), nil
	})
	select {
	case result := <-flight:
		o, _ := result.Val.(*object)
		return o, result.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a refresh: %w", ctx.Err())
	}
}

// admit counts a refresh, or refuses it.
func (f *refresher) admit(key site.Key, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if wait := f.interval - now.Sub(f.last[key]); wait > 0 {
		return &tooOftenError{wait}
	}
	if !f.all.AllowN(now, 1) {
		return &tooOftenError{time.Duration(float64(time.Second) / float64(f.all.Limit()))}
	}
	// The rate bounds how many there are within an interval.
	if now.Sub(f.swept) > f.interval {
		maps.DeleteFunc(f.last, func(_ site.Key, at time.Time) bool { return now.Sub(at) > f.interval })
		f.swept = now
	}
	f.last[key] = now
	return nil
}

// Results of a refresh.
const (
	refreshDone   = "done"
	refreshSame   = "same"   // what is stored says it already
	refreshFailed = "failed" // the upstream did
	refreshError  = "error"  // the store did
)

// guarded is replace, for a goroutine of its own: there a panic would end the process.
func (f *refresher) guarded(ctx context.Context, t target) (body []byte, result string, err error) {
	result = refreshError // of a panic
	defer guard(&err)
	return f.replace(ctx, t)
}

// guard makes an error of a panic.
func guard(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
	}
}

// replace fetches fresh data, keeps it for the next run of the generator, and puts it
// into the stored object.
func (f *refresher) replace(ctx context.Context, t target) (body []byte, result string, err error) {
	stored, info, err := f.fetcher.read(ctx, f.bucket, t.key())
	if err != nil {
		return nil, refreshError, err
	}
	fresh, err := f.fetch(ctx, t, stored)
	if errors.Is(err, errUpstream) {
		return nil, refreshFailed, err
	} else if err != nil {
		return nil, refreshError, err
	}
	for try := 0; ; try++ {
		if body, err = fresh.into(stored); err != nil {
			return nil, refreshError, err
		}
		err = f.store(ctx, t, fresh, body, stored, info)
		switch {
		case err == nil && bytes.Equal(body, stored):
			return body, refreshSame, nil
		case err == nil:
			return body, refreshDone, nil
		case !errors.Is(err, storage.ErrCondition) || try == refreshTries:
			return nil, refreshError, err
		}
		// Somebody else has replaced it: another fallback, or the publisher.
		if stored, info, err = f.fetcher.read(ctx, f.bucket, t.key()); err != nil {
			return nil, refreshError, err
		}
		if fresh.olderThan(stored) {
			return stored, refreshSame, nil
		}
	}
}

// store puts a body that has something fresh in it in the place of what is stored; the
// error is storage.ErrCondition if that is not there any more. What is fresh is kept
// before, with the digest of the body: so the next run of the generator has it, and
// whoever compares the bucket with its manifest knows at any time what the object may be.
func (f *refresher) store(ctx context.Context, t target, fresh fresh, body, stored []byte, info storage.Info) error {
	if err := f.keep(ctx, t, fresh, site.Sum(stored), site.Sum(body)); err != nil {
		return fmt.Errorf("keep what was refreshed: %w", err)
	}
	if bytes.Equal(body, stored) {
		return nil
	}
	return f.put(ctx, t.key(), body, storage.Condition(info.ETag))
}

// keep keeps what was fetched, unless another fallback has kept something newer.
func (f *refresher) keep(ctx context.Context, t target, fresh fresh, replaced, by site.MD5) error {
	for try := 0; ; try++ {
		condition := storage.IfAbsent
		kept, info, err := f.fetcher.read(ctx, f.bucket, t.keptKey())
		switch {
		case err == nil:
			condition = storage.Condition(info.ETag)
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
		body, err := fresh.Keep(replaced, by, kept)
		if err != nil || bytes.Equal(body, kept) {
			return err
		}
		err = f.put(ctx, t.keptKey(), body, condition)
		if !errors.Is(err, storage.ErrCondition) || try == refreshTries {
			return err
		}
	}
}

// put stores an object, trying again once where that may help.
func (f *refresher) put(ctx context.Context, key site.Key, body []byte, condition storage.Condition) error {
	route := site.RouteDetails.Route()
	o := storage.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body,
		ContentType: route.ContentType, CacheControl: route.CacheControl,
	}
	return f.fetcher.twice(ctx, "write", func(ctx context.Context) error {
		_, err := f.bucket.Put(ctx, o, condition)
		return err
	})
}
