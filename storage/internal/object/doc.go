// Package object defines the shared parts of all stores: objects and their metadata, size limits,
// and errors that callers distinguish.
package object
