package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/followpress/followpress/server/internal/answer"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/current"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/fresh"
	"github.com/followpress/followpress/server/internal/observe"
	"github.com/followpress/followpress/server/internal/reply"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/settings"
	"github.com/followpress/followpress/site/tags"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// shared has the state behind Shared.
type shared struct {
	options   Options
	gates     gates
	observer  *observe.Observer
	refreshes *fresh.Shared
	log       *slog.Logger

	failures rate.Sometimes          // limits the log of failed requests: there may be thousands per second
	newest   atomic.Pointer[Handler] // for gauges
}

// A Handler answers the requests of the API from a store. It is safe for concurrent use.
type Handler struct {
	*shared
	fetcher   *fetch.Fetcher
	cache     *cache.Cache
	current   *current.Reader
	answers   *answer.Maker
	refresher *fresh.Refresher // nil without refreshes

	draining atomic.Bool
}

// ErrNoSite means that the store holds no site.
var ErrNoSite = fmt.Errorf("there is no site: it has no %s", site.RootKey)

// Close stops the goroutines of the cache. Call it once, after Watch has returned and all requests
// are answered. Close does not close the store.
func (h *Handler) Close() { h.cache.Close() }

// inFlight returns the number of bytes held beyond the cache.
func (h *Handler) inFlight() int64 {
	return h.cache.InFlight() + h.gates.answer.Small.Taken() + h.gates.answer.Large.Taken() + h.gates.streams.Taken()
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.Answer(w, r, nil) }

// Answer is ServeHTTP, but calls made once the answer is made and before it is sent: from then on
// the request no longer needs the store, however slowly its client reads. made may be nil.
func (h *Handler) Answer(w http.ResponseWriter, r *http.Request, made func()) {
	h.observer.Observe(w, r, made, h.respond)
}

// respond answers a request and records the route and the status in seen.
func (h *Handler) respond(w http.ResponseWriter, r *http.Request, seen *observe.Outcome) {
	v := h.current.Site()
	if v == nil {
		seen.Status = h.observer.Replies.Write(reply.Problem(site.Unavailable), w, r)
		return
	}
	w.Header()[settings.Header] = v.Settings
	if h.respondHot(w, r, v, seen) {
		return
	}
	if h.describes(v, r) {
		h.respondDescription(w, r, v, seen)
		return
	}
	resolution := v.Root.Config.Resolve(r.Method, sentPath(r.URL), r.URL.RawQuery)
	seen.Route = resolution.Route
	if resolution.Action == site.AnswerPreflight {
		seen.Status = preflight(w, v.Root.Config)
		return
	}
	ctx := seen.Context(r.Context())
	limit := h.options.Timeout
	if resolution.Fresh {
		limit += h.options.Refresh.UpstreamTimeout
		ctx = fresh.WithClient(ctx, r, h.options.Refresh.Proxies)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if resolution.Route != nil && resolution.Route.ID == routes.NextNote {
		v = h.current.Doubted(limited)
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
				h.observer.Logger(ctx).Error("request failed", fields...)
			})
		}
		a = reply.Problem(site.Unavailable)
		if errors.Is(err, checked.ErrAltered) {
			h.observer.Metrics.Altered.Inc()
			a = reply.Problem(reply.Altered)
		}
	}
	defer a.Object.Release()
	defer h.closeStream(ctx, a)
	h.observer.Rendered(seen)
	addTags(w, v, resolution)
	if c := v.Root.Config; a.Status == http.StatusNotFound && c.Explorer && page.WantsMissing(sentPath(r.URL), r.Header) {
		a = a.WithPage([]byte(page.Missing(c)))
	}
	seen.Status = h.observer.Replies.Write(a, w, r)
	if gone {
		seen.Status = observe.StatusClientGone
	}
}

