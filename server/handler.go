package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Options say how a handler works. The zero value of a field means its default.
type Options struct {
	Log        *slog.Logger // hears of failures; slog.Default()
	CacheBytes uint64       // of objects kept in memory; 32 MiB
	// InFlightBytes are those of objects that are being read, and of answers that are being
	// made or sent, which the cache does not hold; 12 MiB. What does not fit has to wait.
	InFlightBytes int64
	Poll          time.Duration // how soon Watch notices a new site in the store; 10 s
	Timeout       time.Duration // in which a request is answered, if only with a 503; 5 s
	MaxRequests   int           // that are answered at the same time, others get a 503; 2,048
	Refresh       RefreshOptions

	clock otter.Clock // of the cache; tests have their own, nil means the real one
}

const (
	defaultCacheBytes  = 32 << 20
	defaultInFlight    = 12 << 20
	defaultPoll        = 10 * time.Second
	defaultTimeout     = 5 * time.Second
	defaultMaxRequests = 2048
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.CacheBytes = cmp.Or(o.CacheBytes, defaultCacheBytes)
	o.InFlightBytes = cmp.Or(o.InFlightBytes, defaultInFlight)
	o.Poll = cmp.Or(o.Poll, defaultPoll)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.MaxRequests = cmp.Or(o.MaxRequests, defaultMaxRequests)
	o.Refresh = o.Refresh.withDefaults()
	return o
}

// A Handler answers the requests of the API from a store.
type Handler struct {
	fetcher     *fetcher
	cache       *cache
	refresher   *refresher // nil where nothing is refreshed
	metrics     *metrics
	log         *slog.Logger
	poll        time.Duration
	timeout     time.Duration
	refreshing  time.Duration // that a refresh may take beyond the timeout
	maxRequests int64

	failures  rate.Sometimes      // lines about failed requests, of which there may be thousands a second
	pages     *semaphore.Weighted // bytes of pages of searches
	paged     atomic.Int64        // that are taken of them
	oversize  *semaphore.Weighted // of pages that found no more room there: one
	ahead     *semaphore.Weighted // bytes of shards that are read before they are needed
	mixed     *room               // requests that wait for the parts of an answer to agree
	answering atomic.Int64
	draining  atomic.Bool
	polling   sync.Mutex // held while the root is read again
	view      atomic.Pointer[view]
}

// New makes a handler. It reads the root of the site and fails if there is none.
// Where the store cannot be reached, and that may pass, it answers with 503 until
// Watch has found the root.
func New(ctx context.Context, store Store, o Options) (_ *Handler, err error) {
	o = o.withDefaults()
	m := newMetrics()
	h := &Handler{
		fetcher: &fetcher{store, o.Timeout, m}, metrics: m, log: o.Log, poll: o.Poll,
		timeout: o.Timeout, refreshing: o.Refresh.upstreamTimeout, maxRequests: int64(o.MaxRequests),
		failures: rate.Sometimes{First: 10, Interval: 100 * time.Millisecond},
	}
	// A store that hangs may keep three quarters of the requests waiting: the rest is
	// for what the cache answers.
	waiting := &room{size: int64(max(1, o.MaxRequests*3/4))}
	if h.cache, err = newCache(h.fetcher, o, waiting, m); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()

	// The rest is for objects. Those that are read ahead count as objects too.
	h.pages, h.oversize = semaphore.NewWeighted(max(o.InFlightBytes/6, pageGrant)), semaphore.NewWeighted(1)
	h.ahead = semaphore.NewWeighted(o.InFlightBytes / 6)
	h.mixed = &room{size: int64(max(1, o.MaxRequests/8)), within: waiting}
	// Those who wait for a refresh are among them, and leave half of all to others.
	refreshing := &room{size: int64(max(1, o.MaxRequests/2)), within: waiting}
	if h.refresher, err = newRefresher(o.Refresh, h.fetcher, refreshing, m); err != nil {
		return nil, err
	}
	m.watch(h)
	h.polling.Lock()
	defer h.polling.Unlock()
	switch err = h.check(ctx); {
	case errors.Is(err, storage.ErrNotFound):
		return nil, fmt.Errorf("there is no site: it has no %s", site.RootKey)
	case storage.Temporary(err):
		h.log.Warn("the site cannot be read yet", "error", err)
		err = nil
	case err != nil:
		return nil, err
	}
	return h, nil
}

