package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"runtime"
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

// Options configure a handler. The zero value of a field means the default that its comment names.
type Options struct {
	Log        *slog.Logger // for failures and, at debug level, requests; slog.Default()
	CacheBytes uint64       // most bytes of the cache; 28 MiB
	// InFlightBytes bounds the bytes beyond the cache: of objects that are being read, and of
	// answers that are being made or sent; 12 MiB. What does not fit waits. Bodies of requests,
	// large answers, and computed ones that are being sent may take a sixth more each.
	InFlightBytes int64
	Poll          time.Duration // between two reads of the root by Watch; 10 s
	Timeout       time.Duration // of a request, which then gets a 503; 5 s
	MaxRequests   int           // answered at the same time, others get a 503 at once; 2,048
	Refresh       RefreshOptions
	// Describe makes the description of the API that answers for site.OpenAPIKey if the site does not
	// hold it; nil means none.
	Describe func(site.Config) ([]byte, error)

	clock otter.Clock // of the cache; nil means the real one, tests have their own
}

func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.CacheBytes = cmp.Or(o.CacheBytes, 28<<20)
	o.InFlightBytes = cmp.Or(o.InFlightBytes, 12<<20)
	o.Poll = cmp.Or(o.Poll, 10*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.MaxRequests = cmp.Or(o.MaxRequests, 2048)
	o.Refresh = o.Refresh.withDefaults()
	return o
}

// A Handler answers the requests of the API from a store. It is safe for concurrent use.
type Handler struct {
	fetcher     *fetcher
	cache       *cache
	refresher   *refresher // nil if nothing is refreshed
	metrics     *metrics
	log         *slog.Logger
	poll        time.Duration
	timeout     time.Duration
	refreshing  time.Duration                     // time that a refresh may take beyond timeout
	proxies     int                               // before this server
	describe    func(site.Config) ([]byte, error) // nil for none
	maxRequests int64

	failures  rate.Sometimes      // limits the log of failed requests, of which there may be thousands per second
	small     *pool               // of answers that are being made
	large     *pool               // of those that are larger, or read many objects
	oversize  *pool               // of the one that may be of any size
	receiving *slots              // of requests whose body is being read
	arriving  *semaphore.Weighted // bytes of the beginnings of bodies that are being read
	growing   *semaphore.Weighted // bytes of the rest of those
	bodies    *semaphore.Weighted // bytes of those that were read
	ahead     *semaphore.Weighted // bytes of prefetched search shards
	scanning  *semaphore.Weighted // shares of the processor for reading rows
	mixed     *slots              // of requests that wait for the parts of an answer to agree
	answering atomic.Int64        // requests that are being answered
	draining  atomic.Bool
	polling   sync.Mutex // held while the root is read
	live      atomic.Pointer[liveSite]
}

