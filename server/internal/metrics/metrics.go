// Package metrics counts what a handler does, for Prometheus.
package metrics

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

// Metrics are the metrics of successive handlers, in their own registry. They are safe for concurrent use.
type Metrics struct {
	CacheHits   prometheus.Counter
	CacheMisses prometheus.Counter
	Altered     prometheus.Counter

	registry  *prometheus.Registry
	requests  *prometheus.CounterVec   // by route and status
	seconds   *prometheus.HistogramVec // by route
	store     *prometheus.HistogramVec // by operation and result
	refreshes *prometheus.CounterVec   // by object and result
	upstream  *prometheus.HistogramVec // by object and result

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

// New returns the metrics, with other collectors in the same registry. Gauges call state.
func New(state func() State, others ...prometheus.Collector) *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(others...)
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
		registry.MustRegister(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
		registry.MustRegister(c)
		return c
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
		registry.MustRegister(h)
		return h
	}
	m := &Metrics{
		registry:    registry,
		CacheHits:   counter("cache_hits_total", "Lookups that the cache could answer."),
		CacheMisses: counter("cache_misses_total", "Lookups that needed the store."),
		Altered:     counter("altered_total", "Requests answered 502, since an object is not what the site's publisher has signed."),
		requests:    counters("requests_total", "Requests answered, by route and status; 499 is a client that left before its answer.", "route", "status"),
		seconds: histograms("request_seconds", "Time to answer a request, by route.",
			[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, "route"),
		store: histograms("store_seconds", "Time of a request to the store, by operation (read or write) and result: done, absent, unchanged, condition or error.",
			[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}, "operation", "result"),
		refreshes: counters("refreshes_total",
			"Refreshes by object and result: done, same (the data was stored already), failed (the upstream), error (the store) or limited.", "object", "result"),
		upstream: histograms("upstream_seconds", "Time of a request to an upstream, by object and result: found, absent or error.",
			[]float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5}, "object", "result"),
	}
	for _, g := range gauges {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: g.name, Help: g.help}, func() float64 { return g.value(state()) }))
	}
	addRoute := func(pattern string) {
		m.routes = append(m.routes, routeMetrics{
			pattern: pattern,
			seconds: sync.OnceValue(func() prometheus.Observer { return m.seconds.WithLabelValues(pattern) }),
			ok:      sync.OnceValue(func() prometheus.Counter { return m.requests.WithLabelValues(pattern, strconv.Itoa(http.StatusOK)) }),
		})
	}
	for _, route := range site.AllFeatures().Routes() { // ordered by ID
		addRoute(route.Pattern)
	}
	addRoute("none")
	for _, object := range []site.ListObject{site.Details, site.Badges} { // without the initial zero, rate() misses the first failure
		m.refreshes.WithLabelValues(string(object), "failed")
		m.refreshes.WithLabelValues(string(object), "error")
	}
	m.read = sync.OnceValue(func() prometheus.Observer { return m.store.WithLabelValues("read", "done") })
	return m
}

// A State has the values of the gauges for the newest handler. Zero values stand for no handler or
// no site yet.
type State struct {
	CacheBytes, CacheObjects, InFlightBytes, Requests float64
	Ready, Stale                                      bool
	AsOf, Checked                                     time.Time
}

var gauges = []struct {
	name, help string
	value      func(State) float64
}{
	{"cache_bytes", "Bytes in the cache.", func(s State) float64 { return s.CacheBytes }},
	{"cache_objects", "Objects in the cache, including those known to be absent.", func(s State) float64 { return s.CacheObjects }},
	{"in_flight_bytes", "Bytes of objects that are being read and of answers in flight, beyond the cache.", func(s State) float64 { return s.InFlightBytes }},
	{"requests_in_flight", "Requests that are being answered.", func(s State) float64 { return s.Requests }},
	{"ready", "1 if there is a site to serve and the server is not draining, else 0.", func(s State) float64 { return yes(s.Ready) }},
	{"site_as_of_seconds", "Time of the snapshot of the live site, in seconds since the Unix epoch; 0 if there is none yet.", func(s State) float64 { return seconds(s.AsOf) }},
	{"site_stale", "1 if the snapshot of the live site is older than --max-age, or more than a day ahead of the clock, else 0.", func(s State) float64 { return yes(s.Stale) }},
	{"site_checked_seconds", "Time at which the root was last read, in seconds since the Unix epoch; 0 if never.", func(s State) float64 { return seconds(s.Checked) }},
}

func yes(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}

// Stored counts a request to the store.
func (m *Metrics) Stored(operation, result string, took time.Duration) {
	of := m.read
	if operation != "read" || result != "done" {
		of = func() prometheus.Observer { return m.store.WithLabelValues(operation, result) }
	}
	of().Observe(took.Seconds())
}

// Refreshed counts a refresh.
func (m *Metrics) Refreshed(object site.ListObject, result string) {
	m.refreshes.WithLabelValues(string(object), result).Inc()
}

// Asked counts a request to an upstream.
func (m *Metrics) Asked(object site.ListObject, result string, took time.Duration) {
	m.upstream.WithLabelValues(string(object), result).Observe(took.Seconds())
}

// Answered counts a request; route is nil if no route matched.
func (m *Metrics) Answered(route *site.Route, status int, took time.Duration) {
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

// Handler returns an HTTP handler that exposes the metrics in Prometheus formats.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
