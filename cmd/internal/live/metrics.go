package live

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/source/follow"
)

// Outcomes of a publish. Copies of the state use done and failed.
const (
	done      = "done"
	unchanged = "unchanged" // the bucket had the same site
	busy      = "busy"      // another publisher holds the lock
	failed    = "failed"
)

const (
	sampleEvery = 10 * time.Second
	mostSamples = 360 // an hour
)

// A monitor records events of the process, and shows them to operators as status, metrics and a page.
// Its methods are safe for concurrent use.
type monitor struct {
	answers func() live.Status   // status of the answering side
	follows func() follow.Status // status of the reading side

	requests atomic.Int64 // requests received

	rounds         *prometheus.CounterVec
	roundSeconds   prometheus.Histogram
	blockToAnswer  prometheus.Histogram
	publishes      *prometheus.CounterVec
	publishSeconds prometheus.Gauge
	copies         *prometheus.CounterVec

	begun time.Time

	mu        sync.Mutex
	publish   *publishStatus // the last one; nil if none
	published time.Time      // end of the last one that left the bucket correct; zero if none
	took      []sample       // seconds per round with a graph, oldest first
	reached   []sample       // seconds from a block to its answer
	lags      []sample       // lag of the slowest chain, in seconds
	asked     []sample       // total requests
}

// A sample is a plotted value.
type sample struct {
	at    time.Time
	value float64
}

// keepSample appends a sample to a plot, and drops the oldest beyond the maximum.
func keepSample(all []sample, value float64) []sample {
	all = append(all, sample{time.Now(), value})
	if extra := len(all) - mostSamples; extra > 0 {
		all = slices.Delete(all, 0, extra)
	}
	return all
}

func options(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: "followpress", Subsystem: "live", Name: name, Help: help}
}

// newMonitor returns the monitor of a starting process.
func newMonitor(answers func() live.Status, follows func() follow.Status) *monitor {
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "followpress", Subsystem: "live", Name: name, Help: help, Buckets: buckets})
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(options(name, help)), []string{"outcome"})
	}
	return &monitor{
		answers: answers, follows: follows, begun: time.Now(),
		rounds: counter("rounds_total", "Rounds by outcome: graph (a new one answers), heads (only heads moved), refreshed (a new graph with refreshed data) or failed."),
		roundSeconds: histogram("round_seconds", "Time from the nodes' answer until a new graph answers.",
			.01, .025, .05, .1, .25, .5, 1, 1.5, 2, 3, 5, 10, 30),
		blockToAnswer: histogram("block_to_answer_seconds", "Time from a block's timestamp until a graph with it answers.",
			.25, .5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 30, 60, 120),
		publishes:      counter("publishes_total", "Publishes by outcome: done, unchanged, busy (another publisher held the lock) or failed."),
		publishSeconds: prometheus.NewGauge(prometheus.GaugeOpts(options("publish_seconds", "Duration of the last publish."))),
		copies:         counter("state_copies_total", "Copies of the state by outcome: done or failed."),
	}
}

// hooks connect the monitor to live.
func (m *monitor) hooks() live.Hooks { return live.Hooks{Round: m.round, Answered: m.answered} }

func (m *monitor) round(r live.RoundEnd) {
	m.rounds.WithLabelValues(string(r.Outcome)).Inc()
	if r.Outcome != live.NewGraph {
		return
	}
	m.roundSeconds.Observe(r.Took.Seconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.took = keepSample(m.took, r.Took.Seconds())
}

func (m *monitor) answered(_ uint64, took time.Duration) {
	m.blockToAnswer.Observe(took.Seconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reached = keepSample(m.reached, took.Seconds())
}

// publishEnded records a publish.
func (m *monitor) publishEnded(p publishStatus) {
	m.publishes.WithLabelValues(p.Outcome).Inc()
	m.publishSeconds.Set(p.Seconds)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publish = &p
	if p.Outcome == done || p.Outcome == unchanged {
		m.published = time.Now()
	}
}

// copyEnded records a copy of the state.
func (m *monitor) copyEnded(outcome string) { m.copies.WithLabelValues(outcome).Inc() }

// sample records a sample of lag and requests.
func (m *monitor) sample() {
	chains := m.chains(m.answers())
	lag, known := 0.0, len(chains) > 0
	for _, c := range chains {
		if known = known && c.Lag != nil; known {
			lag = max(lag, *c.Lag)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known {
		m.lags = keepSample(m.lags, lag)
	}
	m.asked = keepSample(m.asked, float64(m.requests.Load()))
}

// Metrics computed when they are collected.
var (
	lagDesc     = describe("lag_seconds", "Time since a chain's newest block, by the monotonic clock; absent before the first block.", "chain")
	blockDesc   = describe("head_block", "The newest block of a chain in the graph.", "chain")
	finalDesc   = describe("finalized_block", "The newest block of a chain with confirmed events.", "chain")
	nodeDesc    = describe("node_requests_total", "HTTP requests to the nodes of a chain.", "chain")
	failingDesc = describe("node_failing", "1 if the nodes of a chain failed to answer last time, else 0.", "chain")
	reorgDesc   = describe("reorganisations_total", "Reorganizations that replaced blocks in the graph.", "chain")
	servingDesc = describe("serving", "1 if the graph answers requests, else 0.")
	asOfDesc    = describe("as_of_seconds", "Time of the graph, in seconds since the Unix epoch; 0 if there is none yet.")
	graphsDesc  = describe("graphs", "Graphs in memory.")
	waitingDesc = describe("waiting", "Requests that wait for a block.")
	streamsDesc = describe("streams", "Streams of events that are open.")
	ageDesc     = describe("publish_age_seconds", "Time since the last publish that left the bucket correct, or since the start.")
)

var described = []*prometheus.Desc{
	lagDesc, blockDesc, finalDesc, nodeDesc, failingDesc, reorgDesc, servingDesc, asOfDesc, graphsDesc, waitingDesc, streamsDesc, ageDesc,
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	o := options(name, help)
	return prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, o.Subsystem, o.Name), o.Help, labels, nil)
}

func (m *monitor) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.rounds, m.roundSeconds, m.blockToAnswer, m.publishes, m.publishSeconds, m.copies}
}

// Describe implements prometheus.Collector.
func (m *monitor) Describe(to chan<- *prometheus.Desc) {
	for _, d := range described {
		to <- d
	}
	for _, c := range m.collectors() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *monitor) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	is := m.answers()
	for _, c := range m.chains(is) {
		id := strconv.FormatUint(c.Chain, 10)
		if c.Lag != nil {
			gauge(lagDesc, *c.Lag, id)
		}
		gauge(blockDesc, float64(c.Block), id)
		gauge(finalDesc, float64(c.Finalized), id)
		counter(nodeDesc, float64(c.Requests), id)
		gauge(failingDesc, yes(c.Error != ""), id)
		counter(reorgDesc, float64(c.Reorganisations), id)
	}
	at := 0.0
	if !is.AsOf.IsZero() {
		at = float64(is.AsOf.Unix())
	}
	gauge(servingDesc, yes(is.NotReady == ""))
	gauge(asOfDesc, at)
	gauge(graphsDesc, float64(is.Graphs))
	gauge(waitingDesc, float64(is.Waiting))
	gauge(streamsDesc, float64(is.Streams))
	gauge(ageDesc, m.age().Seconds())
	for _, c := range m.collectors() {
		c.Collect(to)
	}
}

// age returns the time since the last publish that left the bucket correct.
func (m *monitor) age() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
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
