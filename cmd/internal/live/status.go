package live

import (
	"context"
	"runtime/metrics"
	"time"
)

// A Chain says how far one chain is.
type Chain struct {
	ID              uint64  `json:"chain"`
	Name            string  `json:"name"`
	Block           uint64  `json:"block"`       // the newest one that was seen
	Time            string  `json:"time"`        // of the block, as RFC 3339; "" before the first
	Finalized       uint64  `json:"finalized"`   // the newest one whose events were confirmed
	Lag             float64 `json:"lag_seconds"` // since the newest block
	Error           string  `json:"error,omitempty"`
	Requests        int64   `json:"requests"`   // HTTP requests to nodes
	Subscribed      bool    `json:"subscribed"` // a node tells of new blocks by itself
	Reorganisations uint64  `json:"reorganisations"`
}

// A Round is one that has changed the graph.
type Round struct {
	At            time.Time `json:"at"`
	Seconds       float64   `json:"seconds"`                 // to make the graph
	BlockToAnswer float64   `json:"block_to_answer_seconds"` // since the newest block of the round
}

// A Publish says how one ended.
type Publish struct {
	At      time.Time `json:"at"` // of its end
	Outcome string    `json:"outcome"`
	Error   string    `json:"error,omitempty"`
	AsOf    string    `json:"as_of,omitempty"` // of the finalized snapshot
	Objects int       `json:"objects"`         // that were put, without manifest shards
	Bytes   int64     `json:"bytes"`
	Seconds float64   `json:"seconds"`
	Next    time.Time `json:"next"`
}

// A Status says how a live server gets on.
type Status struct {
	Serving bool             `json:"serving"`
	Why     string           `json:"why,omitempty"`   // it does not serve
	AsOf    string           `json:"as_of,omitempty"` // of the graph
	Up      float64          `json:"up_seconds"`
	Chains  []Chain          `json:"chains"`
	Rounds  map[string]int64 `json:"rounds"` // by outcome: graph, heads, failed
	Last    *Round           `json:"last_round,omitempty"`
	Waiting int64            `json:"waiting"` // requests that wait for a block
	Streams int64            `json:"streams"`
	Answers int64            `json:"answers"`      // to requests
	Memory  uint64           `json:"memory_bytes"` // that the process has from the system
	Publish *Publish         `json:"last_publish,omitempty"`
}

// Status says how the server gets on now.
func (m *Monitor) Status() Status {
	chains := m.followed()
	if chains == nil {
		chains = []Chain{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Status{
		Serving: m.why == "", Why: m.why, Up: time.Since(m.begun).Seconds(), Chains: chains,
		Rounds:  map[string]int64{roundGraph: m.counts[roundGraph], roundHeads: m.counts[roundHeads], roundFailed: m.counts[roundFailed]},
		Waiting: m.waiting.Load(), Streams: m.streams.Load(), Answers: m.requests.Load(), Memory: memory(),
	}
	if !m.asOf.IsZero() {
		s.AsOf = m.asOf.UTC().Format(time.RFC3339)
	}
	if last := m.last; !last.At.IsZero() {
		s.Last = &last
	}
	if p := m.publish; p.Outcome != "" {
		s.Publish = &p
	}
	return s
}

// Run notes what is plotted, until ctx ends.
func (m *Monitor) Run(ctx context.Context) error {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			m.sample()
		}
	}
}

// memory is what the process has from the system and has not given back, in bytes.
func memory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
