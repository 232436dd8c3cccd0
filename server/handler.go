package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"github.com/followpress/followpress/server/internal/answer"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/fresh"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/settings"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// Options configure a handler. Each field's comment ends with its default, used for the zero value.
type Options struct {
	Log        *slog.Logger // for failures and, at debug level, requests; slog.Default()
	CacheBytes uint64       // size limit of the cache; 28 MiB
	// InFlightBytes bounds the memory beyond the cache for objects being read and answers being
	// made or sent; 12 MiB. Requests that do not fit wait. Request bodies, large answers, and
	// computed answers being sent each get up to another sixth; buffers for streamed tables, a
	// twelfth.
	InFlightBytes int64
	Poll          time.Duration // interval between two reads of the root by Watch; 10 s
	MaxAge        time.Duration // age of the snapshot from which Watch and a metric warn; 0 for never
	Timeout       time.Duration // longest time for one request, which then gets a 503; 5 s
	MaxRequests   int           // requests answered at the same time; others get a 503 at once; 2,048
	Refresh       RefreshOptions
	// Describe makes the OpenAPI document served as site.OpenAPIKey if the site has none; nil for
	// no document.
	Describe func(site.Config) ([]byte, error)
	// Collectors are additional metrics that Metrics exposes.
	Collectors []prometheus.Collector

	// CacheControl replaces the Cache-Control of 200 answers that caches may keep for a while;
	// ProblemCacheControl does so for problems. "" keeps the value of the route or the problem.
	// Answers that caches must revalidate or must not store, and immutable answers, keep their own
	// value.
	CacheControl, ProblemCacheControl string

	clock otter.Clock // clock of the cache; nil for the real one, except in tests
}

// RefreshOptions configure the source of fresh data and the limits of refreshes. The zero value
// refreshes nothing.
type RefreshOptions = fresh.Options

// RefreshSigning holds the keys that sign and check the entries kept by refreshes.
type RefreshSigning = fresh.Signing

// DefaultInFlightBytes is the default of Options.InFlightBytes.
const DefaultInFlightBytes = 12 << 20

// UpstreamTimeout is the default of RefreshOptions.UpstreamTimeout, which bounds all upstream
// requests of one refresh.
const UpstreamTimeout = fresh.UpstreamTimeout

// ClientOf returns the address of the client of a request that came through the given number of
// proxies, each of which appends its client's address to X-Forwarded-For. For IPv6 it returns the
// /64 network. It returns the zero Addr if the client is unknown.
func ClientOf(r *http.Request, proxies int) netip.Addr { return fresh.ClientOf(r, proxies) }

func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.CacheBytes = cmp.Or(o.CacheBytes, 28<<20)
	o.InFlightBytes = cmp.Or(o.InFlightBytes, DefaultInFlightBytes)
	o.Poll = cmp.Or(o.Poll, 10*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.MaxRequests = cmp.Or(o.MaxRequests, 2048)
	o.Refresh = o.Refresh.WithDefaults()
	return o
}

type (
	// A Store holds a site.
	Store = fetch.Store
	// A Bucket is a Store that can replace objects.
	Bucket = fetch.Bucket
)

// A Handler answers the requests of the API from a store. It is safe for concurrent use.
type Handler struct {
	*shared
	fetcher   *fetch.Fetcher
	cache     *cache.Cache
	answers   *answer.Maker
	refresher *fresh.Refresher // nil without refreshes

	draining atomic.Bool
	polling  sync.Mutex // held while the root is read
	doubts   singleflight.Group
	live     atomic.Pointer[liveSite]
}

// ErrNoSite means that the store holds no site.
var ErrNoSite = fmt.Errorf("there is no site: it has no %s", site.RootKey)

// alteredSite is the problem for objects that a checked store (package checked) rejects. Only
// servers answer with it, so no site has an object for it.
var alteredSite = &site.Problem{Name: "altered", Status: http.StatusBadGateway, CacheControl: site.NoStore,
	Detail: "The stored data is not what its publisher has signed, so it is not shown."}

// New returns a handler for the site in store. It reads the root and returns ErrNoSite if there is
// none. If the store fails temporarily (storage.Temporary), the handler answers 503 until Watch has
// read the root. The caller runs Watch, and calls Close at the end. If o.Refresh names an upstream,
// the store must be a Bucket.
func New(ctx context.Context, store Store, o Options) (*Handler, error) {
	s, err := newShared(o)
	if err != nil {
		return nil, err
	}
	h, err := s.newHandler(store, false)
	if err != nil {
		return nil, err
	}
	s.current.Store(h)
	h.polling.Lock()
	defer h.polling.Unlock()
	switch err = h.readRoot(ctx); {
	case err == nil:
		return h, nil
	case storage.Temporary(err) || errors.Is(err, checked.ErrBetween):
		h.log.Warn("cannot read the site yet, retrying", "error", err)
		return h, nil
	case errors.Is(err, storage.ErrNotFound):
		err = ErrNoSite
	}
	h.Close()
	return nil, err
}

