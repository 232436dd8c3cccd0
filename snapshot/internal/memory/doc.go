// Package memory has snapshots in memory: rows.go has rows as text, and files.go makes a file system of them.
package memory
