// Package snapshot reads and writes snapshots, as specified in docs/snapshot.md.
//
// Other modules may import this package: from version 1.0.0 on its API follows semantic versioning.
package snapshot