// Close stops the goroutines of the cache. Call it once, after Watch has returned and all requests
// are answered. Close does not close the store.
func (h *Handler) Close() { h.cache.Close() }

// inFlight returns the number of bytes held beyond the cache.
func (h *Handler) inFlight() int64 {
	return h.cache.InFlight() + h.gates.answer.Small.Taken() + h.gates.answer.Large.Taken() + h.gates.streams.Taken()
}

// respond answers a request and records the route and the status in seen.
func (h *Handler) respond(w http.ResponseWriter, r *http.Request, seen *outcome) {
	v := h.live.Load()
	if v == nil {
		seen.status = h.write(problem(site.Unavailable), w, r)
		return
	}
	w.Header()[settings.Header] = v.settings
	if h.respondHot(w, r, v, seen) {
		return
	}
	if h.describes(v, r) {
		h.respondDescription(w, r, v, seen)
		return
	}
	resolution := v.Root.Config.Resolve(r.Method, sentPath(r.URL), r.URL.RawQuery)
	seen.route = resolution.Route
	if resolution.Action == site.AnswerPreflight {
		seen.status = preflight(w, v.Root.Config)
		return
	}
	ctx := seen.context(r.Context())
	limit := h.timeout
	if resolution.Fresh {
		limit += h.refresh.UpstreamTimeout
		ctx = fresh.WithClient(ctx, r, h.refresh.Proxies)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if resolution.Route != nil && resolution.Route.ID == routes.NextNote {
		v = h.doubted(limited)
	}
	a, stalled, err := h.answerTo(limited, w, r, v, resolution)
	gone := ctx.Err() != nil && !stalled // a client that closed only its sending side may still read an answer
	if err != nil {
		if !gone {
			h.failures.Do(func() {
				fields := []any{"method", r.Method, "path", r.URL.Path, "error", err}
				var altered *checked.AlteredError
				if errors.As(err, &altered) {
					fields = append(fields, "key", altered.Key, "expected", altered.Expected, "got", altered.Got)
				}
				h.logger(ctx).Error("request failed", fields...)
			})
		}
		a = problem(site.Unavailable)
		if errors.Is(err, checked.ErrAltered) {
			h.metrics.altered.Inc()
			a = problem(alteredSite)
		}
	}
	defer a.object.Release()
	defer h.closeStream(ctx, a)
	h.rendered(seen)
	addTags(w, v, resolution)
	if c := v.Root.Config; a.status == http.StatusNotFound && c.Explorer && page.WantsMissing(sentPath(r.URL), r.Header) {
		a.object, a.contentType, a.cacheControl = cache.WithoutTag([]byte(page.Missing(c))), routeValues[routes.Index].contentType, noStore
	}
	seen.status = h.write(a, w, r)
	if gone {
		seen.status = statusClientGone
	}
}

// answerTo reads the body of a request, if its route takes one, and finds the answer. stalled
// reports that the body did not arrive in time.
func (h *Handler) answerTo(ctx context.Context, w http.ResponseWriter, r *http.Request, v *liveSite, resolution site.Resolution) (a response, stalled bool, err error) {
	if resolution.Route != nil && resolution.Route.Ranges && h.fetcher.HasRanges() {
		a, err = h.opened(ctx, r.Context(), resolution)
		return a, false, err
	}
	sent, err := h.readBatch(ctx, w, r, resolution)
	defer h.gates.bodies.read.Give(sent.granted)
	switch {
	case err != nil:
		return response{}, false, err
	case sent.problem != nil:
		return problem(sent.problem), sent.stalled, nil
	}
	a, err = h.answer(ctx, v, resolution, sent.users)
	if err == nil {
		markHot(r, v, resolution, a.object)
	}
	return a, false, err
}

// describes reports whether the request asks for the OpenAPI document and the site has none.
func (h *Handler) describes(v *liveSite, r *http.Request) bool {
	return r.URL.Path == "/"+string(site.OpenAPIKey) && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		h.describe != nil && !v.Root.Config.EFP()
}

func (h *Handler) respondDescription(w http.ResponseWriter, r *http.Request, v *liveSite, seen *outcome) {
	seen.route = site.RouteBy(routes.OpenAPI)
	o, err := v.description()
	a := whole(seen.route, o)
	if err != nil {
		h.logger(seen.context(r.Context())).Error("description failed", "error", err)
		a = problem(site.InternalError)
	}
	seen.status = h.write(a, w, r)
}

// sentPath returns the path as the client sent it. URL.EscapedPath is not always the same: if the
// client left a character unescaped that needs escaping, EscapedPath encodes the decoded path
// again, and an encoded slash turns into a separator.
func sentPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}

func preflight(w http.ResponseWriter, c site.Config) (status int) {
	for _, header := range c.PreflightHeaders() {
		w.Header().Set(header.Name, header.Value)
	}
	w.WriteHeader(http.StatusNoContent)
	return http.StatusNoContent
}