// answerTo reads the body of a request, if its route takes one, and finds the answer. stalled
// reports that the body did not arrive in time.
func (h *Handler) answerTo(ctx context.Context, w http.ResponseWriter, r *http.Request, v *current.Site, resolution site.Resolution) (a reply.Reply, stalled bool, err error) {
	if resolution.Route != nil && resolution.Route.Ranges && h.fetcher.HasRanges() {
		a, err = h.opened(ctx, r.Context(), resolution)
		return a, false, err
	}
	sent, err := h.gates.bodies.Read(ctx, w, r, resolution)
	defer h.gates.bodies.Done.Give(sent.Granted)
	switch {
	case err != nil:
		return reply.Reply{}, false, err
	case sent.Problem != nil:
		return reply.Problem(sent.Problem), sent.Stalled, nil
	}
	a, err = h.answer(ctx, v, resolution, sent.Users)
	if err == nil {
		markHot(r, v, resolution, a.Object)
	}
	return a, false, err
}

// opened returns the answer with an object of a route with ranges (site.Route.Ranges), copied from
// the store to the client: such objects are too large to read whole for each part, or to hold in
// memory. If the store cannot read parts, the object is in memory like any other: a checked store
// needs the whole object, since a signature does not cover a part. The caller closes the stream.
func (h *Handler) opened(ctx, during context.Context, r site.Resolution) (reply.Reply, error) {
	if err := h.gates.streams.Take(ctx, streamBytes); err != nil {
		return reply.Reply{}, err
	}
	stream, err := h.fetcher.Open(ctx, during, r.Key)
	if err != nil {
		h.gates.streams.Give(streamBytes)
		if errors.Is(err, storage.ErrNotFound) {
			return absent(r, r.Absent), nil
		}
		return reply.Reply{}, err
	}
	return reply.Streamed(r.Route, stream), nil
}

// closeStream closes the stream of an answer, if any, and logs why the store ended it early. The
// client notices by Content-Length.
func (h *Handler) closeStream(ctx context.Context, a reply.Reply) {
	if a.Stream == nil {
		return
	}
	defer h.gates.streams.Give(streamBytes)
	if err := a.Stream.Close(); err != nil && ctx.Err() == nil {
		h.failures.Do(func() { h.observer.Logger(ctx).Error("answer was cut off", "error", err) })
	}
}

// absent returns the answer for a missing object: the route's own empty answer if it has one, else
// p.
func absent(r site.Resolution, p *site.Problem) reply.Reply {
	a := reply.Problem(p)
	if r.Fresh {
		a.CacheControl = reply.NoStore
	}
	return a
}

// addTags adds the cache tags that the same object has in the bucket, so that one purge finds both.
func addTags(w http.ResponseWriter, v *current.Site, r site.Resolution) {
	for _, header := range tags.Headers(v.Root.Config, r) {
		w.Header().Set(header.Name, header.Value)
	}
}

// describes reports whether the request asks for the OpenAPI document and the site has none.
func (h *Handler) describes(v *current.Site, r *http.Request) bool {
	return r.URL.Path == "/"+string(site.OpenAPIKey) && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		h.options.Describe != nil && !v.Root.Config.EFP()
}

