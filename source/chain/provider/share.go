package provider

import (
	"net/url"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// Shares are the requests that nodes have together because their URLs have the same key, or the
// same host and no key: providers count them together, also those for several chains. The zero
// value is ready to use, also from many goroutines.
type Shares struct {
	mu sync.Mutex
	by map[string]*share
}

// A share bounds the requests of some nodes.
type share struct {
	slots   chan struct{}
	limiter *rate.Limiter
}

// of is the share of a URL. All that get one have the same options of requests.
func (s *Shares) of(u *url.URL, o *Options) *share {
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

// shortestKey is longer than the other parts of URLs, such as the names of networks.
const shortestKey = 20

// keyOf is the part of a URL that is most likely its key; "" if none is.
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
