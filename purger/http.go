package purger

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/followpress/followpress/internal/secret"
)

const pathPlaceholder = "{path}"

// plainHTTP is a cache that purges a URL on the method PURGE, or all URLs with a prefix if the URL
// ends in *. A template without a placeholder purges everything with each request.
type plainHTTP struct{ template string }

func newHTTP(rest string, _ Options, _ *secret.Hider) (service, error) {
	h := &plainHTTP{rest}
	switch {
	case strings.ContainsAny(strings.Replace(rest, pathPlaceholder, "", 1), "{}"):
		return service{}, errors.New("the template has braces that are not {path}, or {path} twice")
	case strings.Contains(rest, "/"+pathPlaceholder):
		return service{}, errors.New("the template has a slash before {path}, which begins with a slash itself: write http://cache{path}, not http://cache/{path}")
	}
	// Two slashes in a path would be mistaken for the beginning of a host.
	_, beyond, _ := strings.Cut(rest, "://")
	beyond, _, _ = strings.Cut(beyond, "?")
	if strings.Contains(beyond, "//") {
		return service{}, errors.New("the template has two slashes in its path: write one")
	}
	u, err := parseURL(h.fill("/path"))
	if err != nil {
		return service{}, err
	}
	// The name leaves out the path, which may contain a secret.
	name := string(HTTP) + ":" + u.Scheme + "://" + u.Host
	// Independent, because not every such cache can purge everything.
	return service{name: name, inFlight: defaultInFlight, independent: true, cut: h.cut, request: h.request, judge: h.judge}, nil
}

// errNoSite is for services that need whole URLs.
var errNoSite = errors.New("it needs whole URLs: name the site with --purge-url")

// defaultInFlight is for services that take one URL per request.
const defaultInFlight = 16

// isConstant reports whether the template has no placeholder: one URL purges everything.
func (h *plainHTTP) isConstant() bool {
	return !strings.Contains(h.template, pathPlaceholder)
}

func (h *plainHTTP) cut(p Purge) []batch {
	if h.isConstant() {
		return []batch{{all: true, items: []string{"/*"}}}
	}
	paths := []string{"/*"}
	if !p.All {
		paths, p = nil, p.withoutEach()
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
	batches := cutAt(paths, 1)
	for i := range batches {
		batches[i].all = p.All
	}
	return batches
}

// fill replaces the placeholder of the template. In a query, the path is encoded.
func (h *plainHTTP) fill(path string) string {
	before, after, found := strings.Cut(h.template, pathPlaceholder)
	if !found {
		return before
	}
	if strings.Contains(before, "?") {
		path = url.QueryEscape(path)
	}
	return before + path + after
}

func (h *plainHTTP) request(ctx context.Context, b batch) (*http.Request, error) {
	text := h.fill(b.items[0])
	r, err := http.NewRequestWithContext(ctx, "PURGE", text, nil)
	if err != nil {
		return nil, errNotURL
	}
	// Keep the bytes as they are: net/url would encode some names differently than browsers.
	_, rest, _ := strings.Cut(text, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 && rest[i] == '/' {
		r.URL.Opaque, _, _ = strings.Cut(rest[i:], "?")
		if proxy, err := http.ProxyFromEnvironment(r); err == nil && proxy != nil && r.URL.Scheme == "http" {
			// A proxy needs the whole URL, which net/http does not add to an opaque one.
			r.URL.Opaque = "//" + r.URL.Host + r.URL.Opaque
		}
	}
	return r, nil
}

// judge accepts 404, and 412 of nginx's module: the cache had nothing to purge. For a template without a placeholder,
// both mean a wrong URL.
func (h *plainHTTP) judge(status int, _ []byte) verdict {
	if !h.isConstant() && (status == http.StatusNotFound || status == http.StatusPreconditionFailed) {
		return nothing
	}
	return byStatus
}
