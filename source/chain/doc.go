// Package chain reads the events of contracts from the nodes of chains and keeps them in a folder,
// so that the next run reads only new blocks.
//
// For each chain the folder has
//
//	chains/{id}/logs             the events in order; append-only, except for reorganizations
//	chains/{id}/checkpoint.json  the valid length of logs and the blocks read; written last
//
// A killed run leaves more in logs than the checkpoint covers; the next run truncates it. The
// checkpoint also names the block up to which contracts, or a quorum of hosts, have confirmed the
// events. Later events only survive from a killed run to the next. Events that contracts
// contradict, and unchecked events, are read again.
//
// # The path of an event
//
//  1. sync.go opens the state, asks each chain for its head, and compares the hashes of the newest
//     blocks read, to notice a reorganization. Then it asks for the remaining blocks.
//  2. provider asks the nodes of one chain: it finds the range that a node accepts, waits, asks other
//     nodes, compares their answers, and returns parts in block order. Each part ends with a block that
//     was read, so a lagging node cannot lose logs.
//  3. decode.go turns logs into source.Events; store.go appends them to the state. Then check.go asks the
//     contracts for everything that ledger.go has added up from the events, and reads contradicted blocks
//     again. The checkpoint marks events as verified only if the contracts confirm them.
//  4. source/replay reads the events of all chains, each in order. It keeps the last event about each token,
//     account and user of a slot, and all operations on slots. Then it replays the operations slot by slot
//     and writes lists and records. Only replay decides what an event means.
//  5. source/postgres feeds the events of an indexer's database into the same replay, list by list, and
//     compares the result with the tables. Where events are missing, the tables count.
//  6. source/profile and source/badge keep answers of services in the state, as many per run as the
//     budget allows. source/accounts.go merges profiles and primary lists into the table accounts.
//  7. snapshot.Writer writes the tables, and staging replaces the old snapshot.
//
// tail.go holds the blocks after the state's in memory, for source/follow: they may still be
// replaced.
//
// # Stability
//
// The API may change in any release.
package chain
