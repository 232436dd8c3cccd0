package provider

import (
	"net/url"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// Shares limit the requests of nodes together whose URLs have the same key, or the same host and no
// key: providers count them together, even for several chains. The zero value is ready to use.
// Shares is safe for concurrent use.
type Shares struct {
	mu sync.Mutex
	by map[string]*share
}

// A share limits the requests of some nodes.
type share struct {
	slots   chan struct{}
	limiter *rate.Limiter
}

// shareOf returns the share for a URL. All URLs of a share have the same options.
func (s *Shares) shareOf(u *url.URL, o *Options) *share {
	id := keyOf(u)
	if id == "" {
		id = originOf(u)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]*share{}
	}
	if s.by[id] == nil {
		limit := rate.Inf
		if o.Rate > 0 {
			limit = rate.Limit(o.Rate)
		}
		s.by[id] = &share{make(chan struct{}, o.Concurrency), rate.NewLimiter(limit, 1)}
	}
	return s.by[id]
}

// shortestKey exceeds the length of other parts of URLs, such as names of networks.
const shortestKey = 20

// keyOf returns the part of a URL that is most likely its key; "" for none.
func keyOf(u *url.URL) (key string) {
	parts := strings.Split(u.Path, "/")
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	if password, ok := u.User.Password(); ok {
		parts = append(parts, password)
	}
	for _, part := range parts {
		if len(part) >= shortestKey && (len(part) > len(key) || len(part) == len(key) && part > key) {
			key = part
		}
	}
	return key
}
