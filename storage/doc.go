// Package storage reads and writes sites in a folder, a tar file, an S3-compatible bucket, or a local folder with the
// semantics of a bucket (Local).
//
// Callers declare interfaces with the methods that they need. All methods are safe for concurrent use unless their
// comments say otherwise. A Bucket does not retry: Temporary reports whether an error is
// retryable, Unanswered whether the request may still take effect. Retrying retries reads.
//
// Package checked wraps a store and returns only objects covered by a signature; refreshed reads data stored by
// refreshes. Both import this package, which imports the stores: parts, which Beam also writes, and those below
// internal.
//
// The API may change in any release.
package storage
