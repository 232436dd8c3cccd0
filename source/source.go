// Package source has what all sources of snapshots share: the contracts, their events, and the
// graph that is made of them. Its subpackages read chains, databases, profiles and badges.
//
// The API may change until version 1.
package source

import (
	"iter"
	"math"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// A Contract is a contract on one chain. The same address on two chains is two contracts.
type Contract struct {
	Chain   uint64 // EIP-155 chain id
	Address site.Address
}

// A Word is a 256-bit value, big endian: a token id or a slot.
type Word [32]byte

// A Place is where records are: a slot of a records contract.
type Place struct {
	Contract
	Slot Word
}

// Kind is the kind of an Event.
type Kind uint8

// The events that matter, and what their fields hold.
const (
	Transfer        Kind = iota + 1 // registry: Subject is the token id, Value the new owner, 20 bytes
	Location                        // registry, UpdateListStorageLocation: Subject is the token id, Value the location
	AccountMetadata                 // account metadata: Subject is the account in its last 20 bytes; Key, Value
	Op                              // records, ListOp: Subject is the slot, Value the operation
	ListMetadata                    // records, UpdateListMetadata: Subject is the slot; Key, Value
)

// NoTime is the time of something of which it is not known.
const NoTime = math.MinInt64

// An Event is a decoded event of a contract.
type Event struct {
	Kind     Kind
	Contract Contract
	Block    uint64
	Index    uint32 // of the log in its block
	Time     int64  // of the block, in milliseconds since the Unix epoch; NoTime if it is not known
	Subject  Word
	Key      string
	Value    []byte // valid until the next event, unless copied
}

// Events are events in the order of each chain: by block, then by index. Events of several chains
// may be mixed.
type Events = iter.Seq2[Event, error]

// A Profile is what a source knows about an account.
type Profile struct {
	Address site.Address
	ENS     site.Profile
}

// Profiles are profiles in the order of addresses, one for each.
type Profiles = iter.Seq2[Profile, error]

// A Graph is what a source has found beside the lists and records that it has written.
type Graph struct {
	AsOf    time.Time               // the time of the last block that was read, the earliest of all chains
	Primary map[site.Address]string // the token id that an account names as its primary list
	Held    map[site.Address]uint32 // how many lists follow an account; lists' accounts have an entry too
	ListOps uint64                  // operations that were read, also those that were ignored
	OpsFrom *time.Time              // from which on the visible operations are complete; nil if it is from the beginning, or there are none

	Chains   []site.ChainInput  // how far the chains were read, in any order; none if the source does not tell
	Profiles *site.ServiceInput // of the profiles that WriteAccounts has written, without Source; nil for none
	Badges   *site.ServiceInput // of the badges; nil for none
}

// Meta is the meta.json of the snapshot of the graph, once all tables are written.
func (g *Graph) Meta() snapshot.Meta {
	return snapshot.Meta{AsOf: g.AsOf, ListOps: &g.ListOps, OpsFrom: g.OpsFrom, Chains: g.Chains, Profiles: g.Profiles, Badges: g.Badges}
}

// Progress is told how far a run has come. Its methods are called from many goroutines.
type Progress interface {
	// Stage begins a part of the run. total is about the sum of n over all calls of Add in this stage,
	// or 0 if it is not known.
	Stage(name string, total int64)
	// Add says that n more items are done.
	Add(n int64)
	// End ends the stage.
	End()
}
