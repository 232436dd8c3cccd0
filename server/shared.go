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

// Shared is what handlers that follow each other have in common, each for a site of its own: the options, the metrics,
// the bounds of what is done at a time, and what refreshes share. It is safe for concurrent use.
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

	lifetime, problemLifetime []string // values of Cache-Control; nil for those of the routes and problems

	failures rate.Sometimes          // limits the log of failed requests, of which there may be thousands per second
	current  atomic.Pointer[Handler] // the newest handler, of which gauges tell
}

// NewShared returns what the handlers of one site after another share. Each has a cache of its own.
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

// newHandler returns a handler that has not read the root yet. live says whether the root may be that of a live site.
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

// Handler returns a handler for a site that never changes, such as one that is rendered when it is asked for. Once
// ServeHTTP of the caller uses it, Use lets metrics tell of it. The caller closes it when no request needs its
// store any more (Handler.Answer): before that, Wait waits for refreshes.
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

// Restore puts refreshed data into the objects that show it, where it is newer than theirs. keys are those below
// site.RefreshPrefix, of data that refreshes have kept in the store. One failure does not stop the others.
func (h *Handler) Restore(ctx context.Context, keys []site.Key) error {
	if h.refresher == nil {
		return nil
	}
	v := h.live.Load()
	_, err := h.refresher.ReapplyKept(ctx, v.Root, keys, func(key site.Key, body []byte) { h.cache.Put(v.Version, key, body) })
	return err
}

// Wait waits for the refreshes that are under way. No request may begin one meanwhile.
func (h *Handler) Wait() {
	if h.refresher != nil {
		h.refresher.Wait()
	}
}

// Use lets the gauges of the metrics tell of a handler.
func (s *Shared) Use(h *Handler) { s.current.Store(h) }

// Refuse answers a request with a problem, and counts and logs it as those that handlers answer.
func (s *Shared) Refuse(w http.ResponseWriter, r *http.Request, p *site.Problem) {
	s.observe(w, r, nil, func(w http.ResponseWriter, r *http.Request, seen *outcome) { seen.status = s.write(problem(p), w, r) })
}
