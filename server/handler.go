package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Options say how a handler works. The zero value of a field means its default.
type Options struct {
	Log        *slog.Logger  // hears of failures; slog.Default()
	CacheBytes uint64        // of objects kept in memory; 32 MiB
	Poll       time.Duration // how soon a new site in the store is noticed; 1 s
}

const (
	defaultCacheBytes = 32 << 20
	defaultPoll       = time.Second

	// retryAfterSeconds is when a client may ask again after a 503 or a 429.
	retryAfterSeconds = 5
)

// A Handler answers the requests of the API from a store.
type Handler struct {
	store Store
	cache *cache
	log   *slog.Logger
	poll  time.Duration

	polling sync.Mutex // held while the root is read again
	view    atomic.Pointer[view]
}

// A view is what the handler knows of the site that is served.
type view struct {
	root    *site.Root
	version version
	checked time.Time
}

// New makes a handler. It reads the root of the site and fails if there is none.
func New(ctx context.Context, store Store, o Options) (*Handler, error) {
	h := &Handler{store: store, log: o.Log, poll: o.Poll}
	if h.log == nil {
		h.log = slog.Default()
	}
	if h.poll == 0 {
		h.poll = defaultPoll
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	root, err := readRoot(ctx, store)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("there is no site: it has no %s", site.RootKey)
	} else if err != nil {
		return nil, err
	}
	h.view.Store(&view{root: root, checked: time.Now()})
	h.cache, err = newCache(store, o.CacheBytes)
	return h, err
}

func readRoot(ctx context.Context, store Store) (*site.Root, error) {
	body, err := store.Get(ctx, site.RootKey)
	if err != nil {
		return nil, err
	}
	root, err := site.ParseRoot(body)
	return &root, err
}

// Root is the root of the site that is served.
func (h *Handler) Root(ctx context.Context) *site.Root { return h.current(ctx).root }

// current is the view of the site, as old as Options.Poll at most. While one
// request reads the root again, others go on with the view that is there.
func (h *Handler) current(ctx context.Context) *view {
	v := h.view.Load()
	if time.Since(v.checked) < h.poll || !h.polling.TryLock() {
		return v
	}
	defer h.polling.Unlock()
	return h.check(ctx)
}

// reload is the view of the site that is there now.
func (h *Handler) reload(ctx context.Context) *view {
	h.polling.Lock()
	defer h.polling.Unlock()
	return h.check(ctx)
}

// check reads the root again. h.polling must be held.
func (h *Handler) check(ctx context.Context) *view {
	v := h.view.Load()
	next := &view{v.root, v.version, time.Now()}
	root, err := readRoot(ctx, h.store)
	switch {
	case err != nil:
		h.log.Warn("the root cannot be read; the last one stays in use", "error", err)
	case !root.Equal(v.root):
		next.root, next.version = root, v.version+1
	}
	h.view.Store(next)
	return next
}

// An answer is what goes out.
type answer struct {
	status       int
	object       *object
	contentType  string
	cacheControl string
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.recover(w, r)
	v := h.current(r.Context())
	resolution := v.root.Config.Resolve(r.Method, sentPath(r.URL), r.URL.RawQuery)

	header := w.Header()
	maps.Copy(header, everyAnswer)
	if resolution.Action == site.AnswerPreflight {
		preflight(w)
		return
	}
	a, err := h.answer(r.Context(), v, resolution)
	if r.Context().Err() != nil {
		return // the client is gone: no fault, and nobody to answer
	}
	if err != nil {
		h.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		a = problem(site.Unavailable)
	}
	if resolution.Fresh {
		header.Set("X-Refresh", "unavailable") // no source of fresh data is configured
		a.cacheControl = site.NoStore
	}
	a.write(w, r)
}

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
var everyAnswer = http.Header{
	"Access-Control-Allow-Origin":   {"*"},
	"Access-Control-Expose-Headers": {"ETag, X-Refresh, Retry-After"},
	"X-Content-Type-Options":        {"nosniff"},
}

// recover keeps one bad request from taking others down.
func (h *Handler) recover(w http.ResponseWriter, r *http.Request) {
	fault := recover()
	if fault == nil {
		return
	}
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(fault) // net/http's own way to end a connection
	}
	h.log.Error("panic", "method", r.Method, "path", r.URL.Path, "fault", fault, "stack", string(debug.Stack()))
	problem(site.InternalError).write(w, r)
}

func preflight(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Allow", site.AllowedMethods)
	header.Set("Access-Control-Allow-Methods", site.AllowedMethods)
	header.Set("Access-Control-Allow-Headers", "*")
	header.Set("Access-Control-Max-Age", "86400")
	header.Set("Cache-Control", "public, max-age=86400")
	w.WriteHeader(http.StatusNoContent)
}

// answer finds the answer to a request that was understood, or that was not.
func (h *Handler) answer(ctx context.Context, v *view, r site.Resolution) (answer, error) {
	var o *object
	var err error
	switch r.Action {
	case site.AnswerProblem:
		return problem(r.Problem), nil
	case site.AnswerSearch:
		o, err = h.search(ctx, v, r.Search)
	case site.AnswerWithoutTags:
		if o, err = h.cache.get(ctx, v.version, r.Key); err == nil {
			o = newObject(site.AppendWithoutTags(make([]byte, 0, len(o.body)), o.body))
		}
	default:
		o, err = h.cache.get(ctx, v.version, r.Key)
	}
	if errors.Is(err, storage.ErrNotFound) {
		if r.Absent != nil {
			return problem(r.Absent), nil
		}
		o, err = newObject([]byte(site.EmptySearch)), nil
	}
	return answer{http.StatusOK, o, r.Route.ContentType, r.Route.CacheControl}, err
}

func problem(p *site.Problem) answer {
	return answer{p.Status, &object{body: p.Body()}, site.RouteError.Route().ContentType, p.CacheControl}
}

func (a answer) write(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("Cache-Control", a.cacheControl)
	switch a.status {
	case http.StatusOK:
		header.Set("ETag", a.object.etag)
		if holds(r.Header["If-None-Match"], a.object.etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	case http.StatusMethodNotAllowed:
		header.Set("Allow", site.AllowedMethods)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		header.Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	}
	header.Set("Content-Length", strconv.Itoa(len(a.object.body)))
	w.WriteHeader(a.status)
	// Not http.ServeContent: it flushes the headers before it copies the body, a
	// system call and a packet more; nobody asks for a range of JSON.
	_, _ = w.Write(a.object.body) // the client may be gone: then nobody is left to tell
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
