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
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// RefreshOptions say where fresh data comes from and how often to ask for it. The zero value
// refreshes nothing.
type RefreshOptions struct {
	ProfileUpstream string        // URL with {address}; "": details are not refreshed
	BadgeUpstream   string        // URL with {address} and {event_id}; "": badges are not refreshed
	BadgeAPIKey     string        // sent to BadgeUpstream as X-API-Key; "" sends none
	Interval        time.Duration // least time between refreshes of one object; 60 s
	Rate            float64       // most refreshes per second, of all objects together; 10
	ClientRate      float64       // most refreshes per second of one client, after the first 10; 1
	// Proxies is how many servers before this one append the address of their client to X-Forwarded-For: 0
	// means that clients connect directly.
	Proxies   int
	Transport http.RoundTripper // of requests to the upstreams; nil: one of the handler

	upstreamTimeout time.Duration // for all requests of one refresh; UpstreamTimeout
}

// UpstreamTimeout bounds all requests that one refresh makes to its upstream.
const UpstreamTimeout = 5 * time.Second

const (
	badgesAtOnce  = 8  // requests to the badge upstream, per refresh
	flightsAtOnce = 16 // each may hold the answers for many events in memory
	refreshTries  = 3  // conditional writes that fail because somebody else was faster
)

// Refreshes reports whether the options name an upstream.
func (o RefreshOptions) Refreshes() bool { return o.ProfileUpstream != "" || o.BadgeUpstream != "" }

func (o RefreshOptions) withDefaults() RefreshOptions {
	o.Interval = cmp.Or(o.Interval, time.Minute)
	o.Rate = cmp.Or(o.Rate, 10)
	o.ClientRate = cmp.Or(o.ClientRate, 1)
	o.upstreamTimeout = cmp.Or(o.upstreamTimeout, UpstreamTimeout)
	return o
}

// Validate says what is wrong with the options, if anything. New calls it; commands call it first,
// to tell wrong usage from failure.
func (o RefreshOptions) Validate() error {
	_, err := newRefresher(o, &fetcher{}, nil, nil)
	return err
}

// A refresher fetches fresh data and replaces stored objects with it. It is safe for concurrent
// use. All requests that wait for one object share a flight: one run of replace.
type refresher struct {
	bucket   Bucket
	fetcher  *fetcher
	profiles *upstream // nil: none
	badges   *upstream // nil: none
	metrics  *metrics

	flights         singleflight.Group // by target.keptKey
	flightsRunning  sync.WaitGroup
	flightSlots     *slots              // of flights
	timeout         time.Duration       // of a flight
	upstreamTimeout time.Duration       // of the requests of a flight to the upstream
	waiting         *slots              // of requests that wait for a flight
	memory          *semaphore.Weighted // bytes of badges that are being refreshed
	clients         *clients

	interval time.Duration
	all      *rate.Limiter
	mu       sync.Mutex
	last     map[site.Key]time.Time // time of the last refresh, by target.keptKey
	swept    time.Time              // when expired entries were last removed from last
}

// newRefresher returns nil if the options name no upstream.
func newRefresher(o RefreshOptions, f *fetcher, waiting *slots, m *metrics) (*refresher, error) {
	o = o.withDefaults()
	for _, each := range []float64{o.Interval.Seconds(), o.Rate, o.ClientRate} {
		if each < 0 || math.IsInf(each, 0) || math.IsNaN(each) {
			return nil, errors.New("the interval and the rates of refreshes must be positive")
		}
	}
	if o.Proxies < 0 {
		return nil, errors.New("the number of proxies cannot be negative")
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
		return nil, errors.New("refreshes are stored: the site must be in a bucket or in a folder")
	}
	return &refresher{
		bucket: bucket, fetcher: f, profiles: profiles, badges: badges, metrics: m,
		memory: semaphore.NewWeighted(2 * mostBadgesBytes * decodedBadges), clients: newClients(o.ClientRate),
		timeout: o.upstreamTimeout + f.timeout, upstreamTimeout: o.upstreamTimeout, waiting: waiting, flightSlots: &slots{size: flightsAtOnce},
		interval: o.Interval, all: rate.NewLimiter(rate.Limit(o.Rate), int(math.Ceil(o.Rate))), last: map[site.Key]time.Time{},
	}, nil
}

