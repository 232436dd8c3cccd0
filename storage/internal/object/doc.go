// Package object defines what all stores share: objects and their metadata, size limits, and errors that callers tell
// apart.
package object
