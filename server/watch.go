package server

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/followpress/followpress/server/internal/answer"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/fresh"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/settings"
	"github.com/followpress/followpress/storage"
)

// A liveSite is the site being served, as last read.
type liveSite struct {
	answer.Site
	info    storage.Info // describes the root; zero if the store does not know
	settled bool         // every later root has another info
	checked time.Time    // when the root was last read

	templates *sync.Map // objects for addresses not in the graph: from site.Key to []byte
	// description makes the OpenAPI document of a site without OpenAPIKey, once.
	description func() (*cache.Object, error)
	settings    []string // the value of settings.Header
}

// sameSite reports whether the root was not replaced since was, as far as the store can tell.
func (v *liveSite) sameSite(was *liveSite) bool {
	return was != nil && v.Root.Equal(was.Root) && (fetch.SamePut(v.info, was.info) || v.info.ETag == "")
}

// Root returns the root of the live site; nil until one was read. The caller must not change it.
func (h *Handler) Root() *site.Root {
	if v := h.live.Load(); v != nil {
		return v.Root
	}
	return nil
}

// Ready reports whether the handler has a site to serve and Drain was not called.
func (h *Handler) Ready() bool { return h.live.Load() != nil && !h.draining.Load() }

// Drain makes Ready report false, so that a load balancer sends requests elsewhere. The handler
// still answers requests.
func (h *Handler) Drain() { h.draining.Store(true) }

// stale reports whether the site is older than Options.MaxAge, or dated in the future.
func (h *Handler) stale() bool {
	root := h.Root()
	if root == nil {
		return false
	}
	asOf, _ := time.Parse(time.RFC3339, root.AsOf) // ParseRoot has validated it
	age := time.Since(asOf)
	return age < -site.MaxAhead || h.options.MaxAge > 0 && age > h.options.MaxAge
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
	if h.refresher != nil {
		defer h.refresher.Wait()
	}
	var seen *liveSite // the last site whose refreshes were reapplied
	var changed <-chan struct{}
	if store, ok := h.fetcher.Store.(interface{ Changed() <-chan struct{} }); ok { // the store may notice a new site first
		changed = store.Changed()
	}
	stale := false
	for {
		stale = h.tellStale(stale)
		if v := h.live.Load(); v != nil && h.refresher != nil && !v.sameSite(seen) {
			seen = v
			refreshes.Go(func() { h.reapply(ctx, v) })
		}
		wait := h.poll
		if h.live.Load() == nil { // without a root, every answer is a 503
			wait = min(wait, time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			h.pollRoot(ctx)
		case <-changed:
			h.pollRoot(ctx)
		}
	}
}

func (h *Handler) pollRoot(ctx context.Context) {
	h.polling.Lock()
	defer h.polling.Unlock()
	was := h.live.Load()
	err := h.readRoot(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		h.log.Warn("cannot read the root, serving the last known site", "error", err)
	} else if is := h.live.Load(); !is.sameSite(was) {
		h.log.Info("serving a new site", "as_of", is.Root.AsOf, "objects", is.Root.Counts.Objects)
	}
}

// reapply restores refreshes that a publish overwrote, with a few retries. The generator merges
// what still fails into the next site.
func (h *Handler) reapply(ctx context.Context, v *liveSite) {
	for try := 1; ; try++ {
		done, err := h.refresher.Reapply(ctx, v.Root, func(key site.Key, body []byte) { h.cache.Put(v.Version, key, body) })
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
		case <-time.After(h.poll):
		case <-ctx.Done():
			return
		}
	}
}

// reload reads the root and returns the live site. If another request is reading the root, or read
// it less than betweenReloads ago, reload returns the last known site without waiting.
func (h *Handler) reload(ctx context.Context) *liveSite {
	if !h.polling.TryLock() {
		return h.live.Load()
	}
	defer h.polling.Unlock()
	if v := h.live.Load(); time.Since(v.checked) < betweenReloads {
		return v
	}
	if err := h.readRoot(ctx); err != nil {
		h.logger(ctx).Warn("cannot read the root", "error", err)
	}
	return h.live.Load()
}

// doubted returns the live site after reading the root again. A client that checks signatures asks
// for the next note when an object does not match: the cache may then hold objects of the previous
// site, and the store those of a newer one. Requests share a read, which starts betweenReloads
// after the last one. If too many wait, the returned site may be older.
func (h *Handler) doubted(ctx context.Context) *liveSite {
	if !h.gates.doubts.TryTake(1) {
		return h.live.Load()
	}
	defer h.gates.doubts.Give(1)
	for since := time.Now(); ; {
		read := h.doubts.DoChan("", func() (any, error) {
			time.Sleep(betweenReloads - time.Since(h.live.Load().checked))
			h.polling.Lock()
			defer h.polling.Unlock()
			begun := time.Now()
			return begun, h.readRoot(context.WithoutCancel(ctx))
		})
		select {
		case r := <-read:
			if r.Err != nil {
				h.logger(ctx).Warn("cannot read the root", "error", r.Err)
			} else if r.Val.(time.Time).Before(since) {
				continue // this read began before the call
			}
		case <-ctx.Done():
		}
		return h.live.Load()
	}
}

// betweenReloads is the minimum time between two reads of the root caused by requests.
const betweenReloads = 100 * time.Millisecond

// readRoot reads the root and switches to a new site. The caller holds h.polling.
func (h *Handler) readRoot(ctx context.Context) error {
	v := h.live.Load()
	if v == nil {
		v = &liveSite{Site: answer.Site{Root: &site.Root{}}}
	}
	root, info, err := h.fetcher.Root(ctx, v.info)
	if errors.Is(err, fetch.ErrUnchanged) {
		root, info = v.Root, v.info
	} else if err != nil {
		return err
	}
	next := &liveSite{answer.Site{Root: root, Version: v.Version}, info, h.fetcher.Settled(info), time.Now(), v.templates, v.description, v.settings}
	// If the root was replaced, another site may have been live in between, and the cache may hold
	// its objects. Times have a resolution of one second: a root read before it settled may have
	// been replaced within that second, so it counts as new once settled.
	if isNew := !next.sameSite(v); isNew || next.settled && !v.settled {
		next.Version++
		next.templates = &sync.Map{}
		next.settings = []string{settings.Digest(root.Config)}
		next.description = sync.OnceValues(func() (*cache.Object, error) {
			body, err := h.describe(root.Config)
			return cache.NewObject(body), err
		})
		h.readTemplates(ctx, next)
		h.live.Store(next)
		h.cache.Clear()
		return nil
	}
	next.settled = next.settled || v.settled
	h.live.Store(next)
	return nil
}

// readTemplates reads the objects for addresses not in the graph ahead of requests. Requests read
// what it could not.
func (h *Handler) readTemplates(ctx context.Context, v *liveSite) {
	if !v.Root.Config.EFP() {
		return
	}
	var reads sync.WaitGroup
	for _, object := range site.UserObjects() {
		reads.Go(func() {
			key := site.UnknownKey(object)
			if body, err := h.fetcher.Get(ctx, key); err == nil {
				v.templates.Store(key, bytes.Clone(body))
			}
		})
	}
	reads.Wait()
}
