// Package snapshot is the format of snapshots: tables, rows, a reader and a writer. Its
// specification is docs/format.md.
//
// The API may change until version 1.
package snapshot
