package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/followpress/followpress/server/internal/answer"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/fresh"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Shared holds what successive handlers, each for its own site, have in common: options, metrics,
// gates, and the state of refreshes. It is safe for concurrent use.
type Shared struct{ *shared }

type shared struct {
	options   Options
	gates     gates
	metrics   *metrics
	refreshes *fresh.Shared
	log       *slog.Logger
	poll      time.Duration
	timeout   time.Duration
	refresh   RefreshOptions
	describe  func(site.Config) ([]byte, error) // nil for none

	lifetime, problemLifetime []string // Cache-Control values; nil for those of routes and problems

	failures rate.Sometimes          // limits the log of failed requests: there may be thousands per second
	current  atomic.Pointer[Handler] // the newest handler, which gauges read
}

// NewShared returns the Shared of successive handlers. Each handler has its own cache.
func NewShared(o Options) (*Shared, error) {
	s, err := newShared(o)
	return &Shared{s}, err
}

func newShared(o Options) (*shared, error) {
	o = o.withDefaults()
	refreshes, err := fresh.NewShared(o.Refresh, o.Log)
	if err != nil {
		return nil, err
	}
	s := &shared{
		options: o, gates: newGates(o), metrics: newMetrics(), refreshes: refreshes, log: o.Log, poll: o.Poll, timeout: o.Timeout,
		refresh: o.Refresh, describe: o.Describe, failures: rate.Sometimes{First: 10, Interval: 100 * time.Millisecond},
	}
	if o.CacheControl != "" {
		s.lifetime = []string{o.CacheControl}
	}
	if o.ProblemCacheControl != "" {
		s.problemLifetime = []string{o.ProblemCacheControl}
	}
	s.metrics.watch(s)
	return s, nil
}

// newHandler returns a handler that has not read the root yet. live reports whether the root may be
// a live site's.
func (s *shared) newHandler(store Store, live bool) (_ *Handler, err error) {
	m := s.metrics
	h := &Handler{shared: s, fetcher: &fetch.Fetcher{Store: store, Timeout: s.timeout, Observe: m.stored, Live: live}}
	h.refresher, err = fresh.New(s.refresh, s.refreshes, h.fetcher, s.gates.fresh, fresh.Counts{Refreshed: m.refreshed, Asked: m.asked})
	if err != nil {
		return nil, err
	}
	h.cache, err = cache.New(h.fetcher, cache.Options{
		Bytes: s.options.CacheBytes, SentBytes: s.options.InFlightBytes / 6, Gates: s.gates.cache, Clock: s.options.clock,
		Counts: cache.Counts{Hit: m.cacheHits.Inc, Missed: m.cacheMisses.Inc},
	})
	if err != nil {
		return nil, err
	}
	h.answers = answer.New(h.cache, s.gates.answer, func(ctx context.Context) answer.Site { return h.reload(ctx).Site })
	return h, nil
}

// Handler returns a handler for a site that never changes, such as one rendered on request. Use
// makes the metrics read the handler. The caller closes the handler when no request needs its store
// any longer (Handler.Answer), after Wait.
func (s *Shared) Handler(ctx context.Context, store Store) (*Handler, error) {
	h, err := s.newHandler(store, true)
	if err != nil {
		return nil, err
	}
	h.polling.Lock()
	defer h.polling.Unlock()
	if err := h.readRoot(ctx); err != nil {
		h.Close()
		if errors.Is(err, storage.ErrNotFound) {
			err = ErrNoSite
		}
		return nil, err
	}
	return h, nil
}

// Restore puts refreshed data into the objects that show it, where the data is newer. keys, below
// site.RefreshPrefix, name entries that refreshes kept in the store. One failure does not stop the
// others.
func (h *Handler) Restore(ctx context.Context, keys []site.Key) error {
	if h.refresher == nil {
		return nil
	}
	v := h.live.Load()
	_, err := h.refresher.ReapplyKept(ctx, v.Root, keys, func(key site.Key, body []byte) { h.cache.Put(v.Version, key, body) })
	return err
}

// Wait waits for running refreshes. No request may start one while Wait runs.
func (h *Handler) Wait() {
	if h.refresher != nil {
		h.refresher.Wait()
	}
}

// Use makes the gauges of the metrics read h.
func (s *Shared) Use(h *Handler) { s.current.Store(h) }

// Refuse answers a request with a problem. It is counted and logged like requests to handlers.
func (s *Shared) Refuse(w http.ResponseWriter, r *http.Request, p *site.Problem) {
	s.observe(w, r, nil, func(w http.ResponseWriter, r *http.Request, seen *outcome) { seen.status = s.write(problem(p), w, r) })
}
