// Package audit compares a site or a snapshot with the state of the contracts that it was made of.
//
// A snapshot is made of logs: source/chain reads them and source/replay applies them. This package
// never reads the logs of the blocks that it audits. It asks the contracts for their state after
// the same blocks (eth_call) and compares it with what readers of the site see. So it finds hidden
// logs, a faulty replay, and an altered site in the same way.
//
// # A second implementation
//
// Two computations that share code share its faults. This package shares only decoding with the
// code that made the site: provider asks the nodes, site/op splits operations, and go-ethereum's
// abi decodes answers. The meaning of locations, users, primary lists and operations is implemented
// here again, from the contracts and docs/snapshot.md. internal/conventions enforces this (mayImport,
// mustNotReach): it fails if this package imports source/chain, source/replay or site/rules, or
// reaches the first two through another package.
//
// # Nodes
//
// Answers of nodes are bounded, and their claims are checked: a node must have the site's block
// with its hash, and must answer after the requested block. A node that no longer has the state of
// that block is asked after its newest block. Logs of the blocks in between then tell which facts
// may have changed: operations are compared without the later ones, and lists whose owner, place,
// user or primary list changed are skipped and counted. Logs alone prove nothing: the later
// operations must be the last ones that the contract has. So a node that hides logs causes a
// difference.
//
// The API may change in any release.
package audit
