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
	info    storage.Info // of the root, where the store has told it
	settled bool         // another root cannot look like this one
	checked time.Time
}

// sameSite reports whether nobody has published between two views, as far as is known.
func (v *view) sameSite(was *view) bool {
	return was != nil && v.root.Equal(was.root) && (samePut(v.info, was.info) || v.info.ETag == "")
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
	var seen *view // of which refreshes were looked at
	for {
		if v := h.view.Load(); v != nil && h.refresher != nil && !v.sameSite(seen) {
			seen = v
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
	} else if is := h.view.Load(); !is.sameSite(was) {
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
		v = &view{root: &site.Root{}}
	}
	root, info, err := h.fetcher.root(ctx, v.info)
	if errors.Is(err, storage.ErrUnchanged) {
		root, info = v.root, v.info
	} else if err != nil {
		return err
	}
	next := &view{root, v.version, info, h.fetcher.settled(info), time.Now()}
	// A root that was put again has had another site before it, perhaps, of which there
	// are objects in the cache. Within the second in which it was put nobody can tell.
	if isNew := !next.sameSite(v); isNew || next.settled && !v.settled {
		next.version++
		h.view.Store(next)
		h.cache.clear()
		return nil
	}
	next.settled = next.settled || v.settled
	h.view.Store(next)
	return nil
}
