package server

import (
	"context"

	"github.com/maypok86/otter/v2"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/listen"
	"github.com/followpress/followpress/site"
)

// Limits are for ServeWithin.
type Limits = listen.Limits

// ServeWithin is Serve with other limits.
var ServeWithin = listen.Serve

// SetClock gives the cache a clock of the test's.
func (o *Options) SetClock(c otter.Clock) { o.clock = c }

// RefreshesWaiting returns the number of requests that wait for a refresh.
func (h *Handler) RefreshesWaiting() int64 { return h.gates.fresh.Waiting.Taken() }

// RequestsWaiting returns the number of requests that wait for the store or for a refresh.
func (h *Handler) RequestsWaiting() int64 { return h.gates.waiting.Taken() }

// PollRoot does one poll of Watch.
func (h *Handler) PollRoot(ctx context.Context) { h.pollRoot(ctx) }

// Reapply reapplies refreshes, as Watch does for a new site.
func (h *Handler) Reapply(ctx context.Context) { h.reapply(ctx, h.current.Site()) }

// InFlight returns the number of bytes held outside the cache.
func (h *Handler) InFlight() int64 { return h.inFlight() }

// Version counts the sites that were served.
func (h *Handler) Version() uint64 { return uint64(h.current.Site().Version) }

// Forget empties the cache, so that the next answers are made as the first ones were.
func (h *Handler) Forget() { h.cache.Clear() }

// IsHot reports whether the next request for a path is answered without a resolution.
func (h *Handler) IsHot(path string) bool {
	o := h.cache.Peek(cache.Key{Version: h.current.Site().Version, Key: site.Key(path[1:])})
	if o == nil {
		return false
	}
	defer o.Release()
	return o.Route.Load() != nil
}

// HoldScans keeps everybody from scanning until free is called.
func (h *Handler) HoldScans() (free func()) {
	scanning := h.gates.answer.Scanning
	_ = scanning.Take(context.Background(), scanning.Size)
	return func() { scanning.Give(scanning.Size) }
}
