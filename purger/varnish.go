package purger

import (
	"context"
	"net/http"
	"regexp"
	"strings"
)

// maxBanBytes keeps the header, and what a VCL makes of it, well below Varnish's limit
// of 8,192 bytes for a header (http_req_hdr_len).
const maxBanBytes = 6_000

// banHeader contains a regular expression for URLs (path and query, if any) in the normal form of
// the VCL.
const banHeader = "X-Ban-Url"

// varnish is a server whose VCL accepts the method BAN. A lookup compares an object with all
// bans since it was stored, so many paths are joined into few bans.
type varnish struct{ url string }

func newVarnish(rest string, _ Options) (service, error) {
	u, err := parseURL(rest)
	if err != nil {
		return service{}, err
	}
	if u.Path == "" {
		u.Path = "/"
	}
	v := &varnish{u.String()}
	// The name leaves out path and query, which may contain a secret.
	return service{name: string(Varnish) + ":" + u.Scheme + "://" + u.Host, inFlight: 1, cut: cutBans, request: v.request}, nil
}

func cutBans(p Purge) []batch {
	if p.All {
		return []batch{{all: true, items: []string{".*"}}}
	}
	var batches []batch
	var line []string
	length := 0
	flush := func() {
		if len(line) > 0 {
			batches = append(batches, batch{items: line})
			line, length = nil, 0
		}
	}
	add := func(text, path string) {
		if !strings.HasSuffix(path, "/") {
			text += `(?:\?|$)`
		}
		if length+len(text) > maxBanBytes {
			flush()
		}
		line, length = append(line, text), length+len(text)+1
	}
	for _, path := range p.paths() {
		add(regexp.QuoteMeta(path), path)
	}
	for _, pattern := range p.Each {
		add(expression(pattern), pattern)
	}
	flush()
	return batches
}

func (v *varnish) request(ctx context.Context, b batch) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, "BAN", v.url, nil)
	if err != nil {
		return nil, err
	}
	expression := ".*"
	if !b.all {
		expression = "^(?:" + strings.Join(b.items, "|") + ")"
	}
	r.Header.Set(banHeader, expression)
	return r, nil
}
