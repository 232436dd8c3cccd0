package live

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
)

// A Status describes the state of a Live. Times are in UTC.
type Status struct {
	NotReady string        `json:"not_ready,omitempty"` // why every answer is a 503; "" when ready
	AsOf     time.Time     `json:"as_of,omitzero"`      // time of the newest block, the earliest of all chains
	Round    uint64        `json:"round"`               // number of the serving graph's round; 0 for none
	Chains   []ChainStatus `json:"chains"`              // chains of the serving graph, in the order of the deployment

	Rounds    map[Outcome]uint64 `json:"rounds"` // by their outcome
	LastRound struct {
		Outcome Outcome       `json:"outcome"`
		Ended   time.Time     `json:"ended"`
		Took    time.Duration `json:"took_ns"`
		Error   string        `json:"error,omitempty"`
	} `json:"last_round"`

	Counts    site.Counts `json:"counts"`     // counts of the serving graph; Bytes is 0
	NeedBytes int64       `json:"need_bytes"` // NeedsBytes of Counts
	Graphs    int         `json:"graphs"`     // in memory: one that serves, and one that still answers
	Waiting   int64       `json:"waiting"`    // requests waiting for a block
	Streams   int64       `json:"streams"`    // open event streams

	Kept struct { // refreshed objects in memory
		Objects int   `json:"objects"`
		Bytes   int64 `json:"bytes"`
	} `json:"kept"`
}

// A ChainStatus describes how far a chain of the graph was read.
type ChainStatus struct {
	Chain     uint64        `json:"chain"`
	Block     uint64        `json:"block"`
	Time      time.Time     `json:"time"` // time of the block
	Finalized uint64        `json:"finalized"`
	Lag       time.Duration `json:"lag_ns"` // age of the newest block, by a clock that does not jump
	Undone    uint64        `json:"undone"` // rounds that replaced blocks of the chain
}

// ErrNoGraph means that no graph was made yet.
var ErrNoGraph = errors.New("no graph was made yet")

// Ready returns nil if requests are answered. Otherwise every answer is a 503, and the error is ErrNoGraph or names the
// chains that lag.
func (l *Live) Ready() error {
	s := l.state.Load()
	if s == nil {
		return ErrNoGraph
	}
	now := l.clock.now()
	if !s.lags(now) {
		return nil
	}
	var lags []string
	for _, h := range s.heads {
		if lag := h.lag(now); lag > l.MaxLag {
			lags = append(lags, fmt.Sprintf("chain %d lags %s, more than %s: its newest block is %d", h.Chain, lag.Round(time.Second), l.MaxLag, h.Block))
		}
	}
	return errors.New(strings.Join(lags, "; "))
}

// lags reports whether a chain lags.
func (s *state) lags(now time.Duration) bool { return now > s.lagsAt }

// Status returns the current state.
func (l *Live) Status() Status {
	l.mu.Lock()
	is := l.status
	is.Rounds = maps.Clone(l.status.Rounds)
	undone := maps.Clone(l.undone)
	l.mu.Unlock()
	if err := l.Ready(); err != nil {
		is.NotReady = err.Error()
	}
	is.Graphs, _ = l.graphs.count()
	is.Waiting, is.Streams, is.Chains = l.waiting.count(), l.streams.count(), []ChainStatus{}
	if l.kept != nil {
		is.Kept.Objects, is.Kept.Bytes = l.kept.objectsAndBytes()
	}
	s := l.state.Load()
	if s == nil {
		return is
	}
	is.AsOf, is.Round = s.asOf, s.number
	now := l.clock.now()
	for _, h := range s.heads {
		is.Chains = append(is.Chains, ChainStatus{
			Chain: h.Chain, Block: h.Block, Time: time.UnixMilli(h.Time).UTC(), Finalized: h.Finalized, Lag: h.lag(now), Undone: undone[h.Chain],
		})
	}
	return is
}

func (l *Live) countUndone(chains []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, chain := range chains {
		l.undone[chain]++
	}
}

// ended records how a round ended.
func (s *Status) ended(r RoundEnd, config site.Config) {
	s.Rounds[r.Outcome]++
	last := &s.LastRound
	last.Outcome, last.Ended, last.Took, last.Error = r.Outcome, time.Now().UTC(), r.Took, ""
	if r.Err != nil {
		last.Error = r.Err.Error()
	}
	if r.Report != nil {
		s.Counts, s.NeedBytes = r.Report.Counts, NeedsBytes(r.Report.Counts, r.Report.Operations, config)
	}
}

// Memory of a graph in bytes, as docs/scale.md states it for generate: per account, half of which
// is its profile, per record, and the extra bytes per record under the API efp.
const (
	accountBytes   = 615
	recordBytes    = 10
	relationsBytes = 9
	operationBytes = 32 // a row of the table ops within the window
)

// besideGraphs is for caches, answers in flight, read-ahead of a snapshot, and the program.
const besideGraphs = 96 << 20

// NeedsBytes estimates the memory of a Live without its source, for graphs of this size and a number of operations within
// the window: two graphs, and half as much for garbage not yet collected. Measured
// 2026-11-23, resident at most, with empty caches: 185 MiB for Epinions and 240 MiB for 54,643 lists with 998,000 records,
// both under the API efp.
func NeedsBytes(c site.Counts, operations int, config site.Config) int64 {
	record := int64(recordBytes)
	if config.EFP() {
		record += relationsBytes
	}
	graph := accountBytes*int64(c.Accounts) + record*int64(c.Records) + operationBytes*int64(operations)
	return 3*graph + besideGraphs
}
