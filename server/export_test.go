package server

import (
	"context"
	"runtime"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/followpress/followpress/site"
)

// SetClock gives the cache a clock of the test's.
func (o *Options) SetClock(c otter.Clock) { o.clock = c }

// SetUpstreamTimeout makes a refresh give up sooner.
func (o *RefreshOptions) SetUpstreamTimeout(d time.Duration) { o.upstreamTimeout = d }

// RefreshesWaiting is the number of requests that wait for a refresh.
func (h *Handler) RefreshesWaiting() int64 { return h.refresher.waiting.taken.Load() }

// RequestsWaiting is the number of requests that wait for the store or for a refresh.
func (h *Handler) RequestsWaiting() int64 { return h.cache.waiting.taken.Load() }

// PollRoot is what Watch does at each poll.
func (h *Handler) PollRoot(ctx context.Context) { h.pollRoot(ctx) }

// Reapply is what Watch does in the background once it serves a new site.
func (h *Handler) Reapply(ctx context.Context) { h.reapply(ctx, h.live.Load()) }

// InFlight is the number of bytes that are held beside the cache.
func (h *Handler) InFlight() int64 { return h.inFlight() }

// Version counts the sites that were served.
func (h *Handler) Version() uint64 { return uint64(h.live.Load().version) }

// Forget empties the cache, so that the next answers are made as the first ones were.
func (h *Handler) Forget() { h.cache.clear() }

// IsHot reports whether the next request for a path is answered without a resolution.
func (h *Handler) IsHot(path string) bool {
	o, _ := h.cache.objects.GetIfPresent(cacheKey{version: h.live.Load().version, key: site.Key(path[1:])})
	return o != nil && o.route.Load() != nil
}

// HoldScans keeps everybody from scanning until free is called.
func (h *Handler) HoldScans() (free func()) {
	all := int64(max(1, runtime.GOMAXPROCS(0)/2))
	_ = h.scanning.Acquire(context.Background(), all)
	return func() { h.scanning.Release(all) }
}
