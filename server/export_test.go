package server

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"
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

// InFlight is the number of bytes that are held beside the cache.
func (h *Handler) InFlight() int64 { return h.inFlight() }

// Version counts the sites that were served.
func (h *Handler) Version() uint64 { return uint64(h.live.Load().version) }
