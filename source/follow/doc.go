// Package follow follows the chains: round by round it makes the graph of the newest blocks, for a
// process that answers from memory.
//
// # The path of a block
//
//  1. link.go runs a goroutine per chain, which asks for the newest block every two seconds. A
//     chain.Tail keeps the blocks after those of the state in memory. A block costs one request if its
//     bloom filter rules out logs of the contracts, else two. A reorganization only replaces blocks of the
//     tail.
//  2. confirm.go runs chain.State.Sync, which reads final blocks and compares everything with the contracts:
//     at most every Confirm if there was a final event, and every six hours. The state on disk is always what
//     `snapshot chain` reads. If Sync finds other events than the tail, the next round has them; if the state
//     forgot blocks, it is replayed from the start.
//  3. follower.go replays the events: those of the state, a mark, then those of the tails. A round adds new
//     events; after a reorganization or a Sync it first returns to the mark. source/replay.Rows remakes only
//     changed rows; those of ops, within Options.History, in chunks of 512.
//  4. tables.go holds the other tables. They are read at the start and after Renew.
//  5. snapshot.NewMemory combines the rows. They are the rows of `snapshot chain --finality latest`,
//     without the older rows of ops; ops_from shows the omission. A test compares both
//     on random histories.
//
// # Nodes
//
// A lagging node gets a minute if others move on; then another one is asked. If a node's newest
// block is earlier than ours, on the same branch, it is believed after a minute. Logs hidden by
// wrong bloom filters are found within five minutes, lost logs when their blocks are final. Until
// then, Head.Finalized shows the block after which only nodes vouch for the events.
//
// # Costs
//
// Measured on 2 cores of an AMD EPYC on 2026-11-23, at real size (54,643 lists, a million
// operations): the replay takes 70 MiB, its rows 160 MiB; the first rows take about a second, a
// round with one operation 5 ms. The operations of 999 hours, 19,000 rows of ops, take 5 MiB and
// 0.2 ms per round. Without news three chains take 0.33 % of a core, including the test's nodes,
// and 30 requests per minute each.
//
// # Stability
//
// The API may change in any release.
package follow
