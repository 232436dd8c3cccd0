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
// The API may change until version 1.
package chain
