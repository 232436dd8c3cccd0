// Package collect asks services about accounts within a budget and keeps the answers between runs.
// It decides what to ask first, when to give up, and when to drop a kept answer.
package collect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source/internal/ask"
	"github.com/followpress/followpress/source/internal/store"
)

const (
	// Apart is the time between two answers that something is gone before they are believed,
	// because services give that answer for temporary failures too.
	Apart = 24 * time.Hour

	mostFailures = 20 // consecutive unusable answers before a run gives up
	doubtFrom    = 20 // number of known answers from which most of them being gone is taken for a fault of the service, and none is dropped
)

// A Collector asks a service and keeps its answers by key. It is not safe for concurrent use.
type Collector[Meta any] struct {
	Client *ask.Client
	Store  *store.Store[Meta]

	failures    int      // consecutive unusable answers
	knownAsked  int      // known answers asked for again
	knownAbsent int      // known answers that are gone
	gone        []string // keys of answers believed to be gone
}

// Open opens the folder of kept answers. The error wraps store.ErrBusy if another run uses it.
func Open[Meta any](folder string, o ask.Options) (*Collector[Meta], error) {
	client, err := ask.New(o)
	if err != nil {
		return nil, err
	}
	kept, err := store.Open[Meta](folder)
	if err != nil {
		client.Close()
		return nil, err
	}
	return &Collector[Meta]{Client: client, Store: kept}, nil
}

// Close writes the answers put since the last flush.
func (c *Collector[Meta]) Close() error {
	c.Client.Close()
	return c.Store.Close()
}

// A Question is a possible request about an account.
type Question struct {
	Address site.Address
	Topic   int    // what to ask, if a run has several topics
	Lists   uint32 // number of lists that follow the account
	Since   int64  // when it was last asked, in milliseconds; 0 for never
}

// Sort puts questions never asked before first, by the number of lists that follow the account,
// then those asked the longest time ago.
func Sort(questions []Question) {
	slices.SortFunc(questions, func(a, b Question) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(b.Lists, a.Lists),
			slices.Compare(a.Address[:], b.Address[:]), cmp.Compare(a.Topic, b.Topic))
	})
}

// Answered counts a usable answer; known reports whether an earlier answer is kept.
func (c *Collector[Meta]) Answered(known bool) {
	c.failures = 0
	if known {
		c.knownAsked++
	}
}

// Missed counts a kept answer that the service no longer has. Drop drops it if believed is set.
func (c *Collector[Meta]) Missed(key string, believed bool) {
	c.knownAbsent++
	if believed {
		c.gone = append(c.gone, key)
	}
}

// Failed counts an unusable answer.
func (c *Collector[Meta]) Failed() { c.failures++ }

// Begin resets the count of unusable answers, for another kind of question.
func (c *Collector[Meta]) Begin() { c.failures = 0 }

// GaveUp returns an error after too many unusable answers.
func (c *Collector[Meta]) GaveUp() error {
	if c.failures < mostFailures {
		return nil
	}
	return fmt.Errorf("%w: the last %d answers were unusable", ask.ErrGaveUp, c.failures)
}

// Drop replaces answers believed to be gone by a meta without a body. If the service lacks most
// answers in this run, Drop doubts and keeps all of them.
func (c *Collector[Meta]) Drop(without func(Meta) Meta) (dropped, doubted int, err error) {
	if c.knownAsked >= doubtFrom && c.knownAbsent > c.knownAsked/2 {
		return 0, len(c.gone), nil
	}
	for _, key := range c.gone {
		m, _, _ := c.Store.Meta(key)
		if err := c.Store.Put(key, without(m), nil); err != nil {
			return 0, 0, err
		}
	}
	return len(c.gone), 0, nil
}

// A Cost is the use of a service in one run.
type Cost struct {
	Requests int     `json:"requests"`       // including failed ones
	Bytes    int64   `json:"bytes"`          // response bytes
	Waited   float64 `json:"waited_seconds"` // for rate limits and failures
	Stopped  string  `json:"stopped"`        // why not everything was asked, such as a spent budget; "" if everything was
}

// Cost returns the use of the service in a run that ended with err, nil if everything was asked. It
// returns err unless it only explains why less was asked.
func (c *Collector[Meta]) Cost(err error) (Cost, error) {
	asked := c.Client.Cost()
	cost := Cost{Requests: asked.Requests, Bytes: asked.Bytes, Waited: asked.Waited.Seconds()}
	if errors.Is(err, ask.ErrGaveUp) || errors.Is(err, ask.ErrSpent) {
		cost.Stopped, err = err.Error(), nil
	}
	return cost, err
}

// WriteCost writes a line for people. most is the largest number of accounts per request; 0 omits
// it.
func WriteCost(b *strings.Builder, c Cost, most int) {
	fmt.Fprintf(b, "          %10d requests, ", c.Requests)
	if most > 0 {
		fmt.Fprintf(b, "up to %d accounts each, ", most)
	}
	fmt.Fprintf(b, "%.1f MB", float64(c.Bytes)/1e6)
	if c.Waited > 0 {
		fmt.Fprintf(b, ", waited %s", time.Duration(c.Waited*float64(time.Second)).Round(time.Second))
	}
	b.WriteByte('\n')
}