// New returns a handler for the site in store. It reads the root and fails if there is none. If
// the store fails in a way that is retryable (storage.Temporary), the handler answers 503 until
// Watch has read the root. The caller runs Watch, and Close at the end. If o.Refresh names an
// upstream, the store must be a Bucket.
func New(ctx context.Context, store Store, o Options) (_ *Handler, err error) {
	o = o.withDefaults()
	m := newMetrics()
	h := &Handler{
		fetcher: &fetcher{store, o.Timeout, m}, metrics: m, log: o.Log, poll: o.Poll,
		timeout: o.Timeout, refreshing: o.Refresh.upstreamTimeout, proxies: o.Refresh.Proxies, describe: o.Describe, maxRequests: int64(o.MaxRequests),
		failures: rate.Sometimes{First: 10, Interval: 100 * time.Millisecond},
	}
	// If the store hangs, at most three quarters of the requests wait for it. The rest is for
	// answers from the cache.
	waiting := &slots{size: int64(max(1, o.MaxRequests*3/4))}
	if h.cache, err = newCache(h.fetcher, o, waiting, m); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()

	// Answers that are being made get a sixth of InFlightBytes, objects the rest (see newCache). Prefetched
	// shards count as objects, and may be a sixth. Large answers, and those being sent, get another sixth each.
	// Requests that wait for large ones leave memory and slots to others, and so do those that send a body.
	pages, queue := max(o.InFlightBytes/6, bufferGrant), &slots{size: int64(max(1, o.MaxRequests/8)), parent: waiting}
	h.small = &pool{
		memory: semaphore.NewWeighted(pages), most: max(pages/smallPages, bufferGrant), waiting: &slots{size: int64(max(1, o.MaxRequests/4)), parent: waiting},
	}
	h.large = &pool{memory: semaphore.NewWeighted(pages), most: pages, waiting: queue}
	h.oversize = &pool{memory: semaphore.NewWeighted(1), any: true, waiting: queue}
	h.receiving = &slots{size: int64(max(1, o.MaxRequests/4)), parent: waiting}
	// Bodies get another sixth. Those that arrive have parts of it for themselves: a slow client
	// must not keep others out.
	h.arriving = semaphore.NewWeighted(max(o.InFlightBytes/24, firstBodyBytes))
	h.growing = semaphore.NewWeighted(max(o.InFlightBytes/24, site.MaxBatchBytes))
	h.bodies = semaphore.NewWeighted(max(o.InFlightBytes/12, mostBodyBytes))
	h.ahead = semaphore.NewWeighted(o.InFlightBytes / 6)
	h.scanning = semaphore.NewWeighted(int64(max(1, runtime.GOMAXPROCS(0)/2)))
	h.mixed = &slots{size: int64(max(1, o.MaxRequests/8)), parent: waiting}
	// Requests that wait for a refresh share these slots and take at most half of all requests.
	refreshing := &slots{size: int64(max(1, o.MaxRequests/2)), parent: waiting}
	if h.refresher, err = newRefresher(o.Refresh, h.fetcher, refreshing, m); err != nil {
		return nil, err
	}
	m.watch(h)
	h.polling.Lock()
	defer h.polling.Unlock()
	switch err = h.readRoot(ctx); {
	case errors.Is(err, storage.ErrNotFound):
		return nil, fmt.Errorf("there is no site: it has no %s", site.RootKey)
	case storage.Temporary(err):
		h.log.Warn("cannot read the site yet, will try again", "error", err)
		err = nil
	case err != nil:
		return nil, err
	}
	return h, nil
}

// Close stops the goroutines of the cache. Call it once, after Watch has returned and all requests
// are answered. It does not close the store.
func (h *Handler) Close() { h.cache.objects.StopAllGoroutines() }

// inFlight is the number of bytes that the handler holds beyond the cache.
func (h *Handler) inFlight() int64 {
	t := h.cache.tracker
	return t.small.bytes() + t.large.bytes() + t.sent.taken() + h.small.taken.Load() + h.large.taken.Load()
}

// An answer is a response before it is written.
type answer struct {
	status       int
	object       *object
	contentType  []string      // the value of the header; answers share it
	cacheControl []string      // likewise
	refresh      string        // X-Refresh; "" means none
	retryAfter   time.Duration // Retry-After, in whole seconds; 0 means none
	allow        string        // Allow of a 405
}