// answer finds the answer to a resolved request; users come from its body. The caller answers an
// error with a 503.
func (h *Handler) answer(ctx context.Context, v *liveSite, r site.Resolution, users []*string) (response, error) {
	if r.Action == site.AnswerProblem {
		return problem(r.Problem), nil
	}
	r, err := h.answers.LookedUp(ctx, v.Site, r)
	var o *cache.Object
	if err == nil {
		o, err = h.find(ctx, v, r, users)
	}
	if err == nil && r.Fresh {
		defer o.Release()
		a, err := h.refreshed(ctx, v, r, o)
		if err == nil {
			a.object.Pin()
		}
		return a, err
	}
	var is *answer.ProblemError
	switch {
	case errors.As(err, &is):
		return absent(r, is.Problem), nil
	case errors.Is(err, storage.ErrNotFound) && r.Absent != nil:
		return absent(r, r.Absent), nil
	case errors.Is(err, storage.ErrNotFound) && r.Unknown != "":
		o, err = h.unknown(ctx, v, r)
	case errors.Is(err, storage.ErrNotFound):
		o, err = cache.NewObject([]byte(site.EmptySearch)), nil
	}
	if err == nil && r.Route.Redirect {
		return redirect(r.Route, o), nil
	}
	a := whole(r.Route, o)
	if r.Fresh {
		a.cacheControl = noStore
	}
	return a, err
}

// find returns the object that answers a request, or storage.ErrNotFound. The caller releases the
// object.
func (h *Handler) find(ctx context.Context, v *liveSite, r site.Resolution, users []*string) (*cache.Object, error) {
	switch r.Action {
	case site.AnswerSearch, site.AnswerComputed:
		return h.answers.Compute(ctx, v.Site, r, users)
	}
	if r.Route.Kept() {
		return h.cache.Newest(ctx, cache.Key{Version: v.Version, Key: r.Key})
	}
	return h.cache.Get(ctx, cache.Key{Version: v.Version, Key: r.Key, WithoutTags: r.Action == site.AnswerWithoutTags})
}

// unknown returns the answer for an address that is not in the graph.
func (h *Handler) unknown(ctx context.Context, v *liveSite, r site.Resolution) (*cache.Object, error) {
	template, err := h.template(ctx, v, r.Unknown)
	if err != nil {
		return nil, err
	}
	return cache.NewObject(bytes.ReplaceAll(template, []byte(site.UnknownAddress), []byte(r.Address))), nil
}

// template returns an object for unknown addresses (site.UnknownKey). The live site keeps all of
// them: they are few and small.
func (h *Handler) template(ctx context.Context, v *liveSite, key site.Key) ([]byte, error) {
	if body, ok := v.templates.Load(key); ok {
		return body.([]byte), nil
	}
	o, err := h.cache.Get(ctx, cache.Key{Version: v.Version, Key: key})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	defer o.Release()
	body := bytes.Clone(o.Body)
	v.templates.Store(key, body)
	return body, nil
}

// refreshed answers a cache=fresh request for a stored object.
func (h *Handler) refreshed(ctx context.Context, v *liveSite, r site.Resolution, stored *cache.Object) (response, error) {
	a := whole(r.Route, stored)
	a.cacheControl = noStore
	kind := site.Details
	if r.Route.ID == routes.Badges || r.Route.ID == routes.UserBadges {
		kind = site.Badges
	}
	if !h.refresher.Refreshes(kind) {
		a.refresh = "unavailable"
		return a, nil
	}
	t, ok, err := fresh.Target{Config: v.Root.Config, Object: kind, TokenID: r.TokenID}.StandsFor(ctx, r.Key, func(ctx context.Context, key site.Key) ([]byte, error) {
		o, err := h.cache.Get(ctx, cache.Key{Version: v.Version, Key: key})
		if err != nil {
			return nil, err
		}
		defer o.Release()
		return bytes.Clone(o.Body), nil
	})
	if err != nil {
		return a, err
	}
	if !ok {
		a.refresh = "unavailable"
		return a, nil
	}
	o, err := h.refresher.Refresh(ctx, t, h.logger(ctx),
		func(key site.Key, body []byte) *cache.Object { return h.cache.Put(h.live.Load().Version, key, body) }) // a new site may be live by now
	var often *fresh.TooOftenError
	switch {
	case errors.As(err, &often):
		h.metrics.refreshed(kind, "limited")
		a.refresh = "limited"
		if h.refresher.Strict() {
			a = problem(site.TooManyRefreshes)
		}
		a.retryAfter = often.Wait
		return a, nil
	case errors.Is(err, storage.ErrNotFound):
		return absent(r, site.NoSuchList), nil
	case errors.Is(err, fresh.ErrUpstream):
		a.refresh = "failed"
		return a, nil
	case err != nil:
		return a, err
	}
	a.object = o
	return a, nil
}
