package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/followpress/followpress/site"
)

// metrics are the metrics of a handler, in their own registry.
type metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec   // by route and status
	seconds     *prometheus.HistogramVec // by route
	store       *prometheus.HistogramVec // by operation and result
	cacheHits   prometheus.Counter
	cacheMisses prometheus.Counter
	altered     prometheus.Counter
	refreshes   *prometheus.CounterVec   // by object and result
	upstream    *prometheus.HistogramVec // by object and result

	routes []routeMetrics             // by route ID; the last counts requests without a route
	read   func() prometheus.Observer // successful reads of store
}

// A routeMetrics has the most used metrics of a route, because looking up metrics by labels costs
// more than counting. The first request looks them up: before that, they are not exposed.
type routeMetrics struct {
	pattern string
	seconds func() prometheus.Observer
	ok      func() prometheus.Counter // requests answered with 200
}

const namespace = "followpress"

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "requests_total", Help: "Requests answered, by route and status; 499 is a client that left before its answer.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "request_seconds", Help: "Time to answer a request, by route.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
		store: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "store_seconds",
			Help:    "Time of a request to the store, by operation (read or write) and result: done, absent, unchanged, condition or error.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"operation", "result"}),
		cacheHits: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "cache_hits_total", Help: "Lookups that the cache could answer.",
		}),
		cacheMisses: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "cache_misses_total", Help: "Lookups that needed the store.",
		}),
		altered: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "altered_total", Help: "Requests answered 502, since an object is not what the site's publisher has signed.",
		}),
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "refreshes_total",
			Help: "Refreshes by object and result: done, same (the data was stored already), failed (the upstream), error (the store) or limited.",
		}, []string{"object", "result"}),
		upstream: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "upstream_seconds", Help: "Time of a request to an upstream, by object and result: found, absent or error.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"object", "result"}),
	}
	for _, pattern := range append(patterns(allRoutes), "none") {
		m.routes = append(m.routes, routeMetrics{
			pattern: pattern,
			seconds: sync.OnceValue(func() prometheus.Observer { return m.seconds.WithLabelValues(pattern) }),
			ok:      sync.OnceValue(func() prometheus.Counter { return m.requests.WithLabelValues(pattern, strconv.Itoa(http.StatusOK)) }),
		})
	}
	for _, object := range []site.ListObject{site.Details, site.Badges} { // without the initial zero, rate() misses the first failure
		m.refreshes.WithLabelValues(string(object), "failed")
		m.refreshes.WithLabelValues(string(object), "error")
	}
	m.read = sync.OnceValue(func() prometheus.Observer { return m.store.WithLabelValues("read", "done") })
	m.registry.MustRegister(
		m.requests, m.seconds, m.store, m.cacheHits, m.cacheMisses, m.altered, m.refreshes, m.upstream,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// watch registers gauges that read the newest handler, and the collectors of the options.
func (m *metrics) watch(s *shared) {
	m.registry.MustRegister(s.options.Collectors...)
	of := func(value func(*Handler) float64) func() float64 {
		return func() float64 {
			if h := s.current.Load(); h != nil {
				return value(h)
			}
			return 0
		}
	}
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, value))
	}
	gauge("cache_bytes", "Bytes in the cache.", of(func(h *Handler) float64 { return float64(h.cache.Bytes()) }))
	gauge("cache_objects", "Objects in the cache, including those known to be absent.",
		of(func(h *Handler) float64 { return float64(h.cache.Len()) }))
	gauge("in_flight_bytes", "Bytes of objects that are being read and of answers in flight, beyond the cache.",
		of(func(h *Handler) float64 { return float64(h.inFlight()) }))
	gauge("requests_in_flight", "Requests that are being answered.", func() float64 { return float64(s.gates.requests.Taken()) })
	gauge("ready", "1 if there is a site to serve and the server is not draining, else 0.", of(func(h *Handler) float64 { return map[bool]float64{true: 1}[h.Ready()] }))
	gauge("site_as_of_seconds", "Time of the snapshot of the live site, in seconds since the Unix epoch; 0 if there is none yet.", of(func(h *Handler) float64 {
		if root := h.Root(); root != nil {
			asOf, _ := time.Parse(time.RFC3339, root.AsOf) // ParseRoot has validated it
			return float64(asOf.Unix())
		}
		return 0
	}))
	gauge("site_stale", "1 if the snapshot of the live site is older than --max-age, or more than a day ahead of the clock, else 0.", of(func(h *Handler) float64 { return map[bool]float64{true: 1}[h.stale()] }))
	gauge("site_checked_seconds", "Time at which the root was last read, in seconds since the Unix epoch; 0 if never.", of(func(h *Handler) float64 {
		if v := h.live.Load(); v != nil {
			return float64(v.checked.Unix())
		}
		return 0
	}))
}

func (m *metrics) stored(operation, result string, took time.Duration) {
	of := m.read
	if operation != "read" || result != "done" {
		of = func() prometheus.Observer { return m.store.WithLabelValues(operation, result) }
	}
	of().Observe(took.Seconds())
}

func (m *metrics) refreshed(object site.ListObject, result string) {
	m.refreshes.WithLabelValues(string(object), result).Inc()
}

func (m *metrics) asked(object site.ListObject, result string, took time.Duration) {
	m.upstream.WithLabelValues(string(object), result).Observe(took.Seconds())
}

// answered counts a request; route is nil if no route matched.
func (m *metrics) answered(route *site.Route, status int, took time.Duration) {
	of := &m.routes[len(m.routes)-1]
	if route != nil {
		of = &m.routes[route.ID]
	}
	if status == http.StatusOK {
		of.ok().Inc()
	} else {
		m.requests.WithLabelValues(of.pattern, strconv.Itoa(status)).Inc()
	}
	of.seconds().Observe(took.Seconds())
}

func patterns(routes []*site.Route) []string {
	all := make([]string, len(routes))
	for i, r := range routes {
		all[i] = r.Pattern
	}
	return all
}

// Metrics returns an HTTP handler that exposes the metrics in Prometheus formats.
func (s *shared) Metrics() http.Handler {
	return promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
}
