package follow

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/chain/provider"
)

// Options say what is followed, and how. State, Deployment and URLs must be set; the zero value of
// the others means the defaults.
type Options struct {
	State      *chain.State        // open, and used by nobody else until Close; it stays open then
	Deployment *source.Deployment  // that of the state
	URLs       map[uint64][]string // of nodes, by the id of their chain; each chain of the deployment needs an http or https URL; wss URLs tell of new heads
	Provider   provider.Options    // how nodes are asked; its Finality does not count

	Poll    time.Duration // between two questions for the newest block of a chain; 0 means 2 s
	Gather  time.Duration // after the first event of a round, for more; 0 means 100 ms
	Confirm time.Duration // between two comparisons with the contracts, at least, which ask for all that they have; 0 means 10 minutes

	// History is how far back from its time the snapshot of a round has operations, in the table ops; 0 means that it has
	// no such table. Those that Finalized writes are whole.
	History time.Duration

	Tables   Tables
	NoSync   bool            // as chain.Options.NoSync
	Progress source.Progress // of the first reading; nil means none
	Log      *slog.Logger    // nil means none
}

func (o *Options) check() error {
	if o.State == nil || o.Deployment == nil {
		return errors.New("a state and its deployment are needed")
	}
	if o.Poll < 0 || o.Gather < 0 || o.Confirm < 0 {
		return errors.New("a time between requests is negative")
	}
	if o.History < 0 {
		return errors.New("the window of operations is negative")
	}
	for _, c := range o.Deployment.Chains {
		if len(o.URLs[c.ID]) == 0 {
			return fmt.Errorf("no node of chain %d (%s) is given", c.ID, c.Name)
		}
	}
	o.Poll = cmp.Or(o.Poll, 2*time.Second)
	o.Gather = cmp.Or(o.Gather, 100*time.Millisecond)
	o.Confirm = cmp.Or(o.Confirm, 10*time.Minute)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Provider.Finality = provider.Finalized
	o.Provider.Shares = cmp.Or(o.Provider.Shares, new(provider.Shares))
	if o.Progress == nil {
		o.Progress = noProgress{}
	}
	return nil
}

// tail are the options of requests for the newest blocks: what is not answered soon is asked again by the next
// poll.
func (o *Options) tail() provider.Options {
	tail := o.Provider
	tail.Finality = provider.Latest
	tail.Timeout = min(cmp.Or(tail.Timeout, patience), patience)
	tail.Patience = min(cmp.Or(tail.Patience, patience), patience)
	tail.Log = o.Log
	return tail
}

// patience is for an answer about the newest blocks.
const patience = 10 * time.Second

type noProgress struct{}

func (noProgress) Stage(string, int64) {}
func (noProgress) Add(int64)           {}
func (noProgress) End()                {}
