package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A view is what the handler knows of the site that is served.
type view struct {
	root    *site.Root
	version version
	etag    string // of the root, where the store has told it
	checked time.Time
}

// Root is the root of the site that is served; nil if none was read yet.
func (h *Handler) Root() *site.Root {
	if v := h.view.Load(); v != nil {
		return v.root
	}
	return nil
}

// Ready reports whether there is a site to serve, and Drain was not called.
func (h *Handler) Ready() bool { return h.view.Load() != nil && !h.draining.Load() }

// Drain makes the handler say that it is not ready: it goes on answering, but whoever
// sends requests should send them elsewhere.
func (h *Handler) Drain() { h.draining.Store(true) }

// Watch reads the root again and again, so that a new site is noticed, until the
// context ends.
func (h *Handler) Watch(ctx context.Context) {
	var refreshes sync.WaitGroup
	defer refreshes.Wait()
	if h.refresher != nil {
		defer h.refresher.flying.Wait()
	}
	var seen version // of which refreshes were looked at
	for {
		if v := h.view.Load(); v != nil && v.version != seen && h.refresher != nil {
			seen = v.version
			refreshes.Go(func() { h.refreshAgain(ctx, v) })
		}
		wait := h.poll
		if h.view.Load() == nil { // nobody can be served before
			wait = min(wait, time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			h.look(ctx)
		}
	}
}

func (h *Handler) look(ctx context.Context) {
	h.polling.Lock()
	defer h.polling.Unlock()
	was := h.view.Load()
	err := h.check(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		h.log.Warn("the root cannot be read; what is known stays in use", "error", err)
	} else if is := h.view.Load(); was == nil || is.version != was.version {
		h.log.Info("serving a new site", "as_of", is.root.AsOf, "objects", is.root.Counts.Objects)
	}
}

// refreshAgain does refreshes again that a publish has undone, as far as it can in a
// few tries; what is left then, the next site will have.
func (h *Handler) refreshAgain(ctx context.Context, v *view) {
	for try := 1; ; try++ {
		done, err := h.refresher.again(ctx, v.root, func(key site.Key, body []byte) { h.cache.put(v.version, key, body) })
		if done > 0 {
			h.log.Info("refreshed again what a new site had undone", "objects", done)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		h.log.Warn("some refreshes could not be done again", "error", err, "try", try)
		if try == refreshTries {
			return
		}
		select {
		case <-time.After(h.poll):
		case <-ctx.Done():
			return
		}
	}
}

// reload is the view of the site that is there now, or was a moment ago. It does not
// wait for others who read the root.
func (h *Handler) reload(ctx context.Context) *view {
	if !h.polling.TryLock() {
		return h.view.Load()
	}
	defer h.polling.Unlock()
	if v := h.view.Load(); time.Since(v.checked) < betweenReloads {
		return v // another request has just looked
	}
	if err := h.check(ctx); err != nil {
		h.logger(ctx).Warn("the root cannot be read", "error", err)
	}
	return h.view.Load()
}

// betweenReloads bounds how often requests have the root read again.
const betweenReloads = 100 * time.Millisecond

// check reads the root and takes a new site into use. h.polling must be held.
func (h *Handler) check(ctx context.Context) error {
	v := h.view.Load()
	if v == nil {
		v = &view{}
	}
	root, etag, err := h.fetcher.root(ctx, v.etag)
	switch {
	case errors.Is(err, storage.ErrUnchanged):
		h.view.Store(&view{v.root, v.version, v.etag, time.Now()})
		return nil
	case err != nil:
		return err
	}
	next := &view{root, v.version, etag, time.Now()}
	if v.root == nil || !root.Equal(v.root) {
		next.version++
		h.view.Store(next)
		h.cache.clear()
		return nil
	}
	h.view.Store(next)
	return nil
}