// Close ends what the handler does in the background, once Watch has returned and no
// request is under way. It does not close the store.
func (h *Handler) Close() { h.cache.objects.StopAllGoroutines() }

// inFlight are the bytes that are held beside the cache, as far as they are counted.
func (h *Handler) inFlight() int64 {
	return h.cache.keeper.small.bytes() + h.cache.keeper.large.bytes() + h.paged.Load()
}

// An answer is what goes out.
type answer struct {
	status       int
	object       *object
	contentType  string
	cacheControl string
	refresh      string        // X-Refresh; "" means none
	retryAfter   time.Duration // Retry-After, in whole seconds; 0 means none
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	id := requestID(r)
	ctx := context.WithValue(r.Context(), requestIDKey{}, id)
	header := w.Header()
	maps.Copy(header, everyAnswer)
	header[headerRequestID] = []string{id}

	var route *site.Route
	status := http.StatusInternalServerError
	defer func() {
		if fault := recover(); fault != nil {
			h.recover(ctx, w, r, fault)
		}
		h.metrics.answered(route, status, time.Since(begun))
		if h.log.Enabled(ctx, slog.LevelDebug) {
			h.logger(ctx).Debug("request", "method", r.Method, "path", r.URL.Path, "query", r.URL.RawQuery, "status", status, "took", time.Since(begun))
		}
	}()
	if h.answering.Add(1) > h.maxRequests {
		h.answering.Add(-1)
		status = problem(site.Unavailable).write(w, r)
		return
	}
	defer h.answering.Add(-1)
	v := h.view.Load()
	if v == nil {
		status = problem(site.Unavailable).write(w, r)
		return
	}
	resolution := v.root.Config.Resolve(r.Method, sentPath(r.URL), r.URL.RawQuery)
	route = resolution.Route
	if resolution.Action == site.AnswerPreflight {
		status = preflight(w)
		return
	}
	limit := h.timeout
	if resolution.Fresh {
		limit += h.refreshing
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a, err := h.answer(limited, v, resolution)
	gone := r.Context().Err() != nil // or has only closed its side: an answer may still be read
	if err != nil {
		if !gone {
			h.failures.Do(func() {
				h.logger(ctx).Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
			})
		}
		a = problem(site.Unavailable)
	}
	defer a.object.release()
	status = a.write(w, r)
	if gone {
		status = statusClientGone
	}
}

// statusClientGone is what nginx logs for a client that did not wait. It is counted,
// not sent.
const statusClientGone = 499

// sentPath is the path as the client sent it. EscapedPath may not be: of a path
// with characters that should have been escaped it escapes what was decoded, and
// an encoded slash becomes one that separates.
func sentPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}

// everyAnswer are the headers of every answer. The values are shared by all
// responses, which only read them.
var everyAnswer = headersOf(site.EveryHeader())

func headersOf(headers []site.Header) http.Header {
	h := make(http.Header, len(headers))
	for _, header := range headers {
		h.Set(header.Name, header.Value)
	}
	return h
}

// recover keeps one bad request from taking others down.
func (h *Handler) recover(ctx context.Context, w http.ResponseWriter, r *http.Request, fault any) {
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(fault) // net/http's own way to end a connection
	}
	h.logger(ctx).Error("panic", "method", r.Method, "path", r.URL.Path, "fault", fault, "stack", string(debug.Stack()))
	problem(site.InternalError).write(w, r)
}

func preflight(w http.ResponseWriter) (status int) {
	maps.Copy(w.Header(), headersOf(site.PreflightHeaders()))
	w.WriteHeader(http.StatusNoContent)
	return http.StatusNoContent
}

