package server

import (
	"context"
	"sync"
	"time"

	"github.com/followpress/followpress/server/internal/current"
	"github.com/followpress/followpress/server/internal/fresh"
	"github.com/followpress/followpress/site"
)

// Root returns the root of the live site; nil until one was read. The caller must not change it.
func (h *Handler) Root() *site.Root {
	if v := h.current.Site(); v != nil {
		return v.Root
	}
	return nil
}

// Ready reports whether the handler has a site to serve and Drain was not called.
func (h *Handler) Ready() bool { return h.current.Site() != nil && !h.draining.Load() }

// Drain makes Ready report false, so that a load balancer sends requests elsewhere. The handler
// still answers requests.
func (h *Handler) Drain() { h.draining.Store(true) }

// asOf returns the time of the snapshot of the live site; zero if there is none yet.
func (h *Handler) asOf() (asOf time.Time) {
	if root := h.Root(); root != nil {
		asOf, _ = time.Parse(time.RFC3339, root.AsOf) // ParseRoot has validated it
	}
	return asOf
}

// stale reports whether the site is older than Options.MaxAge, or dated in the future.
func (h *Handler) stale() bool {
	asOf := h.asOf()
	age := time.Since(asOf)
	return !asOf.IsZero() && (age < -site.MaxAhead || h.options.MaxAge > 0 && age > h.options.MaxAge)
}

// tellStale logs when the site becomes stale, and when a newer one replaces it. was is the previous
// result of tellStale.
func (h *Handler) tellStale(was bool) bool {
	is := h.stale()
	switch {
	case is && !was:
		h.log.Warn("the site is older than --max-age or dated in the future; check why no newer site was published", "as_of", h.Root().AsOf, "max_age", h.options.MaxAge.String())
	case was && !is:
		h.log.Info("the site is no longer stale", "as_of", h.Root().AsOf)
	}
	return is
}

// Watch reads the root every Options.Poll to notice a new site, warns once the site is older than
// Options.MaxAge, and reapplies refreshes that a publish overwrote. It returns when ctx ends and
// its background work is done. Only one call may run at a time.
func (h *Handler) Watch(ctx context.Context) {
	var refreshes sync.WaitGroup
	defer refreshes.Wait()
	defer h.Wait()
	var seen *current.Site // the last site whose refreshes were reapplied
	var changed <-chan struct{}
	if store, ok := h.fetcher.Store.(interface{ Changed() <-chan struct{} }); ok { // the store may notice a new site first
		changed = store.Changed()
	}
	stale := false
	for {
		stale = h.tellStale(stale)
		v, wait := h.current.Site(), h.options.Poll
		if v == nil { // without a root, every answer is a 503
			wait = min(wait, time.Second)
		} else if h.refresher != nil && !v.Same(seen) {
			seen = v
			refreshes.Go(func() { h.reapply(ctx, v) })
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case <-changed:
		}
		h.pollRoot(ctx)
	}
}

func (h *Handler) pollRoot(ctx context.Context) {
	was := h.current.Site()
	err := h.current.Read(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		h.log.Warn("cannot read the root, serving the last known site", "error", err)
	} else if is := h.current.Site(); !is.Same(was) {
		h.log.Info("serving a new site", "as_of", is.Root.AsOf, "objects", is.Root.Counts.Objects)
	}
}

// reapply restores refreshes that a publish overwrote, with a few retries. The generator merges
// what still fails into the next site.
func (h *Handler) reapply(ctx context.Context, v *current.Site) {
	for try := 1; ; try++ {
		done, err := h.refresher.Reapply(ctx, v.Root, h.keep(v))
		if done > 0 {
			h.log.Info("reapplied refreshes to a new site", "objects", done)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		h.log.Warn("cannot reapply some refreshes", "error", err, "try", try)
		if try == fresh.Tries {
			return
		}
		select {
		case <-time.After(h.options.Poll):
		case <-ctx.Done():
			return
		}
	}
}

// Restore puts refreshed data into the objects that show it, where the data is newer. keys, below
// site.RefreshPrefix, name entries that refreshes kept in the store. One failure does not stop the
// others.
func (h *Handler) Restore(ctx context.Context, keys []site.Key) error {
	if h.refresher == nil {
		return nil
	}
	v := h.current.Site()
	_, err := h.refresher.ReapplyKept(ctx, v.Root, keys, h.keep(v))
	return err
}

// keep returns a function that caches objects just written to a site.
func (h *Handler) keep(v *current.Site) func(key site.Key, body []byte) {
	return func(key site.Key, body []byte) { h.cache.Put(v.Version, key, body) }
}

// Wait waits for running refreshes. No request may start one while Wait runs.
func (h *Handler) Wait() {
	if h.refresher != nil {
		h.refresher.Wait()
	}
}
