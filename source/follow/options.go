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

// Options configure a Follower. State, Deployment and URLs are required; zero values of the others
// are the defaults.
type Options struct {
	State      *chain.State        // open; only for the Follower until Close, which leaves it open
	Deployment *source.Deployment  // deployment of the state
	URLs       map[uint64][]string // nodes by chain ID; each chain of the deployment needs an http or https URL
	Provider   provider.Options    // how to ask nodes; its Finality is ignored

	Poll    time.Duration // between two requests for the newest block of a chain; 0 means 2 s
	Gather  time.Duration // how long to collect more events after the first one of a round; 0 means 100 ms
	Confirm time.Duration // minimum time between two comparisons with the contracts, which ask for every value; 0 means 10 minutes

	// History is the period of operations in the table ops of a round's snapshot; 0 means no such
	// table. Finalized always writes all operations.
	History time.Duration

	Tables   Tables
	NoSync   bool            // see chain.Options.NoSync
	Progress source.Progress // reports the first read; nil for none
	Log      *slog.Logger    // nil for none
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
			return fmt.Errorf("no node URL for chain %d (%s)", c.ID, c.Name)
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

// tail returns the options of requests for the newest blocks. The next poll repeats a question
// without a quick answer.
func (o *Options) tail() provider.Options {
	tail := o.Provider
	tail.Finality = provider.Latest
	tail.Timeout = min(cmp.Or(tail.Timeout, patience), patience)
	tail.Patience = min(cmp.Or(tail.Patience, patience), patience)
	tail.Log = o.Log
	return tail
}

// patience limits the wait for an answer about the newest blocks.
const patience = 10 * time.Second

type noProgress struct{}

func (noProgress) Stage(string, int64) {}
func (noProgress) Add(int64)           {}
func (noProgress) End()                {}
