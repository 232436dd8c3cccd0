// Package snapshot is the format of snapshots: tables, rows, a reader and a writer. Its
// specification is docs/snapshot.md.
//
// Here is what callers use: names.go has the reader and snapshots in memory, writer.go and what it
// calls write. Rooms below internal/, from the top: folder and memory are file systems of snapshots,
// table reads tables, from files of lines and of Parquet in lines and parquet, and rowjson has rows.
//
// Other modules may import this package: from version 1.0.0 on its API follows semantic versioning.
package snapshot
