// Package memory holds snapshots in memory, as rows of text and as a file system.
package memory
