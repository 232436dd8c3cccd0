package source

import (
	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
)

// A Head is how far one chain was read.
type Head struct {
	Chain     uint64 // EIP-155 chain id; 0 for a database that does not tell its chains
	Block     uint64 // the newest block in the graph
	Time      int64  // of that block, in milliseconds since the Unix epoch
	Finalized uint64 // the newest block whose events the contracts, or a quorum of hosts, have confirmed
}

// A Round is the graph as of some heads, which a source that follows the chains makes again and again.
type Round struct {
	Heads    []Head   // in the order of the deployment's chains
	Snapshot afero.Fs // the tables of the graph; nil if only heads have changed since the last round
	// What changed since the last round with a snapshot, sorted: accounts whose records, lists, primary
	// list or profile are others, or that such records are about, and lists by their token ids. Both
	// are nil for the first round.
	Accounts []site.Address
	Lists    []string
	// Undone are the chains of which blocks that were in the last round are no longer part.
	Undone []uint64
}
