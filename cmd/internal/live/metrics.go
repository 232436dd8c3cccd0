package live

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The outcomes of a round.
const (
	roundGraph  = "graph"  // the graph has changed, and answers
	roundHeads  = "heads"  // only heads have changed
	roundFailed = "failed" // no graph could be made of the round; the old one stays
)

// The outcomes of a publish, and of a copy of the state.
const (
	Done      = "done"
	Unchanged = "unchanged" // the bucket had the same site already
	Busy      = "busy"      // another publisher holds the lock
	Failed    = "failed"
)

const (
	sampleEvery = 10 * time.Second
	mostSamples = 360 // an hour
)

// A Monitor is told what a live server does, and shows it: as Status, as metrics of Prometheus and as a
// page. Its methods may be called from many goroutines.
type Monitor struct {
	chains func() []Chain // nil for none

	requests atomic.Int64 // that were answered
	waiting  atomic.Int64 // requests that wait for a block
	streams  atomic.Int64 // of events

	rounds         *prometheus.CounterVec
	roundSeconds   prometheus.Histogram
	blockToAnswer  prometheus.Histogram
	publishes      *prometheus.CounterVec
	publishSeconds prometheus.Gauge
	copies         *prometheus.CounterVec

	begun time.Time

	mu        sync.Mutex
	why       string // it does not serve; "" if it does
	asOf      time.Time
	counts    map[string]int64 // of rounds by outcome
	last      Round
	publish   Publish
	published time.Time // of the last publish that was done or unchanged, monotonic; zero for none
	recent    []Round   // with a graph, oldest first
	samples   []sample  // oldest first
}

// A sample is what is plotted, of each interval.
type sample struct {
	at       time.Time
	lag      float64 // of the chain that lags most, in seconds
	requests int64   // until then
}

// NewMonitor returns a Monitor of a server that is starting. chains says how far each chain is, and may be
// nil.
func NewMonitor(chains func() []Chain) *Monitor {
	return &Monitor{
		chains: chains, begun: time.Now(), counts: map[string]int64{}, why: "no graph was made yet",
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "followpress", Subsystem: "live", Name: "rounds_total",
			Help: "Rounds by outcome: graph (it has changed), heads (only heads have), or failed.",
		}, []string{"outcome"}),
		roundSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "followpress", Subsystem: "live", Name: "round_seconds", Help: "Time to make a graph of a round and to answer from it.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 1.5, 2, 3, 5, 10, 30},
		}),
		blockToAnswer: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "followpress", Subsystem: "live", Name: "block_to_answer_seconds",
			Help:    "Time from the newest block of a round, by its own time, until the graph of the round answers.",
			Buckets: []float64{.25, .5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 30, 60, 120},
		}),
		publishes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "followpress", Subsystem: "live", Name: "publishes_total", Help: "Publishes by outcome: done, unchanged, busy (another publisher has the lock) or failed.",
		}, []string{"outcome"}),
		publishSeconds: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "followpress", Subsystem: "live", Name: "publish_seconds", Help: "Time that the last publish took.",
		}),
		copies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "followpress", Subsystem: "live", Name: "state_copies_total", Help: "Copies of the state by outcome: done or failed.",
		}, []string{"outcome"}),
	}
}

// round counts a round. blockToAnswer is the time since its newest block; it counts only with a graph.
func (m *Monitor) round(outcome string, took, blockToAnswer time.Duration, asOf time.Time) {
	m.rounds.WithLabelValues(outcome).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[outcome]++
	if outcome != roundFailed && !asOf.IsZero() {
		m.asOf = asOf
	}
	if outcome != roundGraph {
		return
	}
	m.roundSeconds.Observe(took.Seconds())
	m.blockToAnswer.Observe(blockToAnswer.Seconds())
	m.last = Round{At: time.Now(), Seconds: took.Seconds(), BlockToAnswer: blockToAnswer.Seconds()}
	m.recent = append(m.recent, m.last)
	if extra := len(m.recent) - mostSamples; extra > 0 {
		m.recent = slices.Delete(m.recent, 0, extra)
	}
}

// serving says whether the server answers; why is "" if it does.
func (m *Monitor) serving(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.why = why
}

