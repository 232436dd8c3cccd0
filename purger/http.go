package purger

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// The placeholders of a template.
const (
	urlPlace  = "{url}"
	pathPlace = "{path}"
)

// plainHTTP is a cache that forgets a URL when it is sent the method PURGE, or all
// that begin alike when the URL ends in *. One whose template has no placeholder
// forgets everything, whatever has changed.
type plainHTTP struct {
	template string
	sites    []string // of {url}
}

func newHTTP(rest string, o Options) (service, error) {
	h := &plainHTTP{template: rest, sites: o.Sites}
	hasURL, hasPath := strings.Contains(rest, urlPlace), strings.Contains(rest, pathPlace)
	switch {
	case hasURL && hasPath:
		return nil, errors.New("the template may have {path} or {url}, and not both")
	case !hasURL && !hasPath && strings.ContainsAny(rest, "{}"):
		return nil, errors.New("the template has a placeholder that is neither {path} nor {url}")
	case hasURL && len(o.Sites) == 0:
		return nil, errNoSite
	case strings.Contains(rest, "/"+pathPlace):
		return nil, errors.New("the template has a slash before {path}, which begins with a slash itself: write http://cache{path}, not http://cache/{path}")
	}
	// A path of two slashes would be taken for a host on its way.
	_, beyond, _ := strings.Cut(rest, "://")
	beyond, _, _ = strings.Cut(beyond, "?")
	beyond, _, _ = strings.Cut(beyond, urlPlace)
	if strings.Contains(beyond, "//") {
		return nil, errors.New("the template has two slashes in its path: write one")
	}
	if _, err := parseURL(h.fill("https://site.invalid", "/path")); err != nil {
		return nil, err
	}
	return h, nil
}

// errNoSite is for services that want whole URLs.
var errNoSite = errors.New("it wants whole URLs: name the site with --purge-url")

// name leaves the template's path out: it may hold a secret.
func (h *plainHTTP) name() string {
	if strings.HasPrefix(h.template, urlPlace) {
		return string(HTTP) + ":" + urlPlace
	}
	u, _ := parseURL(h.fill("https://site.invalid", "/path")) // newHTTP has parsed it
	return string(HTTP) + ":" + u.Scheme + "://" + u.Host
}

func (h *plainHTTP) atOnce() int { return manyRequests }

// manyRequests is for services that take a URL a request.
const manyRequests = 16

// isPlain reports whether there is nothing to fill in: one URL for everything.
func (h *plainHTTP) isPlain() bool {
	return !strings.Contains(h.template, pathPlace) && !strings.Contains(h.template, urlPlace)
}

func (h *plainHTTP) cut(p Purge) []batch {
	if h.isPlain() {
		return []batch{{all: true, items: []string{"/*"}}}
	}
	paths := []string{"/*"}
	if !p.All {
		paths = nil
		for _, u := range p.Exact {
			paths = append(paths, strings.ReplaceAll(u, "*", "%2A"))
		}
		for _, w := range p.Wide {
			w = strings.ReplaceAll(w, "*", "%2A")
			if !strings.HasSuffix(w, "/") {
				paths = append(paths, w)
				w += "?"
			}
			paths = append(paths, w+"*")
		}
	}
	batches := cutAt(h.all(paths), 1)
	for i := range batches {
		batches[i].all = p.All
	}
	return batches
}

// all are the URLs of requests: where the template wants whole URLs, one for each site.
func (h *plainHTTP) all(paths []string) []string {
	sites := h.sites
	if strings.Contains(h.template, pathPlace) {
		sites = []string{""}
	}
	var all []string
	for _, s := range sites {
		for _, path := range paths {
			all = append(all, s+path)
		}
	}
	return all
}

// fill puts a path of a site, or its URL, in the template's place. In a query it is
// encoded as a value of one.
func (h *plainHTTP) fill(site, path string) string {
	if h.isPlain() {
		return h.template
	}
	place, value := pathPlace, path
	if strings.Contains(h.template, urlPlace) {
		place, value = urlPlace, site+path
	}
	before, after, _ := strings.Cut(h.template, place)
	if strings.Contains(before, "?") {
		value = url.QueryEscape(value)
	}
	return before + value + after
}

func (h *plainHTTP) request(ctx context.Context, b batch) (*http.Request, error) {
	text := h.fill("", b.items[0])
	r, err := http.NewRequestWithContext(ctx, "PURGE", text, nil)
	if err != nil {
		return nil, errNotURL
	}
	// The bytes as they are: net/url would spell a name that browsers send in a third way.
	_, rest, _ := strings.Cut(text, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 && rest[i] == '/' {
		r.URL.Opaque, _, _ = strings.Cut(rest[i:], "?")
		if proxy, err := http.ProxyFromEnvironment(r); err == nil && proxy != nil && r.URL.Scheme == "http" {
			// A proxy wants the whole URL, which net/http makes only of what is not opaque.
			r.URL.Opaque = "//" + r.URL.Host + r.URL.Opaque
		}
	}
	return r, nil
}

// eachAlone is because not every such cache knows how to forget everything.
func (h *plainHTTP) eachAlone() {}

// judge takes it as good that there was nothing to forget; nginx's module says 412. Of
// everything there is always something: that is a wrong URL.
func (h *plainHTTP) judge(status int, _ []byte) verdict {
	if h.isPlain() {
		return byStatus
	}
	if status == http.StatusNotFound || status == http.StatusPreconditionFailed {
		return nothing
	}
	return byStatus
}
