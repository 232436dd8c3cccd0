// Package storage reads and writes sites: in a folder, a tar file, an S3-compatible bucket, or a
// local folder with the semantics of a bucket (Local).
//
// Callers describe the methods that they need in interfaces of their own. All methods of all types
// may be called from many goroutines, unless their comments say otherwise. A Bucket does not retry:
// Temporary tells callers which errors are retryable, and Unanswered after which ones a request may
// still take effect. Retrying makes reads again.
//
//   - storage.go has the words that all stores share: objects, conditions, errors. retry.go makes requests again.
//   - open.go opens what a text names. The stores are rooms: internal/folder (and a folder as a bucket),
//     internal/tarfile, internal/s3, internal/web (a site that is online), and parts, which Beam writes too.
//   - internal/files shows a folder of a bucket as a file system, for snapshots.
//   - checked is a store of which only what a known key has signed is believed; refreshed reads what refreshes
//     have stored. Both are over a store.
//
// Arrows run down: checked and refreshed import this package, which imports the stores; parts and internal/files
// import internal/s3; every room may import internal/object.
//
// The API may change in any release.
package storage