// respond answers a request. It notes the route as soon as it is known, and the status.
func (h *Handler) respond(w http.ResponseWriter, r *http.Request, seen *outcome) {
	v := h.live.Load()
	if v == nil {
		seen.status = problem(site.Unavailable).write(w, r)
		return
	}
	if h.respondHot(w, r, v, seen) {
		return
	}
	if h.describes(v, r) {
		h.respondDescription(w, r, v, seen)
		return
	}
	resolution := v.root.Config.Resolve(r.Method, sentPath(r.URL), r.URL.RawQuery)
	seen.route = resolution.Route
	if resolution.Action == site.AnswerPreflight {
		seen.status = preflight(w, v.root.Config)
		return
	}
	ctx := seen.context(r.Context())
	limit := h.timeout
	if resolution.Fresh {
		limit += h.refreshing
		ctx = context.WithValue(ctx, clientKey{}, clientOf(r, h.proxies))
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a, stalled, err := h.answerTo(limited, w, r, v, resolution)
	gone := ctx.Err() != nil && !stalled // or has only closed its side: an answer may still be read
	if err != nil {
		if !gone {
			h.failures.Do(func() {
				h.logger(ctx).Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
			})
		}
		a = problem(site.Unavailable)
	}
	defer a.object.release()
	h.rendered(seen)
	seen.status = a.write(w, r)
	if gone {
		seen.status = statusClientGone
	}
}

// answerTo reads the body of a request, if its route has one, and finds the answer. stalled says that the
// body did not arrive in time.
func (h *Handler) answerTo(ctx context.Context, w http.ResponseWriter, r *http.Request, v *liveSite, resolution site.Resolution) (a answer, stalled bool, err error) {
	sent, err := h.readBatch(ctx, w, r, resolution)
	defer h.bodies.Release(sent.granted)
	switch {
	case err != nil:
		return answer{}, false, err
	case sent.problem != nil:
		return problem(sent.problem), sent.stalled, nil
	}
	a, err = h.answer(ctx, v, resolution, sent.users)
	if err == nil {
		markHot(r, v, resolution, a.object)
	}
	return a, false, err
}

// describes reports whether a request is for the description of the API, which the site does not hold.
func (h *Handler) describes(v *liveSite, r *http.Request) bool {
	return r.URL.Path == "/"+string(site.OpenAPIKey) && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		h.describe != nil && !v.root.Config.EFP()
}

func (h *Handler) respondDescription(w http.ResponseWriter, r *http.Request, v *liveSite, seen *outcome) {
	seen.route = site.RouteOpenAPI.Route()
	o, err := v.description()
	a := whole(seen.route, o)
	if err != nil {
		h.logger(seen.context(r.Context())).Error("description failed", "error", err)
		a = problem(site.InternalError)
	}
	seen.status = a.write(w, r)
}

// sentPath is the path as the client sent it. URL.EscapedPath is not always: if the client left a
// character unescaped that needs it, EscapedPath encodes the decoded path anew, and an encoded
// slash turns into a separator.
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

// answer finds the answer to a resolved request. users are those of its body. An error becomes a 503.
func (h *Handler) answer(ctx context.Context, v *liveSite, r site.Resolution, users []*string) (answer, error) {
	if r.Action == site.AnswerProblem {
		return problem(r.Problem), nil
	}
	r, err := h.lookedUp(ctx, v, r)
	var o *object
	if err == nil {
		o, err = h.find(ctx, v, r, users)
	}
	if err == nil && r.Fresh {
		defer o.release()
		a, err := h.refresh(ctx, v, r, o)
		if err == nil {
			a.object.pin()
		}
		return a, err
	}
	var is *problemError
	switch {
	case errors.As(err, &is):
		return absent(r, is.Problem), nil
	case errors.Is(err, storage.ErrNotFound) && r.Absent != nil:
		return absent(r, r.Absent), nil
	case errors.Is(err, storage.ErrNotFound) && r.Unknown != "":
		o, err = h.unknown(ctx, v, r)
	case errors.Is(err, storage.ErrNotFound):
		o, err = newObject([]byte(site.EmptySearch)), nil
	}
	a := whole(r.Route, o)
	if r.Fresh {
		a.cacheControl = noStore
	}
	return a, err
}

// find returns the object that answers, which the caller releases, or storage.ErrNotFound.
func (h *Handler) find(ctx context.Context, v *liveSite, r site.Resolution, users []*string) (*object, error) {
	switch r.Action {
	case site.AnswerSearch:
		return h.search(ctx, v, r.Search)
	case site.AnswerComputed:
		return h.compute(ctx, v, r, users)
	}
	if r.Route.Kept() {
		return h.cache.newest(ctx, cacheKey{version: v.version, key: r.Key})
	}
	return h.cache.get(ctx, cacheKey{v.version, r.Key, r.Action == site.AnswerWithoutTags})
}

// unknown returns the answer for an address that the graph does not know.
func (h *Handler) unknown(ctx context.Context, v *liveSite, r site.Resolution) (*object, error) {
	template, err := h.template(ctx, v, r.Unknown)
	if err != nil {
		return nil, err
	}
	return newObject(bytes.ReplaceAll(template, []byte(site.UnknownAddress), []byte(r.Address))), nil
}

// template returns an object UnknownKey. The live site keeps them: they are few and small.
func (h *Handler) template(ctx context.Context, v *liveSite, key site.Key) ([]byte, error) {
	if body, ok := v.templates.Load(key); ok {
		return body.([]byte), nil
	}
	o, err := h.cache.get(ctx, cacheKey{version: v.version, key: key})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	defer o.release()
	body := bytes.Clone(o.body)
	v.templates.Store(key, body)
	return body, nil
}

// refresh answers cache=fresh for an object that is stored.
func (h *Handler) refresh(ctx context.Context, v *liveSite, r site.Resolution, stored *object) (answer, error) {
	a := whole(r.Route, stored)
	a.cacheControl = noStore
	kind := site.Details
	if r.Route.ID == site.RouteBadges || r.Route.ID == site.RouteUserBadges {
		kind = site.Badges
	}
	if !h.refresher.refreshes(kind) {
		a.refresh = "unavailable"
		return a, nil
	}
	t, ok, err := target{v.root.Config, kind, r.TokenID}.standsFor(ctx, r.Key, func(ctx context.Context, key site.Key) ([]byte, error) {
		o, err := h.cache.get(ctx, cacheKey{version: v.version, key: key})
		if err != nil {
			return nil, err
		}
		defer o.release()
		return bytes.Clone(o.body), nil
	})
	if err != nil {
		return a, err
	}
	if !ok {
		a.refresh = "unavailable"
		return a, nil
	}
	fresh, err := h.refresher.refresh(ctx, t, h.logger(ctx),
		func(key site.Key, body []byte) *object { return h.cache.put(h.live.Load().version, key, body) }) // a new site may be live by then
	var often *tooOftenError
	switch {
	case errors.As(err, &often):
		h.metrics.refreshes.WithLabelValues(string(kind), "limited").Inc()
		a = problem(site.TooManyRefreshes)
		a.retryAfter = often.wait
		return a, nil
	case errors.Is(err, storage.ErrNotFound):
		return absent(r, site.NoSuchList), nil
	case errors.Is(err, errUpstream):
		a.refresh = "failed"
		return a, nil
	case err != nil:
		return a, err
	}
	a.object = fresh
	return a, nil
}

// absent is the answer if what was asked for does not exist.
func absent(r site.Resolution, p *site.Problem) answer {
	a := problem(p)
	if r.Fresh {
		a.cacheControl = noStore
	}
	return a
}

// whole is the answer with an object of a route.
func whole(route *site.Route, o *object) answer {
	values := routeValues[route.ID]
	return answer{status: http.StatusOK, object: o, contentType: values.contentType, cacheControl: values.cacheControl}
}

// problem is the answer with a problem. Its body is encoded once.
func problem(p *site.Problem) answer {
	if a, ok := problems[p]; ok {
		return a
	}
	return newProblem(p)
}

func newProblem(p *site.Problem) answer {
	a := answer{
		status: p.Status, object: withLength(&object{body: p.Body()}), allow: p.Allow(),
		contentType: routeValues[site.RouteError].contentType, cacheControl: []string{p.CacheControl},
	}
	if p.Status == http.StatusServiceUnavailable {
		a.retryAfter = site.RetryAfter
	}
	return a
}

// write sends the answer. It writes the map of headers by their canonical names, as http.Header.Set
// does, but with values that answers share. Nobody may change those.
func (a answer) write(w http.ResponseWriter, r *http.Request) (status int) {
	header := w.Header()
	header["Content-Type"] = a.contentType
	header["Cache-Control"] = a.cacheControl
	if a.refresh != "" {
		header.Set("X-Refresh", a.refresh)
	}
	if a.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(a.retryAfter.Seconds()))))
	}
	switch a.status {
	case http.StatusOK:
		header["Etag"] = a.object.etagValue()
		if r.Method != http.MethodPost && matches(r.Header["If-None-Match"], a.object.etag()) {
			w.WriteHeader(http.StatusNotModified)
			return http.StatusNotModified
		}
	case http.StatusMethodNotAllowed:
		header.Set("Allow", a.allow)
	}
	if len(a.object.body) >= smallBody || r.Method == http.MethodHead {
		header["Content-Length"] = a.object.lengthValue()
	}
	w.WriteHeader(a.status)
	if a.object.computed {
		defer a.object.tracker.sent.send(a.object, w)()
	}
	// Not http.ServeContent: it flushes the headers before it copies the body, which costs
	// another system call and packet, and JSON needs no ranges.
	_, _ = w.Write(a.object.body) // an error means that the client is gone
	return a.status
}

// smallBody is the size in bytes from which net/http does not buffer a body whole, and so cannot tell
// its length by itself. For smaller ones it does, which costs less than another header does.
const smallBody = 2048

// matches reports whether an If-None-Match header (RFC 9110, 13.1.2) names an entity tag. That
// header compares tags weakly.
func matches(ifNoneMatch []string, etag string) bool {
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
