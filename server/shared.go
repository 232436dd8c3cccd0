package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/followpress/followpress/server/internal/answer"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/current"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/fresh"
	"github.com/followpress/followpress/server/internal/metrics"
	"github.com/followpress/followpress/server/internal/observe"
	"github.com/followpress/followpress/server/internal/reply"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// Shared holds what successive handlers, each for its own site, have in common: options, metrics,
// gates, and the state of refreshes. It is safe for concurrent use.
type Shared struct{ *shared }

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
		options: o, gates: newGates(o), refreshes: refreshes, log: o.Log, failures: rate.Sometimes{First: 10, Interval: 100 * time.Millisecond},
	}
	s.observer = &observe.Observer{
		Requests: s.gates.requests, Metrics: metrics.New(s.state, o.Collectors...), Replies: reply.NewWriter(o.CacheControl, o.ProblemCacheControl), Log: o.Log,
	}
	return s, nil
}

// state returns the values of the gauges.
func (s *shared) state() metrics.State {
	is := metrics.State{Requests: float64(s.gates.requests.Taken())}
	if h := s.newest.Load(); h != nil {
		is.CacheBytes, is.CacheObjects, is.InFlightBytes = float64(h.cache.Bytes()), float64(h.cache.Len()), float64(h.inFlight())
		is.Ready, is.Stale, is.AsOf = h.Ready(), h.stale(), h.asOf()
		if v := h.current.Site(); v != nil {
			is.Checked = v.Checked
		}
	}
	return is
}

// Metrics returns an HTTP handler that exposes the metrics in Prometheus formats.
func (s *shared) Metrics() http.Handler { return s.observer.Metrics.Handler() }

// newHandler returns a handler that has not read the root yet. live reports whether the root may be
// a live site's.
func (s *shared) newHandler(store Store, live bool) (_ *Handler, err error) {
	m := s.observer.Metrics
	h := &Handler{shared: s, fetcher: &fetch.Fetcher{Store: store, Timeout: s.options.Timeout, Observe: m.Stored, Live: live}}
	h.refresher, err = fresh.New(s.options.Refresh, s.refreshes, h.fetcher, s.gates.fresh, fresh.Counts{Refreshed: m.Refreshed, Asked: m.Asked})
	if err != nil {
		return nil, err
	}
	h.cache, err = cache.New(h.fetcher, cache.Options{
		Bytes: s.options.CacheBytes, SentBytes: s.options.InFlightBytes / 6, Gates: s.gates.cache, Clock: s.options.clock,
		Counts: cache.Counts{Hit: m.CacheHits.Inc, Missed: m.CacheMisses.Inc},
	})
	if err != nil {
		return nil, err
	}
	h.current = &current.Reader{Fetcher: h.fetcher, Cache: h.cache, Waiting: s.gates.doubts, Describe: s.options.Describe, Log: s.observer.Logger}
	h.answers = answer.New(h.cache, s.gates.answer, func(ctx context.Context) answer.Site { return h.current.Reload(ctx).Site })
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
	if err := h.current.Read(ctx); err != nil {
		h.Close()
		return nil, noSite(err)
	}
	return h, nil
}

// New returns a handler for the site in store. It reads the root and returns ErrNoSite if there is
// none. If the store fails temporarily (storage.Temporary), the handler answers 503 until Watch has
// read the root. The caller runs Watch, and calls Close at the end. If o.Refresh names an upstream,
// the store must be a Bucket.
func New(ctx context.Context, store Store, o Options) (*Handler, error) {
	s, err := newShared(o)
	if err != nil {
		return nil, err
	}
	h, err := s.newHandler(store, false)
	if err != nil {
		return nil, err
	}
	s.newest.Store(h)
	err = h.current.Read(ctx)
	switch {
	case err == nil:
		return h, nil
	case storage.Temporary(err) || errors.Is(err, checked.ErrBetween):
		h.log.Warn("cannot read the site yet, retrying", "error", err)
		return h, nil
	}
	h.Close()
	return nil, noSite(err)
}

// noSite returns ErrNoSite if err is about a missing root.
func noSite(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return ErrNoSite
	}
	return err
}

// Use makes the gauges of the metrics read h.
func (s *Shared) Use(h *Handler) { s.newest.Store(h) }

// Refuse answers a request with a problem. It is counted and logged like requests to handlers.
func (s *Shared) Refuse(w http.ResponseWriter, r *http.Request, p *site.Problem) {
	s.observer.Observe(w, r, nil, func(w http.ResponseWriter, r *http.Request, seen *observe.Outcome) {
		seen.Status = s.observer.Replies.Write(reply.Problem(p), w, r)
	})
}
