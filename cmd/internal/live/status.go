package live

import (
	"runtime/metrics"
	"time"

	"github.com/followpress/followpress/live"
)

// A status describes the process.
type status struct {
	Serving bool                    `json:"serving"`
	Why     string                  `json:"why,omitempty"`  // why it does not serve
	AsOf    time.Time               `json:"as_of,omitzero"` // time of the graph
	Up      float64                 `json:"up_seconds"`
	Chains  []chainStatus           `json:"chains"`
	Faults  []string                `json:"faults"` // other parts of the source that failed last time
	Rounds  map[live.Outcome]uint64 `json:"rounds"`
	Last    *roundStatus            `json:"last_round,omitempty"`
	Graphs  int                     `json:"graphs"`
	Waiting int64                   `json:"waiting"`      // waiting for a block
	Streams int64                   `json:"streams"`      // open event streams
	Asked   int64                   `json:"requests"`     // since the start
	Memory  int64                   `json:"memory_bytes"` // obtained from the system
	Needs   int64                   `json:"need_bytes"`   // estimate for two graphs
	Publish *publishStatus          `json:"last_publish,omitempty"`
}

// A chainStatus describes how far a chain was read.
type chainStatus struct {
	Chain           uint64       `json:"chain"`
	Name            string       `json:"name"`
	Read            bool         `json:"read"`            // whether any block was read
	Block           uint64       `json:"block"`           // newest block in the graph
	Time            time.Time    `json:"time,omitzero"`   // time of the block
	Finalized       uint64       `json:"finalized"`       // newest block with confirmed events
	Lag             *float64     `json:"lag_seconds"`     // null before the first block
	Error           string       `json:"error,omitempty"` // from the last request to nodes
	Requests        int64        `json:"requests"`        // HTTP requests to nodes
	Reorganisations uint64       `json:"reorganisations"`
	Nodes           []nodeStatus `json:"nodes"` // nodes asked
}

// A nodeStatus describes a node.
type nodeStatus struct {
	Host     string    `json:"host"`
	Answered time.Time `json:"answered,omitzero"` // last answer
	Failing  bool      `json:"failing"`           // failed to answer last time
	Error    string    `json:"error,omitempty"`   // last error, possibly past
	ErrorAt  time.Time `json:"error_at,omitzero"`
}

// A roundStatus describes the last round with a graph.
type roundStatus struct {
	At            time.Time `json:"at"`
	Seconds       float64   `json:"seconds"`                           // time to build the graph
	BlockToAnswer float64   `json:"block_to_answer_seconds,omitempty"` // for the newest block; 0 for the first graph
}

// A publishStatus describes a publish.
type publishStatus struct {
	At      time.Time `json:"at"` // end
	Outcome string    `json:"outcome"`
	Error   string    `json:"error,omitempty"`
	AsOf    string    `json:"as_of,omitempty"` // time of the snapshot of finalized blocks
	Objects int       `json:"objects"`         // objects put, without manifest shards
	Bytes   int64     `json:"bytes"`
	Seconds float64   `json:"seconds"`
}

// chains returns the followed chains, with their state in the graph.
func (m *monitor) chains(graph live.Status) []chainStatus {
	all := []chainStatus{}
	for _, c := range m.follows().Chains {
		s := chainStatus{
			Chain: c.Chain, Name: c.Name, Block: c.Block, Finalized: c.Finalized,
			Error: c.Error, Requests: c.Requests, Reorganisations: c.Reorganisations, Nodes: []nodeStatus{},
		}
		var lag time.Duration
		lag, s.Read = c.Lag()
		for _, n := range c.Nodes {
			s.Nodes = append(s.Nodes, nodeStatus{n.Host, n.Answered.UTC(), n.Failing, n.Error, n.Failed.UTC()})
		}
		if c.Time != 0 {
			s.Time = time.UnixMilli(c.Time).UTC()
		}
		for _, g := range graph.Chains {
			if g.Chain == c.Chain { // the graph may be a round behind
				s.Read, s.Block, s.Time, s.Finalized, lag = true, g.Block, g.Time, g.Finalized, max(lag, g.Lag)
			}
		}
		if s.Read {
			seconds := lag.Seconds()
			s.Lag = &seconds
		}
		all = append(all, s)
	}
	return all
}

// status returns the current status.
func (m *monitor) status() status {
	is := m.answers()
	s := status{
		Serving: is.NotReady == "", Why: is.NotReady, AsOf: is.AsOf, Up: time.Since(m.begun).Seconds(), Chains: m.chains(is), Rounds: is.Rounds,
		Graphs: is.Graphs, Waiting: is.Waiting, Streams: is.Streams, Asked: m.requests.Load(), Memory: memory(), Needs: is.NeedBytes,
	}
	s.Faults = []string{}
	for _, fault := range []string{m.follows().Confirming, m.follows().Additions} {
		if fault != "" {
			s.Faults = append(s.Faults, fault)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Last, s.Publish = m.last, m.publish
	return s
}

// memory returns the bytes obtained from the system and not returned.
func memory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
