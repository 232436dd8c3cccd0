// Package memory encodes rows of snapshots in memory. Rows are the text of many rows; a table consists of
// Pieces. snapshot.NewMemory makes a snapshot from pieces, and Writer.Rows returns the rows that were written.
//
// The API may change in any release.
package memory
