// Package audit compares a site, or a snapshot, with the state of the contracts that it was made of.
//
// A snapshot is made of logs: source/chain reads them, and source/replay adds them up. This package never
// reads the logs of the blocks that it audits. It asks the contracts themselves what they hold after the
// same blocks (eth_call), and compares that with what readers of the site see. So a node that has hidden
// logs, a replay that has a fault, and a site that somebody has altered are all found in the same way.
//
//	audit.go      which lists are audited, batch by batch; what is told of them
//	site.go       what a site says of a list: details and records, checked against its manifest
//	snapshot.go   what a snapshot says of it
//	facts.go      what the contracts say of it
//	contracts.go  the functions and events of the contracts
//	view.go       the state of one chain, and the logs after the block where a node lacks that state
//	records.go    operations → records
//
// # A second way to the same facts
//
// Two computations that share code share its faults. What this package shares with the way that made the
// site is only decoding: provider asks the nodes, site/op takes operations apart, go-ethereum's abi reads
// answers. What locations, users, primary lists and operations mean is written here again, from the
// contracts and from docs/snapshot.md. internal/conventions keeps it so (mayImport, mustNotReach): it fails if this
// package imports source/chain, source/replay or site/rules, or the first two by way of another one.
//
// # Nodes
//
// Answers of nodes are bounded, and what they say of themselves is checked: a node must have the site's
// block with its hash, and answer after the block that it was asked about. One that has not the state of that
// block any more is asked after its newest block. Logs of the blocks between then say which facts may have
// been others: operations are compared without the later ones, and a list whose owner, place, user or primary
// list has changed is left out, and counted. Logs are never taken for a proof: the later operations must be
// those at the end of what the contract has. So a node that hides logs makes a difference rather than none.
//
// The API may change until version 1.
package audit
