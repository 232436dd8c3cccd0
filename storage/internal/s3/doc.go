// Package s3 is a bucket of an S3-compatible server. It does not retry.
//
//   - bucket.go opens the bucket, reads, puts, deletes and lists. range.go reads parts of objects.
//   - conditions.go finds the form of If-Match that a server takes. digest.go has the MD5 of an object whose ETag is none.
//   - pack.go puts many objects with one request. setup.go creates the bucket and lets everybody read.
//   - errors.go says what to check. nos3.go refuses servers that are none of S3.
//   - fence.go sends nothing after the end of a context. meter.go counts and logs requests, and bounds answers.
package s3
