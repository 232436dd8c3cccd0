// Package reply writes answers: objects, parts of objects, problems and redirects.
package reply

import (
	"math"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// A Reply is an answer before it is written. Replies share header values, which nobody may change.
type Reply struct {
	Status       int
	Object       *cache.Object
	CacheControl []string
	Refresh      string        // X-Refresh; "" for none
	RetryAfter   time.Duration // Retry-After, in whole seconds; 0 for none
	Stream       *fetch.Stream // the body, unless Object has it; mostly nil

	contentType []string
	allow       string // Allow of a 405
	location    string // Location of a 302
	ranges      bool   // the client may ask for a part
}

// NoStore is the Cache-Control of answers that no cache may keep.
var NoStore = []string{site.NoStore}

var routeValues = func() (values []struct{ contentType, cacheControl []string }) {
	for _, r := range site.AllFeatures().Routes() { // ordered by ID
		values = append(values, struct{ contentType, cacheControl []string }{[]string{r.ContentType}, []string{r.CacheControl}})
	}
	return values
}()

// Whole returns the answer with an object of a route.
func Whole(route *site.Route, o *cache.Object) Reply {
	values := routeValues[route.ID]
	return Reply{Status: http.StatusOK, Object: o, contentType: values.contentType, CacheControl: values.cacheControl, ranges: route.Ranges}
}

// Streamed returns the answer with an object of a route that is read from the store as it is sent.
func Streamed(route *site.Route, stream *fetch.Stream) Reply {
	a := Whole(route, cache.Elsewhere(stream.ETag))
	a.Stream = stream
	return a
}

// Redirect returns the answer that redirects to the URL in an object. It releases the object.
func Redirect(route *site.Route, to *cache.Object) Reply {
	defer to.Release()
	a := Whole(route, cache.WithoutTag(nil))
	a.Status, a.location = http.StatusFound, string(to.Body)
	return a
}

// Altered is the problem for objects that a checked store (package checked) rejects. Only servers
// answer with it, so no site has an object for it.
var Altered = &site.Problem{Name: "altered", Status: http.StatusBadGateway, CacheControl: site.NoStore,
	Detail: "The stored data is not what its publisher has signed, so it is not shown."}

var problems = func() map[*site.Problem]Reply {
	all := map[*site.Problem]Reply{Altered: newProblem(Altered)}
	for _, p := range (site.Config{API: site.APIEFP}).Problems() {
		all[p] = newProblem(p)
	}
	return all
}()

// Problem returns the answer with a problem. Its body is encoded once.
func Problem(p *site.Problem) Reply {
	if a, ok := problems[p]; ok {
		return a
	}
	return newProblem(p)
}

func newProblem(p *site.Problem) Reply {
	a := Reply{
		Status: p.Status, Object: cache.WithoutTag(p.Body()), allow: p.Allow(),
		contentType: routeValues[routes.Error].contentType, CacheControl: []string{p.CacheControl},
	}
	if p.Status == http.StatusServiceUnavailable {
		a.RetryAfter = site.RetryAfter
	}
	return a
}

// WithPage returns the answer with a web page as its body.
func (a Reply) WithPage(body []byte) Reply {
	a.Object, a.contentType, a.CacheControl = cache.WithoutTag(body), routeValues[routes.Index].contentType, NoStore
	return a
}

// A Writer writes answers. It is safe for concurrent use.
type Writer struct{ lifetime, problemLifetime []string }

// NewWriter returns a Writer that replaces the Cache-Control of answers and problems that caches may
// keep for a while, unless the new value is "".
func NewWriter(cacheControl, problemCacheControl string) (to Writer) {
	if cacheControl != "" {
		to.lifetime = []string{cacheControl}
	}
	if problemCacheControl != "" {
		to.problemLifetime = []string{problemCacheControl}
	}
	return to
}

// Write sends an answer and returns its status.
func (to Writer) Write(a Reply, w http.ResponseWriter, r *http.Request) (status int) {
	header := w.Header()
	if a.location == "" {
		header["Content-Type"] = a.contentType
	} else {
		header.Set("Location", a.location)
	}
	header["Cache-Control"] = to.cacheControl(&a)
	if a.Refresh != "" {
		header.Set("X-Refresh", a.Refresh)
	}
	if a.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(a.RetryAfter.Seconds()))))
	}
	switch a.Status {
	case http.StatusOK:
		header["Etag"] = a.Object.ETagValue()
		if a.ranges {
			return a.writeRange(w, r)
		}
		if r.Method != http.MethodPost && matches(r.Header["If-None-Match"], a.Object.ETag()) {
			w.WriteHeader(http.StatusNotModified)
			return http.StatusNotModified
		}
	case http.StatusMethodNotAllowed:
		header.Set("Allow", a.allow)
	}
	if len(a.Object.Body) >= smallBody || r.Method == http.MethodHead {
		header["Content-Length"] = a.Object.LengthValue()
	}
	w.WriteHeader(a.Status)
	if a.Object.IsComputed() {
		defer a.Object.Sending(w)()
	}
	// http.ServeContent would flush the headers first, which costs another system call and packet.
	_, _ = w.Write(a.Object.Body) // an error means that the client is gone
	return a.Status
}

// cacheControl returns the Cache-Control of an answer. Only values that let caches keep an answer
// for a limited time are replaced.
func (to Writer) cacheControl(a *Reply) []string {
	instead := to.lifetime
	if a.Status >= http.StatusBadRequest {
		instead = to.problemLifetime
	}
	if own := a.CacheControl[0]; instead == nil || !strings.HasPrefix(own, "public,") || strings.HasSuffix(own, "immutable") {
		return a.CacheControl
	}
	return instead
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

// everyAnswer has the headers of every answer, by their canonical names.
var everyAnswer = func() (all []struct {
	name   string
	values []string
}) {
	for _, header := range site.EveryHeader() {
		all = append(all, struct {
			name   string
			values []string
		}{textproto.CanonicalMIMEHeaderKey(header.Name), []string{header.Value}})
	}
	return all
}()

// SetHeaders sets the headers that every answer has.
func SetHeaders(header http.Header) {
	for i := range everyAnswer {
		header[everyAnswer[i].name] = everyAnswer[i].values
	}
}

// ProblemResponse returns an answer outside a handler, with all headers of a problem.
func ProblemResponse(p *site.Problem) (http.Header, []byte) {
	a := newProblem(p)
	header := http.Header{"Cache-Control": a.CacheControl, "Content-Type": a.contentType, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	SetHeaders(header)
	return header, a.Object.Body
}