// refreshes reports whether an upstream for this kind of object is configured. f may be nil.
func (f *refresher) refreshes(object site.ListObject) bool {
	return f != nil && (object == site.Details && f.profiles != nil || object == site.Badges && f.badges != nil)
}

// A tooOftenError says that a refresh was refused, and how long to wait before the next try.
type tooOftenError struct{ wait time.Duration }

func (e *tooOftenError) Error() string { return "refreshed too often" }

// A target is a stored object to refresh. Under the API efp it is that of the list that stands for its
// account, and other objects show the same data: its copies.
type target struct {
	config  site.Config
	object  site.ListObject
	tokenID string
}

func (t target) key() site.Key     { return t.config.ListKey(t.tokenID, t.object) }
func (t target) keptKey() site.Key { return site.RefreshKey(t.object, t.tokenID) }

// refresh fetches fresh data for an object and returns the object as it is stored then, made by
// keep from its key and its body. Requests for an object that is being refreshed share the result.
// The refresh goes on, and calls keep for each object that it has replaced, from several goroutines, even if no
// request waits for it any more. The errors are a
// *tooOftenError; one that wraps errUpstream, after which the stored object is as before; or one
// of the store.
func (f *refresher) refresh(ctx context.Context, t target, log *slog.Logger, keep func(key site.Key, body []byte) *object) (*object, error) {
	if !f.waiting.tryAcquire() {
		return nil, &tooOftenError{site.RetryAfter}
	}
	defer f.waiting.release()
	client, _ := ctx.Value(clientKey{}).(netip.Addr)
	if wait := f.clients.wait(client, time.Now()); wait > 0 { // before it joins a flight, which may be that of others
		return nil, &tooOftenError{wait}
	}
	flight := f.flights.DoChan(string(t.keptKey()), func() (any, error) {
		f.flightsRunning.Add(1)
		defer f.flightsRunning.Done()
		if !f.flightSlots.tryAcquire() {
			return nil, &tooOftenError{time.Second}
		}
		defer f.flightSlots.release()
		if err := f.admit(t.keptKey(), time.Now()); err != nil {
			return nil, err
		}
		f.clients.count(client, time.Now())
		// The first client may leave; others may wait for the result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.timeout)
		defer cancel()
		body, result, err := f.replace(ctx, t, func(key site.Key, body []byte) { keep(key, body) })
		f.metrics.refreshes.WithLabelValues(string(t.object), result).Inc()
		if err != nil {
			log.Warn("refresh failed", "key", t.key(), "result", result, "error", err)
			return nil, err
		}
		log.Info("refreshed", "key", t.key(), "result", result)
		return keep(t.key(), body), nil
	})
	select {
	case result := <-flight:
		o, _ := result.Val.(*object)
		return o, result.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a refresh: %w", ctx.Err())
	}
}

// admit counts a refresh, or refuses it with a *tooOftenError.
func (f *refresher) admit(key site.Key, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if wait := f.interval - now.Sub(f.last[key]); wait > 0 {
		return &tooOftenError{wait}
	}
	if !f.all.AllowN(now, 1) {
		return &tooOftenError{time.Duration(float64(time.Second) / float64(f.all.Limit()))}
	}
	// The rate bounds the size of the map: it holds the refreshes of about two intervals.
	if now.Sub(f.swept) > f.interval {
		maps.DeleteFunc(f.last, func(_ site.Key, at time.Time) bool { return now.Sub(at) > f.interval })
		f.swept = now
	}
	f.last[key] = now
	return nil
}

// Results of a refresh, as the metrics and the log name them.
const (
	refreshDone   = "done"
	refreshSame   = "same"   // the stored object has the data already
	refreshFailed = "failed" // the upstream failed
	refreshError  = "error"  // the store failed
)

// guard turns a panic into an error. It must be deferred.
func guard(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
	}
}

