// Package collect has what all services share that are asked about accounts within a budget, and whose
// answers are kept between runs: what is asked first, when a run gives up, and when what is kept is
// dropped.
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
	// Apart is the time between two answers that something is gone, before it is believed: services
	// give that answer for passing failures too.
	Apart = 24 * time.Hour

	mostFailures = 20 // unusable answers in a row, one by one, before a run gives up
	doubtFrom    = 20 // known answers; if so many were asked for and most are gone, the service has a fault, and none is dropped
)

// A Collector asks a service, and keeps its answers under keys. It is not safe for concurrent use.
type Collector[Meta any] struct {
	Client *ask.Client
	Store  *store.Store[Meta]

	failures    int      // unusable answers in a row
	knownAsked  int      // known answers that were asked for
	knownAbsent int      // of those, the ones that the service has no more
	gone        []string // keys of those that are believed to be gone
}

// Open opens the folder where answers are kept. The error wraps store.ErrBusy if another run has it.
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

// Close keeps what was put.
func (c *Collector[Meta]) Close() error {
	c.Client.Close()
	return c.Store.Close()
}

// A Question may be asked about an account.
type Question struct {
	Address site.Address
	Topic   int    // what is asked, if a run asks several things
	Lists   uint32 // that follow the account
	Since   int64  // when it was last asked, in milliseconds; 0 for never
}

// Sort puts first what was never asked, of that the accounts that most lists follow; then what was
// asked the longest time ago.
func Sort(questions []Question) {
	slices.SortFunc(questions, func(a, b Question) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(b.Lists, a.Lists),
			slices.Compare(a.Address[:], b.Address[:]), cmp.Compare(a.Topic, b.Topic))
	})
}

// Answered counts a usable answer to a question whose last answer may be known.
func (c *Collector[Meta]) Answered(known bool) {
	c.failures = 0
	if known {
		c.knownAsked++
	}
}

// Missed counts a known answer that the service has no more. Drop drops it if it is believed.
func (c *Collector[Meta]) Missed(key string, believed bool) {
	c.knownAbsent++
	if believed {
		c.gone = append(c.gone, key)
	}
}

// Failed counts an unusable answer.
func (c *Collector[Meta]) Failed() { c.failures++ }

// Begin forgets unusable answers to questions of another kind.
func (c *Collector[Meta]) Begin() { c.failures = 0 }

// GaveUp is an error after too many unusable answers.
func (c *Collector[Meta]) GaveUp() error {
	if c.failures < mostFailures {
		return nil
	}
	return fmt.Errorf("%w: the last %d answers were unusable", ask.ErrGaveUp, c.failures)
}

// Drop replaces what is believed to be gone by a meta without a body, unless the service knows hardly
// anything in this run: then all of it is doubted.
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

// Cost is what a run has asked for.
type Cost struct {
	Requests int     `json:"requests"`       // also those that failed
	Bytes    int64   `json:"bytes"`          // of answers
	Waited   float64 `json:"waited_seconds"` // because of rate limits and failures
	Stopped  string  `json:"stopped"`        // why not all was asked, such as a spent budget; "" if it was
}

// Cost is that of a run that ended with an error, which is nil if all was asked. It returns the error
// unless it is one that says why less was asked.
func (c *Collector[Meta]) Cost(err error) (Cost, error) {
	asked := c.Client.Cost()
	cost := Cost{Requests: asked.Requests, Bytes: asked.Bytes, Waited: asked.Waited.Seconds()}
	if errors.Is(err, ask.ErrGaveUp) || errors.Is(err, ask.ErrSpent) {
		cost.Stopped, err = err.Error(), nil
	}
	return cost, err
}

// WriteCost writes a line for people. most is how many accounts a request is about at most; 0 says
// nothing.
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
