package chain

import (
	"fmt"
	"strings"
	"time"

	"github.com/followpress/followpress/source/chain/provider"
)

// The values of Check.How.
const (
	CheckedByContracts = "contracts" // the contracts have said the same as the logs
	CheckedByQuorum    = "quorum"    // contracts could not be asked, but several hosts gave the same logs
	CheckedNot         = "unchecked" // neither, and the options allow that
	CheckedNothing     = "nothing"   // neither logs nor lists name anything on this chain that a contract could be asked about
	CheckedEarlier     = "earlier"   // nothing was read since an earlier run that has checked
)

// A Check says how it was found out whether logs are missing.
type Check struct {
	How     string `json:"how"`
	Host    string `json:"host,omitempty"`    // that told what the contracts say
	Block   uint64 `json:"block,omitempty"`   // after which they said so
	Tokens  int    `json:"tokens,omitempty"`  // whose owners were compared; so was their number
	Slots   int    `json:"slots,omitempty"`   // whose operations were counted, also those without any
	Values  int    `json:"values,omitempty"`  // locations, users and primary lists that were compared
	Refused int    `json:"refused,omitempty"` // owners and values that the contracts did not tell
	Moved   int    `json:"moved,omitempty"`   // owners and values that have changed since the last block that was read; the next run checks them
	Hosts   int    `json:"hosts,omitempty"`   // that gave the same logs
	Why     string `json:"why,omitempty"`     // contracts could not be asked
}

// A Repair says which blocks were read again, because contracts contradicted the logs.
type Repair struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Why  string `json:"why"`
}

// A Report says what Sync did.
type Report struct {
	Chains  []PerChain `json:"chains"`
	Seconds float64    `json:"seconds"`
}

// A PerChain says what Sync did for one chain.
type PerChain struct {
	Chain   uint64          `json:"chain"`
	Name    string          `json:"name"`
	From    uint64          `json:"from"`    // the first block of this run
	To      uint64          `json:"to"`      // the last block that was read, in this run or before
	AsOf    string          `json:"as_of"`   // its time; "" if none was read
	Events  uint64          `json:"events"`  // of this run
	Stored  uint64          `json:"stored"`  // events, all of them
	Tokens  int64           `json:"tokens"`  // that were minted and not burnt
	Check   *Check          `json:"check"`   // nil if the run did not come so far
	Undone  *Undone         `json:"undone"`  // nil if nothing was
	Repairs []Repair        `json:"repairs"` // null if there were none
	Cost    []provider.Cost `json:"cost"`    // by URL
}

// Undone says what was forgotten, to be read again, because it was no longer part of the chain or
// may not have been.
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
		r.Events -= min(r.Events, c.store.events-r.Stored) // what could not be written is read again
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

// tell appends to a line what was checked.
func (c *Check) tell(b *strings.Builder) {
	if c == nil {
		return
	}
	switch c.How {
	case CheckedByContracts:
		fmt.Fprintf(b, "; as the contracts say (%[4]s, block %[5]d): tokens: %[1]d, slots with their operations: %[2]d, values: %[3]d", c.Tokens, c.Slots, c.Values, c.Host, c.Block)
		if c.Refused > 0 {
			fmt.Fprintf(b, ", not told: %d", c.Refused)
		}
		if c.Moved > 0 {
			fmt.Fprintf(b, ", changed since and not compared: %d", c.Moved)
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
