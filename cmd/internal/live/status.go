package live

import (
	"context"
	"runtime/metrics"
	"slices"
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
	Faults  []string                `json:"faults"` // what else of the source could not be read the last time
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
	Chain           uint64       `json:"chain"`
	Name            string       `json:"name"`
	Read            bool         `json:"read"`            // whether any block was read
	Block           uint64       `json:"block"`           // the newest one in the graph
	Time            time.Time    `json:"time,omitzero"`   // of the block
	Finalized       uint64       `json:"finalized"`       // the newest one whose events were confirmed
	Lag             *float64     `json:"lag_seconds"`     // null before the first block
	Error           string       `json:"error,omitempty"` // of the last attempt to ask nodes
	Requests        int64        `json:"requests"`        // HTTP requests to nodes
	Subscribed      bool         `json:"subscribed"`      // a node tells of new blocks by itself
	Reorganisations uint64       `json:"reorganisations"`
	Nodes           []nodeStatus `json:"nodes"` // that were asked
}

// A nodeStatus says how one node gets on.
type nodeStatus struct {
	Host     string    `json:"host"`
	Answered time.Time `json:"answered,omitzero"` // the last time; left out if never
	Failing  bool      `json:"failing"`           // it did not answer the last time
	Error    string    `json:"error,omitempty"`   // the last one, which may have passed
	ErrorAt  time.Time `json:"error_at,omitzero"`
}

// Mode says how the page calls the way in which blocks come.
func (c chainStatus) Mode() string {
	never := len(c.Nodes) > 0 && !slices.ContainsFunc(c.Nodes, func(n nodeStatus) bool { return !n.Answered.IsZero() })
	switch {
	case never:
		return "never answered"
	case c.Subscribed:
		return "subscribed"
	}
	return "polled"
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
			Chain: c.Chain, Name: c.Name, Block: c.Block, Finalized: c.Finalized,
			Error: c.Error, Requests: c.Requests, Subscribed: c.Subscribed, Reorganisations: c.Reorganisations, Nodes: []nodeStatus{},
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

// status says how the process gets on now.
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
