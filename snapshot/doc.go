// Package snapshot is the format of snapshots: tables, rows, a reader and a writer. Its
// specification is docs/snapshot.md.
//
// Here is what callers use: names.go has the reader and snapshots in memory, writer.go and what it
// calls write. Rooms below internal/, from the top: folder and memory are file systems of snapshots,
// table reads tables, from files of lines and of Parquet in lines and parquet, and rowjson has rows.
//
// The API may change until version 1.
package snapshot