// Published says how a publish ended.
func (m *Monitor) Published(p Publish) {
	m.publishes.WithLabelValues(p.Outcome).Inc()
	m.publishSeconds.Set(p.Seconds)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publish = p
	if p.Outcome == Done || p.Outcome == Unchanged {
		m.published = time.Now()
	}
}

// Copied says how a copy of the state ended: Done or Failed.
func (m *Monitor) Copied(outcome string) { m.copies.WithLabelValues(outcome).Inc() }

// sample notes what is plotted, now.
func (m *Monitor) sample() {
	s := sample{at: time.Now(), requests: m.requests.Load()}
	for _, c := range m.followed() {
		s.lag = max(s.lag, c.Lag)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples = append(m.samples, s)
	if extra := len(m.samples) - mostSamples; extra > 0 {
		m.samples = slices.Delete(m.samples, 0, extra)
	}
}

func (m *Monitor) followed() []Chain {
	if m.chains == nil {
		return nil
	}
	return m.chains()
}

// What a Monitor tells beside the counters that it has.
var (
	lagDesc       = describe("lag_seconds", "Time since the newest block of a chain, by a clock that does not jump.", "chain")
	blockDesc     = describe("head_block", "The newest block of a chain that was seen.", "chain")
	finalDesc     = describe("finalized_block", "The newest block of a chain whose events were confirmed.", "chain")
	nodeDesc      = describe("node_requests_total", "HTTP requests to the nodes of a chain.", "chain")
	failingDesc   = describe("node_failing", "1 if the nodes of a chain did not answer the last time, else 0.", "chain")
	reorgDesc     = describe("reorganisations_total", "Times that blocks of a chain that a graph had were replaced.", "chain")
	servingDesc   = describe("serving", "1 if requests are answered from the graph, else 0.")
	asOfDesc      = describe("as_of_seconds", "Time of the graph, in seconds since the Unix epoch; 0 if there is none yet.")
	waitingDesc   = describe("waiting", "Requests that wait for a block.")
	streamsDesc   = describe("streams", "Streams of events that are open.")
	ageDesc       = describe("publish_age_seconds", "Time since the last publish that left the bucket right; since the start if there was none.")
	descriptions  = []*prometheus.Desc{lagDesc, blockDesc, finalDesc, nodeDesc, failingDesc, reorgDesc, servingDesc, asOfDesc, waitingDesc, streamsDesc, ageDesc}
	perChainCount = map[*prometheus.Desc]prometheus.ValueType{nodeDesc: prometheus.CounterValue, reorgDesc: prometheus.CounterValue}
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("followpress", "live", name), help, labels, nil)
}

func (m *Monitor) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.rounds, m.roundSeconds, m.blockToAnswer, m.publishes, m.publishSeconds, m.copies}
}

// Describe is that of a prometheus.Collector.
func (m *Monitor) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
	for _, c := range m.collectors() {
		c.Describe(to)
	}
}

// Collect is that of a prometheus.Collector.
func (m *Monitor) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if k, ok := perChainCount[d]; ok {
			kind = k
		}
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	for _, c := range m.followed() {
		id := strconv.FormatUint(c.ID, 10)
		send(lagDesc, c.Lag, id)
		send(blockDesc, float64(c.Block), id)
		send(finalDesc, float64(c.Finalized), id)
		send(nodeDesc, float64(c.Requests), id)
		send(failingDesc, yes(c.Error != ""), id)
		send(reorgDesc, float64(c.Reorganisations), id)
	}
	m.mu.Lock()
	serving, asOf, age := m.why == "", m.asOf, m.age()
	m.mu.Unlock()
	at := 0.0
	if !asOf.IsZero() {
		at = float64(asOf.Unix())
	}
	send(servingDesc, yes(serving))
	send(asOfDesc, at)
	send(waitingDesc, float64(m.waiting.Load()))
	send(streamsDesc, float64(m.streams.Load()))
	send(ageDesc, age.Seconds())
	for _, c := range m.collectors() {
		c.Collect(to)
	}
}

// age is the time since the last good publish. m.mu is held.
func (m *Monitor) age() time.Duration {
	if m.published.IsZero() {
		return time.Since(m.begun)
	}
	return time.Since(m.published)
}

func yes(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
