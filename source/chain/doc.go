// Package chain reads the events of contracts from the nodes of chains, and keeps them in a folder,
// so that the next run reads only new blocks.
//
// For each chain the folder has
//
//	chains/{id}/logs             the events in their order; only ever appended to, but for reorganisations
//	chains/{id}/checkpoint.json  how much of logs counts, and which blocks were read; written last
//
// A run that is killed leaves more in logs than the checkpoint says, and the next run cuts it off.
//
// The API may change until version 1.
package chain
