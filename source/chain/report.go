package chain

import (
	"fmt"
	"strings"
	"time"

	"github.com/followpress/followpress/source/chain/provider"
)

// The values of PerChain.Supply.
const (
	SupplyEqual   = "equal"   // the registry has as many tokens as logs told of
	SupplyUnknown = "unknown" // no node has the state of the last block any more
)

// A Report says what Sync did.
type Report struct {
	Chains  []PerChain `json:"chains"`
	Seconds float64    `json:"seconds"`
}

// A PerChain says what Sync did for one chain.
type PerChain struct {
	Chain  uint64          `json:"chain"`
	Name   string          `json:"name"`
	From   uint64          `json:"from"`   // the first block of this run
	To     uint64          `json:"to"`     // the last block that was read, in this run or before
	AsOf   string          `json:"as_of"`  // its time; "" if none was read
	Events uint64          `json:"events"` // of this run
	Stored uint64          `json:"stored"` // events, all of them
	Tokens int64           `json:"tokens"` // that were minted and not burnt
	Supply string          `json:"supply"` // whether the registry has as many; "" on other chains, or if it was not asked
	Undone *Undone         `json:"undone"` // nil if nothing was
	Cost   []provider.Cost `json:"cost"`   // by URL

	old uint64 // events that were stored before
}

// Undone says what was forgotten, to be read again, because it was no longer part of the chain or
// may not have been.
type Undone struct {
	Blocks uint64 `json:"blocks"`
	Events uint64 `json:"events"`
}

func (r *PerChain) undo(u Undone) {
	if r.Undone == nil {
		r.Undone = &Undone{}
	}
	r.Undone.Blocks += u.Blocks
	r.Undone.Events += u.Events
}

// finish returns the report of a chain.
func (c *chainSync) finish() PerChain {
	r := c.report
	if c.store != nil {
		r.Stored = c.store.events
		if top := c.store.top(); top != nil {
			r.To, r.Tokens = top.Block, top.Tokens
			r.AsOf = time.Unix(top.Time, 0).UTC().Format(time.RFC3339)
		}
	}
	if c.nodes != nil {
		r.Cost = c.nodes.Cost()
	}
	return r
}

// String is the report for people.
func (r *Report) String() string {
	var b strings.Builder
	for _, c := range r.Chains {
		fmt.Fprintf(&b, "%s (%d): ", c.Name, c.Chain)
		if c.To >= c.From {
			fmt.Fprintf(&b, "read blocks %d to %d", c.From, c.To)
		} else {
			b.WriteString("read no blocks")
		}
		fmt.Fprintf(&b, ", %d new events of %d", c.Events, c.Stored)
		if c.AsOf != "" {
			fmt.Fprintf(&b, ", as of %s", c.AsOf)
		}
		if c.Undone != nil {
			fmt.Fprintf(&b, "; forgot %d blocks with %d events, which may no longer be part of the chain", c.Undone.Blocks, c.Undone.Events)
		}
		switch c.Supply {
		case SupplyEqual:
			fmt.Fprintf(&b, "; tokens: %d, as the registry says", c.Tokens)
		case SupplyUnknown:
			fmt.Fprintf(&b, "; not checked that the registry has %d tokens, as no node has its state at that block", c.Tokens)
		}
		b.WriteByte('\n')
		for _, cost := range c.Cost {
			fmt.Fprintf(&b, "  %s: %d requests with %d calls, %.1f MB received", cost.Host, cost.Requests, sum(cost.Calls), float64(cost.Received)/1e6)
			if cost.Retries > 0 {
				fmt.Fprintf(&b, ", %d tried again, %d of them because of a rate limit", cost.Retries, cost.Limited)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func sum(calls map[string]int64) (all int64) {
	for _, n := range calls {
		all += n
	}
	return all
}