// answer finds the answer to a request that was understood, or that was not.
func (h *Handler) answer(ctx context.Context, v *view, r site.Resolution) (answer, error) {
	if r.Action == site.AnswerProblem {
		return problem(r.Problem), nil
	}
	o, err := h.find(ctx, v, r)
	if err == nil && r.Fresh {
		defer o.release()
		a, err := h.refresh(ctx, v, r, o)
		if err == nil {
			a.object.pin()
		}
		return a, err
	}
	if errors.Is(err, storage.ErrNotFound) {
		if r.Absent != nil {
			return absent(r), nil
		}
		o, err = newObject([]byte(site.EmptySearch)), nil
	}
	return answer{status: http.StatusOK, object: o, contentType: r.Route.ContentType, cacheControl: r.Route.CacheControl}, err
}

// find finds or makes the object that answers; storage.ErrNotFound if there is none.
func (h *Handler) find(ctx context.Context, v *view, r site.Resolution) (*object, error) {
	switch r.Action {
	case site.AnswerSearch:
		return h.search(ctx, v, r.Search)
	case site.AnswerWithoutTags:
		return h.cache.getWithoutTags(ctx, v.version, r.Key)
	}
	return h.cache.get(ctx, v.version, r.Key)
}

// refresh answers cache=fresh for an object that is stored.
func (h *Handler) refresh(ctx context.Context, v *view, r site.Resolution, stored *object) (answer, error) {
	a := answer{status: http.StatusOK, object: stored, contentType: r.Route.ContentType, cacheControl: site.NoStore}
	kind := site.Details
	if r.Route.ID == site.RouteBadges {
		kind = site.Badges
	}
	if !h.refresher.refreshes(kind) {
		a.refresh = "unavailable"
		return a, nil
	}
	fresh, err := h.refresher.refresh(ctx, target{v.root.Config, kind, r.TokenID}, h.logger(ctx),
		func(body []byte) *object { return h.cache.put(h.view.Load().version, r.Key, body) }) // there may be a new site by then
	var often *tooOftenError
	switch {
	case errors.As(err, &often):
		h.metrics.refreshes.WithLabelValues(string(kind), "limited").Inc()
		a = problem(site.TooManyRefreshes)
		a.retryAfter = often.wait
		return a, nil
	case errors.Is(err, storage.ErrNotFound):
		return absent(r), nil
	case errors.Is(err, errUpstream):
		a.refresh = "failed"
		return a, nil
	case err != nil:
		return a, err
	}
	a.object = fresh
	return a, nil
}

// absent is the answer where there is no object.
func absent(r site.Resolution) answer {
	a := problem(r.Absent)
	if r.Fresh {
		a.cacheControl = site.NoStore
	}
	return a
}

func problem(p *site.Problem) answer {
	a := answer{status: p.Status, object: &object{body: p.Body()}, contentType: site.RouteError.Route().ContentType, cacheControl: p.CacheControl}
	if p.Status == http.StatusServiceUnavailable {
		a.retryAfter = site.RetryAfter
	}
	return a
}

func (a answer) write(w http.ResponseWriter, r *http.Request) (status int) {
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("Cache-Control", a.cacheControl)
	if a.refresh != "" {
		header.Set("X-Refresh", a.refresh)
	}
	if a.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(a.retryAfter.Seconds()))))
	}
	switch a.status {
	case http.StatusOK:
		header.Set("ETag", a.object.etag)
		if holds(r.Header["If-None-Match"], a.object.etag) {
			w.WriteHeader(http.StatusNotModified)
			return http.StatusNotModified
		}
	case http.StatusMethodNotAllowed:
		header.Set("Allow", site.AllowedMethods)
	}
	header.Set("Content-Length", strconv.Itoa(len(a.object.body)))
	w.WriteHeader(a.status)
	// Not http.ServeContent: it flushes the headers before it copies the body, a
	// system call and a packet more; nobody asks for a range of JSON.
	_, _ = w.Write(a.object.body) // the client may be gone: then nobody is left to tell
	return a.status
}

// holds reports whether an If-None-Match header (RFC 9110, 13.1.2) names an entity
// tag. A weak tag is as good as a strong one there.
func holds(ifNoneMatch []string, etag string) bool {
	for _, line := range ifNoneMatch {
		for tag := range strings.SplitSeq(line, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}
