package server

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/tags"
)

// A response is an answer before it is written.
type response struct {
	status       int
	object       *cache.Object
	contentType  []string      // header value, shared by answers
	cacheControl []string      // header value, shared by answers
	refresh      string        // X-Refresh; "" for none
	retryAfter   time.Duration // Retry-After, in whole seconds; 0 for none
	allow        string        // Allow of a 405
	location     string        // Location of a 302
	ranges       bool          // the client may ask for a part
	stream       *fetch.Stream // the body, unless object has it; mostly nil
}

// absent returns the answer for a missing object: the route's own empty answer if it has one, else
// p.
func absent(r site.Resolution, p *site.Problem) response {
	a := problem(p)
	if r.Fresh {
		a.cacheControl = noStore
	}
	return a
}

// whole returns the answer with an object of a route.
func whole(route *site.Route, o *cache.Object) response {
	values := routeValues[route.ID]
	return response{status: http.StatusOK, object: o, contentType: values.contentType, cacheControl: values.cacheControl, ranges: route.Ranges}
}

// redirect returns the answer that redirects to the URL in an object. It releases the object.
func redirect(route *site.Route, to *cache.Object) response {
	defer to.Release()
	a := whole(route, cache.WithoutTag(nil))
	a.status, a.location = http.StatusFound, string(to.Body)
	return a
}

// problem returns the answer with a problem. Its body is encoded once.
func problem(p *site.Problem) response {
	if a, ok := problems[p]; ok {
		return a
	}
	return newProblem(p)
}

func newProblem(p *site.Problem) response {
	a := response{
		status: p.Status, object: cache.WithoutTag(p.Body()), allow: p.Allow(),
		contentType: routeValues[routes.Error].contentType, cacheControl: []string{p.CacheControl},
	}
	if p.Status == http.StatusServiceUnavailable {
		a.retryAfter = site.RetryAfter
	}
	return a
}

// write sends the answer. Answers share their header values, which nobody may change.
func (a response) write(w http.ResponseWriter, r *http.Request) (status int) {
	header := w.Header()
	if a.location == "" {
		header["Content-Type"] = a.contentType
	} else {
		header.Set("Location", a.location)
	}
	header["Cache-Control"] = a.cacheControl
	if a.refresh != "" {
		header.Set("X-Refresh", a.refresh)
	}
	if a.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(a.retryAfter.Seconds()))))
	}
	switch a.status {
	case http.StatusOK:
		header["Etag"] = a.object.ETagValue()
		if a.ranges {
			return a.writeRange(w, r)
		}
		if r.Method != http.MethodPost && matches(r.Header["If-None-Match"], a.object.ETag()) {
			w.WriteHeader(http.StatusNotModified)
			return http.StatusNotModified
		}
	case http.StatusMethodNotAllowed:
		header.Set("Allow", a.allow)
	}
	if len(a.object.Body) >= smallBody || r.Method == http.MethodHead {
		header["Content-Length"] = a.object.LengthValue()
	}
	w.WriteHeader(a.status)
	if a.object.IsComputed() {
		defer a.object.Sending(w)()
	}
	// http.ServeContent would flush the headers first, which costs another system call and packet.
	_, _ = w.Write(a.object.Body) // an error means that the client is gone
	return a.status
}

// write sends an answer with the Cache-Control of the options.
func (s *shared) write(a response, w http.ResponseWriter, r *http.Request) (status int) {
	instead := s.lifetime
	if a.status >= http.StatusBadRequest {
		instead = s.problemLifetime
	}
	if instead != nil && keptForAWhile(a.cacheControl[0]) {
		a.cacheControl = instead
	}
	return a.write(w, r)
}

// keptForAWhile reports whether this Cache-Control lets caches keep an answer for a limited time.
func keptForAWhile(cacheControl string) bool {
	return strings.HasPrefix(cacheControl, "public,") && !strings.HasSuffix(cacheControl, "immutable")
}

// addTags adds the cache tags that the same object has in the bucket, so that one purge finds both.
func addTags(w http.ResponseWriter, v *liveSite, r site.Resolution) {
	for _, header := range tags.Headers(v.Root.Config, r) {
		w.Header().Set(header.Name, header.Value)
	}
}

// smallBody is the body size from which net/http no longer computes Content-Length itself. Below,
// leaving it to net/http costs less than setting another header.
const smallBody = 2048

// matches reports whether an If-None-Match header (RFC 9110, 13.1.2) names an entity tag, by weak
// comparison.
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
