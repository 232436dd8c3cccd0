package source

import (
	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
)

// A Head is the position up to which a chain was read.
type Head struct {
	Chain     uint64 // EIP-155 chain ID; 0 for a database that does not name its chains
	Block     uint64 // newest block in the graph
	Time      int64  // time of that block, in milliseconds since the Unix epoch
	Finalized uint64 // newest block whose events the contracts, or a quorum of hosts, have confirmed
}

// A Round is the graph as of some heads. A source that follows the chains makes one after the
// other.
type Round struct {
	Heads    []Head   // in the order of the deployment's chains
	Snapshot afero.Fs // tables of the graph; nil if only the heads changed since the last round
	// Changes since the last round with a snapshot, sorted: accounts whose records, lists, primary
	// list or profile changed or that changed records are about, and lists by token ID. Both are
	// nil in the first round.
	Accounts []site.Address
	Lists    []string
	// Undone holds the chains that have dropped blocks of the last round.
	Undone []uint64
}