func (h *Handler) respondDescription(w http.ResponseWriter, r *http.Request, v *current.Site, seen *observe.Outcome) {
	seen.Route = site.RouteBy(routes.OpenAPI)
	o, err := v.Description()
	a := reply.Whole(seen.Route, o)
	if err != nil {
		h.observer.Logger(seen.Context(r.Context())).Error("description failed", "error", err)
		a = reply.Problem(site.InternalError)
	}
	seen.Status = h.observer.Replies.Write(a, w, r)
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
func (h *Handler) answer(ctx context.Context, v *current.Site, r site.Resolution, users []*string) (reply.Reply, error) {
	if r.Action == site.AnswerProblem {
		return reply.Problem(r.Problem), nil
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
			a.Object.Pin()
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
		o, err = h.current.Unknown(ctx, v, r.Unknown, r.Address)
	case errors.Is(err, storage.ErrNotFound):
		o, err = cache.NewObject([]byte(site.EmptySearch)), nil
	}
	if err == nil && r.Route.Redirect {
		return reply.Redirect(r.Route, o), nil
	}
	a := reply.Whole(r.Route, o)
	if r.Fresh {
		a.CacheControl = reply.NoStore
	}
	return a, err
}

// find returns the object that answers a request, or storage.ErrNotFound. The caller releases the
// object.
func (h *Handler) find(ctx context.Context, v *current.Site, r site.Resolution, users []*string) (*cache.Object, error) {
	switch r.Action {
	case site.AnswerSearch, site.AnswerComputed:
		return h.answers.Compute(ctx, v.Site, r, users)
	}
	if r.Route.Kept() {
		return h.cache.Newest(ctx, cache.Key{Version: v.Version, Key: r.Key})
	}
	return h.cache.Get(ctx, cache.Key{Version: v.Version, Key: r.Key, WithoutTags: r.Action == site.AnswerWithoutTags})
}

// refreshed answers a cache=fresh request for a stored object.
func (h *Handler) refreshed(ctx context.Context, v *current.Site, r site.Resolution, stored *cache.Object) (reply.Reply, error) {
	a := reply.Whole(r.Route, stored)
	a.CacheControl = reply.NoStore
	kind := site.Details
	if r.Route.ID == routes.Badges || r.Route.ID == routes.UserBadges {
		kind = site.Badges
	}
	if !h.refresher.Refreshes(kind) {
		a.Refresh = "unavailable"
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
		a.Refresh = "unavailable"
		return a, nil
	}
	o, err := h.refresher.Refresh(ctx, t, h.observer.Logger(ctx),
		func(key site.Key, body []byte) *cache.Object { return h.cache.Put(h.current.Site().Version, key, body) }) // a new site may be live by now
	var often *fresh.TooOftenError
	switch {
	case errors.As(err, &often):
		h.observer.Metrics.Refreshed(kind, "limited")
		a.Refresh = "limited"
		if h.refresher.Strict() {
			a = reply.Problem(site.TooManyRefreshes)
		}
		a.RetryAfter = often.Wait
		return a, nil
	case errors.Is(err, storage.ErrNotFound):
		return absent(r, site.NoSuchList), nil
	case errors.Is(err, fresh.ErrUpstream):
		a.Refresh = "failed"
		return a, nil
	case err != nil:
		return a, err
	}
	a.Object = o
	return a, nil
}

// respondHot answers a request if the cache has an object marked as the answer to its path, and the
// object is not due to be read again. It reports whether it answered. Most requests are such, so it
// takes no resolution of the path, no context and no new header values.
func (h *Handler) respondHot(w http.ResponseWriter, r *http.Request, v *current.Site, seen *observe.Outcome) bool {
	key, ok := plainKey(r)
	if !ok || r.Context().Err() != nil {
		return false
	}
	o := h.cache.Young(cache.Key{Version: v.Version, Key: key}, seen.Begun)
	if o == nil {
		return false
	}
	defer o.Release()
	route := o.Route.Load()
	if route == nil {
		return false
	}
	h.observer.Metrics.CacheHits.Inc()
	seen.Route = route
	h.observer.Rendered(seen)
	addTags(w, v, site.Resolution{Route: route, Key: key})
	seen.Status = h.observer.Replies.Write(reply.Whole(route, o), w, r)
	return true
}

// markHot marks an object as the answer to its own path. The configuration of the site alone
// decides what a path resolves to, and an object belongs to one version of the site. Objects kept
// next to a site (site.Route.Kept) belong to no version and are read for each request.
func markHot(r *http.Request, v *current.Site, resolution site.Resolution, o *cache.Object) {
	if o == nil || resolution.Action != site.AnswerObject || resolution.Route.Kept() || o.Route.Load() != nil {
		return
	}
	if key, ok := plainKey(r); ok && key == resolution.Key && o.IsAt(cache.Key{Version: v.Version, Key: key}) {
		o.Route.Store(resolution.Route)
	}
}

// plainKey returns the path of a GET or HEAD request as a key. ok is false if the request has a
// query, or if the path as sent may differ from the decoded path.
func plainKey(r *http.Request) (key site.Key, ok bool) {
	path, ok := strings.CutPrefix(r.URL.Path, "/")
	return site.Key(path), ok && r.URL.RawPath == "" && r.URL.RawQuery == "" &&
		(r.Method == http.MethodGet || r.Method == http.MethodHead)
}
