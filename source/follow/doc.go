// Package follow follows the chains: it makes the graph of the newest blocks, round by round, for a
// process that answers from memory.
//
// The API may change until version 1.
package follow
