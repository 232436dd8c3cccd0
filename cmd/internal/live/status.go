package live

import (
	"context"
	"runtime/metrics"
	"time"

	"github.com/followpress/followpress/live"
)

// A status says how the process gets on.
type status struct {
	Serving bool                    `json:"serving"`
	Why     string                  `json:"why,omitempty"`  // it does not serve
	AsOf    time.Time               `json:"as_of,omitzero"` // of the graph
	Up      float64                 `json:"up_seconds"`
	Chains  []chainStatus           `json:"chains"`
	Rounds  map[live.Outcome]uint64 `json:"rounds"` // by outcome
	Last    *roundStatus            `json:"last_round,omitempty"`
	Graphs  int                     `json:"graphs"`       // in memory
	Waiting int64                   `json:"waiting"`      // requests that wait for a block
	Streams int64                   `json:"streams"`      // of events
	Asked   int64                   `json:"requests"`     // since the start
	Memory  int64                   `json:"memory_bytes"` // that the process has from the system
	Needs   int64                   `json:"need_bytes"`   // about, for two graphs of this size
	Publish *publishStatus          `json:"last_publish,omitempty"`
}

// A chainStatus says how far one chain is.
type chainStatus struct {
	Chain           uint64    `json:"chain"`
	Name            string    `json:"name"`
	Block           uint64    `json:"block"`         // the newest one in the graph
	Time            time.Time `json:"time,omitzero"` // of the block
	Finalized       uint64    `json:"finalized"`     // the newest one whose events were confirmed
	Lag             float64   `json:"lag_seconds"`
	Error           string    `json:"error,omitempty"` // of the last attempt to ask nodes
	Requests        int64     `json:"requests"`        // HTTP requests to nodes
	Subscribed      bool      `json:"subscribed"`      // a node tells of new blocks by itself
	Reorganisations uint64    `json:"reorganisations"`
}

// A roundStatus is the last round that brought a graph.
type roundStatus struct {
	At            time.Time `json:"at"`
	Seconds       float64   `json:"seconds"`                           // to make the graph
	BlockToAnswer float64   `json:"block_to_answer_seconds,omitempty"` // of the newest block; 0 for the first graph
}

// A publishStatus says how a publish ended.
type publishStatus struct {
	At      time.Time `json:"at"` // of its end
	Outcome string    `json:"outcome"`
	Error   string    `json:"error,omitempty"`
	AsOf    string    `json:"as_of,omitempty"` // of the snapshot of finalized blocks
	Objects int       `json:"objects"`         // that were put, without manifest shards
	Bytes   int64     `json:"bytes"`
	Seconds float64   `json:"seconds"`
}

// chains are those that are followed, with what the graph has of them.
func (m *monitor) chains(graph live.Status) []chainStatus {
	all := []chainStatus{}
	for _, c := range m.follows().Chains {
		s := chainStatus{
			Chain: c.Chain, Name: c.Name, Block: c.Block, Finalized: c.Finalized, Lag: c.Lag().Seconds(),
			Error: c.Error, Requests: c.Requests, Subscribed: c.Subscribed, Reorganisations: c.Reorganisations,
		}
		if c.Time != 0 {
			s.Time = time.UnixMilli(c.Time).UTC()
		}
		for _, g := range graph.Chains {
			if g.Chain == c.Chain { // the graph may be a round behind
				s.Block, s.Time, s.Finalized, s.Lag = g.Block, g.Time, g.Finalized, max(s.Lag, g.Lag.Seconds())
			}
		}
		all = append(all, s)
	}
	return all
}

// status says how the process gets on now.
func (m *monitor) status() status {
	is := m.answers()
	s := status{
		Serving: is.NotReady == "", Why: is.NotReady, AsOf: is.AsOf, Up: time.Since(m.begun).Seconds(), Chains: m.chains(is), Rounds: is.Rounds,
		Graphs: is.Graphs, Waiting: is.Waiting, Streams: is.Streams, Asked: m.requests.Load(), Memory: memory(), Needs: is.NeedBytes,
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.took); n > 0 {
		s.Last = &roundStatus{At: m.took[n-1].at, Seconds: m.took[n-1].value}
		if n := len(m.reached); n > 0 {
			s.Last.BlockToAnswer = m.reached[n-1].value
		}
	}
	s.Publish = m.publish
	return s
}

// run notes what is plotted, until ctx ends.
func (m *monitor) run(ctx context.Context) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.sample()
		}
	}
}

// memory is what the process has from the system and has not given back, in bytes.
func memory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