// replace fetches fresh data, keeps it for the next run of the generator, and replaces the stored
// object and its copies. It calls put for each copy, from several goroutines. A panic becomes an error: on the goroutine of a
// flight it would end the process.
func (f *refresher) replace(ctx context.Context, t target, put func(site.Key, []byte)) (body []byte, result string, err error) {
	result = refreshError // of a panic
	defer guard(&err)
	stored, info, err := f.fetcher.read(ctx, f.bucket, t.key())
	if err != nil {
		return nil, refreshError, err
	}
	memory := &claimed{of: f.memory}
	defer memory.free()
	data, err := f.fetch(ctx, t, stored, memory)
	var often *tooOftenError
	switch {
	case errors.As(err, &often):
		return nil, "limited", often
	case errors.Is(err, errUpstream):
		return nil, refreshFailed, err
	case err != nil:
		return nil, refreshError, err
	}
	body, result, err = f.replaceBy(ctx, t, data, stored, info)
	if err != nil || !t.config.EFP() {
		return body, result, err
	}
	if err := f.replaceCopies(ctx, t, data, false, put); err != nil {
		return nil, refreshError, err
	}
	return body, result, nil
}

// replaceBy replaces the stored object, unless somebody else replaces it meanwhile by one with newer
// data.
func (f *refresher) replaceBy(ctx context.Context, t target, data upstreamData, stored []byte, info storage.Info) (body []byte, result string, err error) {
	for try := 0; ; try++ {
		if body, err = data.applyTo(t.object, stored); err != nil {
			return nil, refreshError, err
		}
		err = f.store(ctx, t, data, body, stored, info)
		switch {
		case err == nil && bytes.Equal(body, stored):
			return body, refreshSame, nil
		case err == nil:
			return body, refreshDone, nil
		case !errors.Is(err, storage.ErrCondition) || try == refreshTries:
			return nil, refreshError, err
		}
		// Another fallback or a publisher has replaced the object.
		if stored, info, err = f.fetcher.read(ctx, f.bucket, t.key()); err != nil {
			return nil, refreshError, err
		}
		if data.olderThan(t.object, stored) {
			return stored, refreshSame, nil
		}
	}
}

// store replaces the stored object with body. The error is storage.ErrCondition if somebody else
// has replaced it first. Before that it keeps the data below site.RefreshPrefix: the data for the
// next run of the generator, the digest of body for runs of the publisher, which compare the
// bucket with its manifest at any time.
func (f *refresher) store(ctx context.Context, t target, data upstreamData, body, stored []byte, info storage.Info) error {
	keep := func(kept []byte) ([]byte, error) { return data.Keep(site.Sum(stored), site.Sum(body), kept) }
	if err := f.keep(ctx, t.keptKey(), keep); err != nil {
		return fmt.Errorf("keep the fresh data: %w", err)
	}
	if bytes.Equal(body, stored) {
		return nil
	}
	return f.put(ctx, t.key(), body, storage.Condition(info.ETag))
}

// keep replaces an object below site.RefreshPrefix by what merge makes of it: data or digests, and
// those that other fallbacks have kept there. Of one that does not exist, merge gets nil.
func (f *refresher) keep(ctx context.Context, key site.Key, merge func(kept []byte) ([]byte, error)) error {
	for try := 0; ; try++ {
		condition := storage.IfAbsent
		kept, info, err := f.fetcher.read(ctx, f.bucket, key)
		switch {
		case err == nil:
			condition = storage.Condition(info.ETag)
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
		body, err := merge(kept)
		if err != nil || bytes.Equal(body, kept) {
			return err
		}
		err = f.put(ctx, key, body, condition)
		if !errors.Is(err, storage.ErrCondition) || try == refreshTries {
			return err
		}
	}
}

// put stores an object if the condition holds. It retries once if that may help.
func (f *refresher) put(ctx context.Context, key site.Key, body []byte, condition storage.Condition) error {
	route := site.RouteDetails.Route()
	o := storage.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body,
		ContentType: route.ContentType, CacheControl: route.CacheControl,
	}
	return f.fetcher.withRetry(ctx, time.Time{}, "write", func(ctx context.Context) error {
		_, err := f.bucket.Put(ctx, o, condition)
		return err
	})
}
