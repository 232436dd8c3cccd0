// Package source has the types that all sources of snapshots share: contracts, events, and the
// graph made of them. Its subpackages read chains, databases, profiles and badges.
//
// The API may change in any release.
package source

import (
	"iter"
	"math"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// A Contract is a contract on one chain. The same address on two chains means two contracts.
type Contract struct {
	Chain   uint64 // EIP-155 chain ID
	Address site.Address
}

// A Place is where a list keeps its records: a slot of a records contract.
type Place struct {
	Contract
	Slot Word
}

// Kind is the kind of an Event.
type Kind uint8

// Kinds of events, with their contracts and the meaning of their fields.
const (
	Transfer        Kind = iota + 1 // registry: Subject is the token ID, Value the new owner (20 bytes)
	Location                        // registry, UpdateListStorageLocation: Subject is the token ID, Value the location
	AccountMetadata                 // account metadata: the last 20 bytes of Subject are the account; Key, Value
	Op                              // records, ListOp: Subject is the slot, Value the operation
	ListMetadata                    // records, UpdateListMetadata: Subject is the slot; Key, Value
)

// NoTime stands for an unknown time.
const NoTime = math.MinInt64

// An Event is a decoded event of a contract.
type Event struct {
	Kind     Kind
	Contract Contract
	Block    uint64
	Index    uint32 // log index in the block
	Time     int64  // block time in milliseconds since the Unix epoch; NoTime if unknown
	Subject  Word
	Key      string
	Value    []byte // valid until the next event, unless copied
}

// Events yields the events of each chain in order: by block, then by index. Events of several
// chains may be mixed.
type Events = iter.Seq2[Event, error]

// A Profile is the knowledge of a source about an account.
type Profile struct {
	Address site.Address
	ENS     site.Profile
}

// Profiles yields profiles ordered by address, one per account.
type Profiles = iter.Seq2[Profile, error]

// A Graph is the result of a source apart from the lists and records that it has written.
type Graph struct {
	AsOf    time.Time               // time of the last block read, the earliest over all chains
	Primary map[site.Address]string // token ID that each account names as its primary list
	Held    map[site.Address]uint32 // number of lists that follow each account; accounts of lists have an entry too
	ListOps uint64                  // number of operations read, including ignored ones
	OpsFrom *time.Time              // time from which the visible operations are complete; nil if complete from the start or if there are none

	Chains   []site.ChainInput  // position of each chain, in any order; empty if the source does not know
	Profiles *site.ServiceInput // profiles written by WriteAccounts, without Source; nil for none
	Badges   *site.ServiceInput // badges; nil for none
}

// Meta returns the meta.json of the graph's snapshot. Call it after all tables are written.
func (g *Graph) Meta() snapshot.Meta {
	return snapshot.Meta{AsOf: g.AsOf, ListOps: &g.ListOps, OpsFrom: g.OpsFrom, Chains: g.Chains, Profiles: g.Profiles, Badges: g.Badges}
}

// Progress receives the progress of a run. Its methods are called concurrently.
type Progress interface {
	// Stage begins a stage of the run. total is the expected sum of n in calls of Add; 0 if unknown.
	Stage(name string, total int64)
	// Add reports n more completed items.
	Add(n int64)
	// End ends the stage.
	End()
}
