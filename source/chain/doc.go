// Package chain reads the events of contracts from the nodes of chains, and keeps them in a folder,
// so that the next run reads only new blocks.
//
// For each chain the folder has
//
//	chains/{id}/logs             the events in their order; only ever appended to, but for reorganisations
//	chains/{id}/checkpoint.json  how much of logs counts, and which blocks were read; written last
//
// A run that is killed leaves more in logs than the checkpoint says, and the next run cuts it off. The
// checkpoint says too up to which block contracts, or a quorum of hosts, have confirmed the events.
// What is after it is only kept between a run that was killed and the next one: whatever contracts
// contradict, and whatever nobody could check, is read again.
//
// # The path of an event
//
//  1. source/chain/sync.go opens the state, asks each chain for its head, and compares the hashes of the newest
//     blocks that were read, so that it notices a reorganisation. Then it asks for the rest.
//  2. source/chain/provider asks the nodes of one chain: it finds the range that a node takes, waits, asks other
//     nodes, compares their answers, and returns parts in the order of blocks. A part is only returned with the
//     block that ends it, so a node that lags cannot lose logs.
//  3. decode.go turns logs into a source.Event; store.go appends them to the state. The checkpoint is written
//     last. Then check.go asks the contracts (provider/state.go) for all that ledger.go has added up from the
//     events, and has read again what they contradict. Only what they confirm is marked as verified in the
//     checkpoint.
//  4. source/replay reads the events of all chains, in the order of each. It keeps what the last event says about
//     tokens, accounts and the users of slots, and all operations on slots. Then it replays the operations slot by
//     slot, and writes lists and records. What an event means, and what is ignored, is decided here and nowhere
//     else.
//  5. source/postgres reads the events of an indexer's database into the same replay, list by list, and compares
//     the result with the tables. Where events are missing, tables decide.
//  6. source/profile and source/badge keep what services answered in the state; a run asks for as much as its
//     budget allows. source/accounts.go merges profiles and primary lists into the table accounts.
//  7. snapshot.Writer writes the tables, and staging puts the new snapshot in the place of the old one.
//
// tail.go has the blocks after those of a state, in memory, for source/follow: they may still be replaced.
//
// # Stability
//
// The API may change until version 1.
package chain
