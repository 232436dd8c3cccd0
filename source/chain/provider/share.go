package provider

import (
	"net/url"
	"sync"

	"golang.org/x/time/rate"
)

// Shares limit the requests of nodes with the same host together, even for several chains. The zero
// value is ready to use. Shares is safe for concurrent use.
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
	id := originOf(u)
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
