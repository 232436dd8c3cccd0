// Package memory encodes rows of snapshots in memory. Rows are the text of many rows, a Piece is what a table is made
// of. snapshot.NewMemory makes a snapshot from pieces, Writer.Rows returns what a snapshot.InMemory has written.
//
// The API may change in any release.
package memory
