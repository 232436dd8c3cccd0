package server

import (
	"net/http"
	"strings"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/current"
	"github.com/followpress/followpress/server/internal/observe"
	"github.com/followpress/followpress/server/internal/reply"
	"github.com/followpress/followpress/site"
)

// Most requests ask for a cached object by its own path. This file answers them without resolving
// the path and without a context or new header values.

// respondHot answers a request if the cache has an object marked as the answer to its path, and the
// object is not due to be read again. It reports whether it answered.
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
