package live

import (
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
	published time.Time      // end of the last one that left the bucket correct, else the start
	last      *roundStatus   // the last round with a graph; nil if none
	reached   float64        // seconds from a block to its answer; 0 if none
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
		answers: answers, follows: follows, begun: time.Now(), published: time.Now(),
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
	m.last = &roundStatus{At: time.Now(), Seconds: r.Took.Seconds(), BlockToAnswer: m.reached}
}

func (m *monitor) answered(_ uint64, took time.Duration) {
	m.blockToAnswer.Observe(took.Seconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reached = took.Seconds()
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

// Describe describes nothing: Collect makes its metrics when they are collected.
func (m *monitor) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *monitor) Collect(to chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType, name, help string, value float64, chain ...string) {
		o, labels := options(name, help), []string{"chain"}
		desc := prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, o.Subsystem, o.Name), o.Help, labels[:len(chain)], nil)
		to <- prometheus.MustNewConstMetric(desc, kind, value, chain...)
	}
	gauge := func(name, help string, value float64, chain ...string) {
		send(prometheus.GaugeValue, name, help, value, chain...)
	}
	counter := func(name, help string, value float64, chain string) {
		send(prometheus.CounterValue, name, help, value, chain)
	}
	is := m.answers()
	for _, c := range m.chains(is) {
		id := strconv.FormatUint(c.Chain, 10)
		if c.Lag != nil {
			gauge("lag_seconds", "Time since a chain's newest block, by the monotonic clock; absent before the first block.", *c.Lag, id)
		}
		gauge("head_block", "The newest block of a chain in the graph.", float64(c.Block), id)
		gauge("finalized_block", "The newest block of a chain with confirmed events.", float64(c.Finalized), id)
		counter("node_requests_total", "HTTP requests to the nodes of a chain.", float64(c.Requests), id)
		gauge("node_failing", "1 if the nodes of a chain failed to answer last time, else 0.", yes(c.Error != ""), id)
		counter("reorganisations_total", "Reorganizations that replaced blocks in the graph.", float64(c.Reorganisations), id)
	}
	at := 0.0
	if !is.AsOf.IsZero() {
		at = float64(is.AsOf.Unix())
	}
	gauge("serving", "1 if the graph answers requests, else 0.", yes(is.NotReady == ""))
	gauge("as_of_seconds", "Time of the graph, in seconds since the Unix epoch; 0 if there is none yet.", at)
	gauge("graphs", "Graphs in memory.", float64(is.Graphs))
	gauge("waiting", "Requests that wait for a block.", float64(is.Waiting))
	gauge("streams", "Streams of events that are open.", float64(is.Streams))
	gauge("publish_age_seconds", "Time since the last publish that left the bucket correct, or since the start.", m.age().Seconds())
	for _, c := range []prometheus.Collector{m.rounds, m.roundSeconds, m.blockToAnswer, m.publishes, m.publishSeconds, m.copies} {
		c.Collect(to)
	}
}

// age returns the time since the last publish that left the bucket correct.
func (m *monitor) age() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.published)
}

func yes(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
