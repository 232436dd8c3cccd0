package chain

import (
	"fmt"
	"strings"
	"time"

	"github.com/followpress/followpress/source/chain/provider"
)

// Values of Check.How.
const (
	CheckedByContracts = "contracts" // the contracts agree with the logs
	CheckedByQuorum    = "quorum"    // contracts could not be asked, but several hosts returned the same logs
	CheckedNot         = "unchecked" // neither, and the options allow that
	CheckedNothing     = "nothing"   // neither logs nor lists name a subject on this chain that a contract could be asked about
	CheckedEarlier     = "earlier"   // nothing was read since an earlier run that was checked
)

// A Check describes how missing logs were ruled out.
type Check struct {
	How     string `json:"how"`
	Host    string `json:"host,omitempty"`    // host that asked the contracts
	Block   uint64 `json:"block,omitempty"`   // block after which they were asked
	Tokens  int    `json:"tokens,omitempty"`  // tokens whose owners were compared; their number was too
	Slots   int    `json:"slots,omitempty"`   // slots whose operations were counted, including those without any
	Values  int    `json:"values,omitempty"`  // locations, users and primary lists compared
	Refused int    `json:"refused,omitempty"` // owners and values that the contracts did not answer
	Moved   int    `json:"moved,omitempty"`   // owners and values changed since the last block read; the next run checks them
	Hosts   int    `json:"hosts,omitempty"`   // hosts with the same logs
	Why     string `json:"why,omitempty"`     // reason why contracts could not be asked
}

// A Repair lists blocks that were read again because contracts contradicted the logs.
type Repair struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Why  string `json:"why"`
}

// A Report is the result of Sync.
type Report struct {
	Chains  []PerChain `json:"chains"`
	Seconds float64    `json:"seconds"`
}

// A PerChain is the result of Sync for one chain.
type PerChain struct {
	Chain   uint64          `json:"chain"`
	Name    string          `json:"name"`
	From    uint64          `json:"from"`    // first block of this run
	To      uint64          `json:"to"`      // last block read, in this run or before
	AsOf    string          `json:"as_of"`   // time of block To; "" if none was read
	Events  uint64          `json:"events"`  // events read in this run
	Stored  uint64          `json:"stored"`  // all events in the state
	Tokens  int64           `json:"tokens"`  // tokens minted and not burnt
	Check   *Check          `json:"check"`   // nil if the run ended earlier
	Undone  *Undone         `json:"undone"`  // nil for nothing
	Repairs []Repair        `json:"repairs"` // null for none
	Cost    []provider.Cost `json:"cost"`    // by URL
}

// An Undone counts forgotten blocks, to be read again because they were or may have been dropped
// from the chain.
type Undone struct {
	Blocks uint64 `json:"blocks"`
	Events uint64 `json:"events"`
}

func (c *chainSync) finish() PerChain {
	r := c.report
	if c.store != nil {
		if top := c.store.top(); top != nil {
			r.Stored, r.To, r.Tokens = top.Events, top.Block, top.Tokens
			r.AsOf = time.Unix(top.Time, 0).UTC().Format(time.RFC3339)
		}
		r.Events -= min(r.Events, c.store.events-r.Stored) // events that could not be written are read again
	}
	if c.nodes != nil {
		r.Cost = c.nodes.Cost()
	}
	return r
}

// String returns the report as text for people.
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
		c.Check.tell(&b)
		b.WriteByte('\n')
		for _, r := range c.Repairs {
			fmt.Fprintf(&b, "  read blocks %d to %d again: %s\n", r.From, r.To, r.Why)
		}
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

// tell appends the result of the check to a line.
func (c *Check) tell(b *strings.Builder) {
	if c == nil {
		return
	}
	switch c.How {
	case CheckedByContracts:
		fmt.Fprintf(b, "; confirmed by the contracts (%[4]s, block %[5]d): %[1]d tokens, the operations of %[2]d slots, %[3]d values", c.Tokens, c.Slots, c.Values, c.Host, c.Block)
		if c.Refused > 0 {
			fmt.Fprintf(b, ", %d not answered", c.Refused)
		}
		if c.Moved > 0 {
			fmt.Fprintf(b, ", %d not compared because they changed since", c.Moved)
		}
	case CheckedByQuorum:
		fmt.Fprintf(b, "; %d hosts agreed on the logs; not compared with contracts: %s", c.Hosts, c.Why)
	case CheckedNot:
		fmt.Fprintf(b, "; NOT CHECKED, logs may be missing: %s", c.Why)
	case CheckedNothing:
		b.WriteString("; no list has anything there")
	case CheckedEarlier:
		b.WriteString("; was checked before")
	}
}

func sum(calls map[string]int64) (all int64) {
	for _, n := range calls {
		all += n
	}
	return all
}
