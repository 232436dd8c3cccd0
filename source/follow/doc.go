// Package follow follows the chains: it makes the graph of the newest blocks, round by round, for a
// process that answers from memory.
//
// # The path of a block
//
//  1. link.go has a goroutine for each chain, which asks for the newest block every two seconds, or is told of
//     it by a wss URL. source/chain.Tail takes it from there: the blocks after those of the state, in memory. A
//     block costs one request if its bloom filter says that it has no log of the contracts, and another one if
//     it may: on a chain whose blocks are so full that all bits are set, each one. A reorganisation
//     replaces blocks of the tail and nothing else.
//  2. confirm.go has chain.State.Sync read what is final, and compare all with the contracts: Confirm after
//     there was an event that is final, and every six hours. The state on disk is always what `snapshot
//     chain` reads. What Sync finds beyond the tail, or otherwise, is in the next round; a state that had to
//     forget blocks is replayed anew.
//  3. follower.go replays the events: those of the state, a mark, and those of the tails. A round adds what is
//     new; after a reorganisation or a Sync it goes back to the mark before. source/replay.Rows makes only those
//     rows again that have changed; those of ops, of Options.History, in chunks of 512.
//  4. tables.go has the tables beside lists and records: read at the start, and when Renew says so.
//  5. snapshot.NewMemory puts the rows together: by construction, and by a test on random histories, they are
//     the bytes that `snapshot chain --finality latest --compress none` would write, but for older rows of ops, and
//     ops_from, which says that they are missing.
//
// # What nodes may do
//
// A node that lags is waited for, and left after a minute if others move on. One whose newest block is
// earlier than ours, on the same branch, is believed after a minute. Blooms that hide logs are found
// within five minutes, logs that were lost when their blocks are final. Until then Head.Finalized says
// from where on only nodes have said so.
//
// # Costs
//
// Measured on 2 cores of an AMD EPYC on 2026-11-23, at the real size (54,643 lists, a million operations):
// the replay takes 70 MiB, its rows 160 MiB; the first ones take about a second, those of a round with one
// operation 5 ms. The operations of 999 hours, 19,000 rows of the table ops, take 5 MiB, and 0.2 ms of a
// round. Without news three chains take 0.33 % of a core, the test's nodes included, and 30 requests a minute
// each.
//
// # Stability
//
// The API may change until version 1.
package follow
